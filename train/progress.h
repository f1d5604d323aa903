#pragma once
/// A progress line for training: loss, accuracy, speed, remaining time.
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace ferrite::train {

/// The progress of a training run: on a terminal one line that is written over (epoch, bar, loss, accuracy, samples a
/// second, time left), elsewhere one plain line for each epoch. Writes to the given stream only.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal, std::int64_t epochs, std::int64_t samples_per_epoch);

  void begin_epoch();
  /// After each batch: its samples, mean loss and, where there is such a thing, share of right answers.
  void batch(std::int64_t samples, double loss, std::optional<double> accuracy = {});
  /// Ends the epoch; `note` is appended to its line.
  void end_epoch(const std::string& note = {});

  std::int64_t epoch() const { return epoch_; }
  /// Of the epoch so far.
  double loss() const { return seen_ ? loss_sum_ / static_cast<double>(seen_) : 0; }
  double accuracy() const { return seen_ ? right_ / static_cast<double>(seen_) : 0; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  std::ostream& out_;
  bool terminal_;
  std::int64_t epochs_, samples_;
  std::int64_t epoch_ = 0;
  std::int64_t seen_ = 0;
  std::int64_t total_seen_ = 0;
  double loss_sum_ = 0;
  double right_ = 0;
  bool judged_ = false;  // whether accuracies were given
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
};

}  // namespace ferrite::train
