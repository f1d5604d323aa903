/// The progress line.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <locale>
#include <ostream>
#include <sstream>

#include "ferrite/train/callbacks.h"

namespace ferrite::train {
namespace {

constexpr std::size_t kBarWidth = 24, kShortBar = 10;
constexpr double kShowEvery = 0.1;  // seconds

std::ostringstream classic_stream() {
  std::ostringstream s;
  s.imbue(std::locale::classic());  // the program's own may write 1.234,5
  return s;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  std::ostringstream out = classic_stream();
  if (s >= 3600) out << s / 3600 << ':' << std::setfill('0') << std::setw(2);
  out << s / 60 % 60 << ':' << std::setfill('0') << std::setw(2) << s % 60;
  return out.str();
}

/// Of the terminal that a person looks at; 0: there is none.
int columns_of_terminal() {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 0;
}

/// What a line has, to be fitted into a width.
struct Parts {
  std::string epoch, rate, time;
  std::vector<std::string> values{};
  double done = 0;

  std::string bar(std::size_t width) const {
    const auto filled = std::min(width, static_cast<std::size_t>(done * static_cast<double>(width) + 0.5));
    return "  [" + std::string(filled, '#') + std::string(width - filled, '.') + ']';
  }
  std::string line(std::size_t bar_width, bool with_rate, std::size_t values_shown) const {
    std::string s = epoch + (bar_width ? bar(bar_width) : "");
    for (std::size_t i = 0; i < values_shown; ++i) s += "  " + values[i];
    return s + (with_rate ? "  " + rate : "") + "  " + time;
  }
  /// The longest form of fewer than `columns` characters: in the last column a terminal would begin another line.
  std::string fitting(std::size_t columns) const {
    const std::size_t n = values.size();
    for (const auto& [bar_width, with_rate] :
         {std::pair{kBarWidth, true}, {kShortBar, true}, {kShortBar, false}, {std::size_t{0}, false}})
      if (std::string s = line(bar_width, with_rate, n); s.size() < columns) return s;
    for (std::size_t shown = n; shown-- > 0;)
      if (std::string s = line(0, false, shown); s.size() < columns) return s;
    return epoch.substr(0, columns - 1);
  }
};

}  // namespace

ProgressBar::ProgressBar(std::ostream& out, bool terminal, int columns)
    : out_(&out), terminal_(terminal), columns_(columns) {
  if (columns < 0) throw ValueError("ProgressBar: columns must be at least 0, got " + std::to_string(columns));
}

void ProgressBar::on_train_begin(Training&) {
  start_ = Clock::now();
  shown_ = {};
  first_ = -1;
}

std::string ProgressBar::line(const Training& t) const {
  const std::int64_t batches = t.data().batches();
  const double done = static_cast<double>(t.batch()) / static_cast<double>(std::max<std::int64_t>(1, batches));
  const double elapsed = std::max(1e-9, std::chrono::duration<double>(Clock::now() - start_).count());
  const double samples = static_cast<double>(t.data().samples());
  const double seen = (static_cast<double>(t.epoch()) + done) * samples;
  const double rate = (seen - static_cast<double>(first_)) / elapsed;
  const double left = rate > 0 ? (static_cast<double>(t.epochs()) * samples - seen) / rate : 0;
  const bool ended = t.epoch() + 1 == t.epochs() && t.batch() >= batches;
  Parts parts;
  std::ostringstream epoch = classic_stream(), speed = classic_stream();
  epoch << "epoch " << std::setw(static_cast<int>(std::to_string(t.epochs()).size())) << t.epoch() + 1 << '/'
        << t.epochs();
  speed << std::fixed << std::setprecision(0) << rate << " samples/s";
  for (const auto& [name, value] : t.logs()) {
    std::ostringstream s = classic_stream();
    s << name << ' ' << std::setprecision(4) << value;
    parts.values.push_back(s.str());
  }
  parts.epoch = epoch.str();
  parts.rate = speed.str();
  parts.time = ended ? "in " + clock_text(elapsed) : "ETA " + clock_text(std::max(0.0, left));
  parts.done = done;
  if (!terminal_) return parts.line(0, true, parts.values.size());
  const int columns = columns_ > 0 ? columns_ : columns_of_terminal();
  return columns > 0 ? parts.fitting(static_cast<std::size_t>(columns))
                     : parts.line(kBarWidth, true, parts.values.size());
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

}  // namespace ferrite::train
