// Files of earlier versions must always be readable: tests/data/released has a folder for each version, and one for
// files from before the first.
#include <cstdlib>
#include <set>

#include "ferrite/io/any_file.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/recurrent/gru.h"
#include "released/contents.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

namespace fs = std::filesystem;

fs::path root() {
  const char* fixtures = std::getenv("FERRITE_FIXTURES");
  BOOST_REQUIRE_MESSAGE(fixtures, "FERRITE_FIXTURES is not set");
  return fs::path(fixtures) / "released";
}

std::vector<fs::path> versions() {
  std::vector<fs::path> list;
  for (const auto& entry : fs::directory_iterator(root()))
    if (entry.is_directory()) list.push_back(entry.path());
  return list;
}

void check_numbers(const nn::Module& module, const std::string& what) {
  const auto& parameters = module.named_parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const Parameter& p = parameters[k].variable;
    BOOST_TEST(identical(p.peek(), released::numbers(static_cast<std::int64_t>(k), p.shape(), p.dtype())),
               what << ": " << parameters[k].name);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(released_files)

BOOST_AUTO_TEST_CASE(there_are_some) {
  std::set<std::string> names;
  for (const fs::path& v : versions()) names.insert(v.filename().string());
  for (const char* version : {"before-0.1.0", "0.1.0", "0.2.0"}) BOOST_TEST(names.contains(version), version);
}

BOOST_AUTO_TEST_CASE(tensors_of_every_dtype) {
  for (const fs::path& v : versions())
    for (const char* name : {"tensors.safetensors", "tensors.pt", "tensors.npz"}) {
      const io::TensorFile file = io::read_tensors(v / name);
      const std::vector<io::NamedTensor> wanted = released::tensors();
      BOOST_TEST(file.size() == wanted.size());
      for (const io::NamedTensor& t : wanted) BOOST_TEST(identical(file.tensor(t.name), t.tensor), v << name << t.name);
      if (std::string(name).ends_with(".safetensors")) BOOST_TEST(file.metadata().at("made by") == "make_released");
    }
  for (const fs::path& v : versions())
    BOOST_TEST(identical(io::read_npy(v / "array.npy"), released::tensors()[0].tensor));
}

BOOST_AUTO_TEST_CASE(nets) {
  for (const fs::path& v : versions())
    for (const char* name : {"net.safetensors", "net.pt", "net.npz"}) {
      const dsl::Network net = released::network();
      io::load(net, v / name);
      check_numbers(net, (v / name).string());
    }
}

BOOST_AUTO_TEST_CASE(rtneural_nets) {
  for (const fs::path& v : versions()) {
    const auto net = io::read_rtneural(v / "net.json");
    BOOST_TEST(net->size() == 2U);
    check_numbers(*net, (v / "net.json").string());
  }
}

BOOST_AUTO_TEST_CASE(checkpoints) {
  for (const fs::path& v : versions()) {
    released::Training t, wanted;
    wanted.begin();
    released::assign_numbers(t.net.named_parameters(), 1000);
    t.at = train::load_checkpoint(v / "checkpoint.safetensors", t.net, t.adam, &t.schedule);
    check_numbers(t.net, v.string());
    BOOST_TEST((t.at == wanted.at));
    BOOST_TEST(t.schedule.steps() == 3);
    BOOST_TEST(t.schedule.base() == 0.5);
    BOOST_TEST(t.adam.learning_rate() == 0.0625);  // 0.5 halved three times
    for (std::size_t k = 0; k < t.adam.states().size(); ++k)
      BOOST_TEST(identical(t.adam.states()[k].variable.peek(), wanted.adam.states()[k].variable.peek()),
                 t.adam.states()[k].name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
