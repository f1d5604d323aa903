/// Callbacks that write values of epochs: CSV files, curves.
#include <charconv>
#include <cmath>

#include "ferrite/io/text_file.h"
#include "ferrite/train/callbacks.h"
#include "ferrite/train/line_chart.h"

namespace ferrite::train {
namespace {

/// The shortest decimal that reads back as the same number; nothing for NaN.
std::string exact(double value) {
  if (std::isnan(value)) return {};
  char digits[32];
  return {std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr};
}

/// What the values are called, where they are one: "loss" of "loss" and "val_loss".
std::string shared_name(const std::vector<std::string>& names) {
  std::string shared;
  for (const std::string& name : names) {
    const std::string plain = name.starts_with("val_") ? name.substr(4) : name;
    if (!shared.empty() && plain != shared) return {};
    shared = plain;
  }
  return shared;
}

}  // namespace

void CSVLogger::on_epoch_end(Training& t) {
  if (!t.is_main()) return;
  std::string text = "epoch";
  const History& h = t.history();
  for (const std::string& name : h.names()) text += ',' + name;
  text += '\n';
  for (std::int64_t e = 0; e < h.epochs(); ++e) {
    text += std::to_string(e + 1);
    for (const auto& [name, value] : h.at(e)) text += ',' + exact(value);
    text += '\n';
  }
  io::write_text(path_, text);
}

void Curves::on_epoch_end(Training& t) {
  if (!t.is_main()) return;
  const History& h = t.history();
  std::vector<std::string> names = names_;
  if (names.empty())
    for (const std::string& name : h.names())
      if (name == "loss" || name == "val_loss") names.push_back(name);
  std::vector<Series> series;
  for (const std::string& name : names) {
    Series s{.name = name, .x = {}, .y = h[name]};
    for (std::int64_t e = 1; e <= h.epochs(); ++e) s.x.push_back(static_cast<double>(e));
    series.push_back(std::move(s));
  }
  write_line_chart(path_, series, {.title = title_, .x_label = "epoch", .y_label = shared_name(names)});
}

}  // namespace ferrite::train
