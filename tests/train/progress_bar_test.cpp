// The progress line: its text on terminals of several widths, and in a file.
#include <sstream>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/callbacks.h"
#include "ferrite/train/fit.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;

namespace {

/// Returns what a training of 12 epochs writes, line by line, without the codes that clear a terminal's line.
std::vector<std::string> lines_of(bool terminal, int columns) {
  const Tensor x = uniform({20, 3}, {.seed = 6}, -1, 1);
  const DataLoader data(Dataset({x, sum(x, {1}, true)}), {.batch_size = 8});
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  std::ostringstream out;
  fit(net, data,
      {.loss = "mse",
       .optimizer = &sgd,
       .epochs = 12,
       .validation = &data,
       .metrics = {"mae"},
       .callbacks = {ProgressBar(out, terminal, columns)}});
  std::string all = out.str();
  const std::string clear = "\r\x1b[K";
  for (std::size_t at = all.find(clear); at != std::string::npos; at = all.find(clear))
    all.replace(at, clear.size(), "\n");
  std::vector<std::string> lines;
  std::istringstream in(all);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(progress_bar)

BOOST_AUTO_TEST_CASE(no_terminal_is_too_narrow) {
  for (const int columns : {200, 120, 100, 90, 80, 70, 60, 40, 30, 20, 12, 2})
    for (const std::string& line : lines_of(true, columns)) {
      BOOST_TEST(line.size() < static_cast<std::size_t>(columns), line);
      BOOST_TEST(line.substr(0, 1) == "e", line);
    }
}

BOOST_AUTO_TEST_CASE(less_room_means_less_text) {
  const std::string wide = lines_of(true, 200).back(), narrow = lines_of(true, 40).back();
  BOOST_TEST(has(wide, "epoch 12/12  [########################]  loss "), wide);
  for (const char* part : {"  mae ", "  val_loss ", "  val_mae ", " samples/s  in 0:0"})
    BOOST_TEST(has(wide, part), wide);
  BOOST_TEST(has(narrow, "epoch 12/12  loss "), narrow);
  BOOST_TEST(has(narrow, "  in 0:0"), narrow);
  BOOST_TEST(!has(narrow, "val_mae"), narrow);
  BOOST_TEST(has(lines_of(true, 105).back(), "[##########]"), lines_of(true, 105).back());
}

BOOST_AUTO_TEST_CASE(a_file_gets_a_plain_line_for_each_epoch) {
  const std::vector<std::string> lines = lines_of(false, 40);  // the width does not matter
  BOOST_REQUIRE(lines.size() == 12U);
  BOOST_TEST(has(lines[0], "epoch  1/12  loss "), lines[0]);
  BOOST_TEST(has(lines[0], " samples/s  ETA "), lines[0]);
  BOOST_TEST(has(lines[11], " samples/s  in 0:0"), lines[11]);
  for (const std::string& line : lines) BOOST_TEST(!has(line, "#"), line);
}

BOOST_AUTO_TEST_CASE(refusal) {
  std::ostringstream out;
  BOOST_CHECK_EXCEPTION(ProgressBar(out, true, -1), ValueError, says("columns must be at least 0, got -1"));
}

BOOST_AUTO_TEST_SUITE_END()
