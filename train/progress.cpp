/// The progress line of a training.
#include "ferrite/train/progress.h"

#include <algorithm>
#include <iomanip>
#include <locale>
#include <ostream>
#include <sstream>

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

}  // namespace

Progress::Progress(std::ostream& out, bool terminal, std::int64_t epochs, std::int64_t samples_per_epoch)
    : out_(out), terminal_(terminal), epochs_(epochs), samples_(samples_per_epoch) {}

void Progress::begin_epoch() {
  ++epoch_;
  seen_ = 0;
  loss_sum_ = 0;
  right_ = 0;
}

void Progress::batch(std::int64_t samples, double loss, std::optional<double> accuracy) {
  const auto n = static_cast<double>(samples);
  seen_ += samples;
  total_seen_ += samples;
  loss_sum_ += loss * n;
  right_ += accuracy.value_or(0) * n;
  judged_ = judged_ || accuracy.has_value();
  if (!terminal_) return;
  const auto now = Clock::now();
  if (std::chrono::duration<double>(now - shown_).count() < kShowEvery) return;
  shown_ = now;
  out_ << "\r\x1b[K" << line() << std::flush;
}

void Progress::end_epoch(const std::string& note) {
  if (terminal_) out_ << "\r\x1b[K";
  out_ << line() << (note.empty() ? "" : "  ") << note;
  if (!terminal_ || epoch_ == epochs_) out_ << '\n';
  out_ << std::flush;
}

std::string Progress::line() const {
  const double done = samples_ ? static_cast<double>(seen_) / static_cast<double>(samples_) : 1;
  const auto filled = std::min(kBarWidth, static_cast<std::size_t>(done * kBarWidth + 0.5));
  const double elapsed = std::max(1e-9, seconds());
  const double rate = static_cast<double>(total_seen_) / elapsed;
  const auto all = static_cast<double>(epochs_ * samples_);
  const double left = rate > 0 ? (all - static_cast<double>(total_seen_)) / rate : 0;
  std::ostringstream s;
  s.imbue(std::locale::classic());  // the program's own may write 1.234,5
  s << "epoch " << std::setw(static_cast<int>(std::to_string(epochs_).size())) << epoch_ << '/' << epochs_ << "  ["
    << std::string(filled, '#') << std::string(kBarWidth - filled, '.') << "]  loss " << std::fixed
    << std::setprecision(4) << loss();
  if (judged_) s << "  accuracy " << std::setprecision(1) << 100 * accuracy() << '%';
  s << "  " << std::setprecision(0) << rate << " samples/s  ETA " << clock_text(std::max(0.0, left));
  return s.str();
}

}  // namespace ferrite::train
