/// Callbacks that show values: the progress line, CSV files, curves.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <locale>
#include <ostream>
#include <sstream>

#include "ferrite/io/atomic_file.h"
#include "ferrite/train/callbacks.h"
#include "ferrite/train/line_chart.h"

namespace ferrite::train {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr double kShowEvery = 0.1;  // seconds

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  std::ostringstream out;
  out.imbue(std::locale::classic());
  if (s >= 3600) out << s / 3600 << ':' << std::setfill('0') << std::setw(2);
  out << s / 60 % 60 << ':' << std::setfill('0') << std::setw(2) << s % 60;
  return out.str();
}

/// The shortest decimal that reads back as the same number; nothing for NaN.
std::string exact(double value) {
  if (std::isnan(value)) return {};
  char digits[32];
  return {std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr};
}

void write(const std::filesystem::path& path, const std::string& text) {
  io::write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace

ProgressBar::ProgressBar(std::ostream& out, bool terminal) : out_(&out), terminal_(terminal) {}

void ProgressBar::on_train_begin(Training&) {
  start_ = Clock::now();
  shown_ = {};
  first_ = -1;
}

std::string ProgressBar::line(const Training& t) const {
  const std::int64_t batches = t.data().batches();
  const double done = static_cast<double>(t.batch()) / static_cast<double>(std::max<std::int64_t>(1, batches));
  const auto filled = std::min(kBarWidth, static_cast<std::size_t>(done * kBarWidth + 0.5));
  const double elapsed = std::max(1e-9, std::chrono::duration<double>(Clock::now() - start_).count());
  const double samples = static_cast<double>(t.data().samples());
  const double seen = (static_cast<double>(t.epoch()) + done) * samples;
  const double rate = (seen - static_cast<double>(first_)) / elapsed;
  const double left = rate > 0 ? (static_cast<double>(t.epochs()) * samples - seen) / rate : 0;
  std::ostringstream s;
  s.imbue(std::locale::classic());  // the program's own may write 1.234,5
  s << "epoch " << std::setw(static_cast<int>(std::to_string(t.epochs()).size())) << t.epoch() + 1 << '/' << t.epochs()
    << "  [" << std::string(filled, '#') << std::string(kBarWidth - filled, '.') << ']';
  for (const auto& [name, value] : t.logs()) s << "  " << name << ' ' << std::setprecision(4) << value;
  s << "  " << std::fixed << std::setprecision(0) << rate << " samples/s  ETA " << clock_text(std::max(0.0, left));
  return s.str();
}

void ProgressBar::on_batch_end(Training& t) {
  if (first_ < 0) {  // of an earlier run: the batch that has just ended is of this one
    const double before =
        static_cast<double>(t.epoch()) + static_cast<double>(t.batch() - 1) / static_cast<double>(t.data().batches());
    first_ = static_cast<std::int64_t>(before * static_cast<double>(t.data().samples()));
  }
  const auto now = Clock::now();
  if (!terminal_ || !t.is_main() || std::chrono::duration<double>(now - shown_).count() < kShowEvery) return;
  shown_ = now;
  *out_ << "\r\x1b[K" << line(t) << std::flush;
}

void ProgressBar::on_epoch_end(Training& t) {
  if (!t.is_main()) return;
  if (terminal_) *out_ << "\r\x1b[K";
  *out_ << line(t) << (terminal_ ? "" : "\n") << std::flush;
}

void ProgressBar::on_train_end(Training& t) {
  if (terminal_ && t.is_main()) *out_ << '\n' << std::flush;
}

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
  write(path_, text);
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
  write(path_, line_chart(series, {.title = title_, .x_label = "epoch"}));
}

}  // namespace ferrite::train
