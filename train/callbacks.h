#pragma once
/// The usual callbacks, with the names that Keras gave them. Patience counts as in PyTorch's schedulers: training ends,
/// or the rate falls, one epoch later than with the same number in Keras.
#include <chrono>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/weight_average.h"
#include "ferrite/train/callback.h"
#include "ferrite/train/metrics.h"
#include "ferrite/train/tensorboard.h"

namespace ferrite::train {

/// The value that a callback watches, and what makes it better.
struct Monitor {
  std::string value = "val_loss";  ///< a name of Training::logs
  /// True if larger values are better. Unset: the name decides; losses and errors should fall, and other metrics
  /// (accuracy, f1, auc, r2, ...) should grow.
  std::optional<bool> larger_is_better{};
  double least_change = 0;  ///< a value counts as better only when it beats the best by more than this
};

/// Writes the progress of training to a stream. On a terminal it updates one line with a bar, the values, samples per
/// second and the time left, finally the time taken; elsewhere it writes one plain line per epoch, without the bar.
class ProgressBar final : public Callback {
 public:
  /// Writes to `out`, which must outlive training. `terminal` is usually `on_terminal()`. A terminal's line is never
  /// wider than `columns`: first the bar becomes shorter, then the samples per second, the bar and the last values are
  /// left out. 0 columns: the width that the terminal of standard output or error has at the moment, unlimited when
  /// neither is a terminal.
  explicit ProgressBar(std::ostream& out, bool terminal = false, int columns = 0);
  /// Returns whether standard output is a terminal.
  static bool on_terminal() noexcept;
  std::string name() const override { return "progress_bar"; }
  void on_train_begin(Training&) override;
  void on_batch_end(Training&) override;
  void on_epoch_end(Training&) override;
  void on_train_end(Training&) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(const Training&) const;

  std::ostream* out_;
  bool terminal_;
  int columns_;
  Clock::time_point start_{}, shown_{};
  std::int64_t first_ = 0;  ///< samples that an earlier run has seen
};

/// The options of EarlyStopping: the value to watch, when training ends, and with which weights.
struct EarlyStoppingOptions {
  Monitor monitor{};
  std::int64_t patience = 0;         ///< epochs in a row without improvement that are tolerated; one more ends training
  bool restore_best_weights = true;  ///< whether training ends with the parameters and buffers of the best epoch
  /// First epoch whose value is compared, counted from 0; earlier ones are neither the best nor count for patience.
  std::int64_t start_from_epoch = 0;
};

/// Ends training when a value has not become better for more than `patience` epochs in a row (Keras: for `patience`
/// epochs), and by default restores the best weights. The best weights are those with
/// which the value was computed, so with Ema they are the averages. Put Ema before EarlyStopping in the list.
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  std::string name() const override { return "early_stopping"; }
  void on_train_begin(Training&) override;
  void on_epoch_end(Training&) override;
  void on_train_end(Training&) override;
  std::string settings() const override;
  std::vector<double> state() const override;
  void restore(const std::vector<double>& state) override;
  std::vector<nn::Named<State>> variables() const override { return weights_; }
  /// Returns the best value so far; NaN when no epoch had a value.
  double best() const { return best_; }
  /// Returns the epoch with the best value, counted from 1 as in messages and logs; 0 when no epoch had a value.
  std::int64_t best_epoch() const { return best_epoch_ + 1; }

 private:
  EarlyStoppingOptions options_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  std::int64_t best_epoch_ = -1, waited_ = 0;
  std::vector<nn::Named<State>> weights_;  ///< parameters and buffers of the best epoch
};

/// The options of ModelCheckpoint: whether to save the best epoch's weights, by which value, and how many of the last.
struct ModelCheckpointOptions {
  Monitor monitor{};
  bool best = true;       ///< saves "best.safetensors" whenever the value becomes better
  std::int64_t last = 0;  ///< most recent epochs to keep as "epoch-0012.safetensors", numbered from 1; 0: none
};

/// Saves the model's best weights, and those of its last epochs, in a folder. To resume training, use
/// `FitOptions::checkpoint` instead.
class ModelCheckpoint final : public Callback {
 public:
  explicit ModelCheckpoint(std::filesystem::path folder, ModelCheckpointOptions options = {});
  std::string name() const override { return "model_checkpoint"; }
  void on_train_begin(Training&) override;
  void on_epoch_end(Training&) override;
  std::vector<double> state() const override { return {best_}; }
  void restore(const std::vector<double>& state) override;
  std::filesystem::path best_path() const { return folder_ / "best.safetensors"; }

 private:
  std::filesystem::path folder_;
  ModelCheckpointOptions options_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
};

/// The options of ReduceLROnPlateau, which are passed on to nn::PlateauSchedule.
struct ReduceLROnPlateauOptions {
  Monitor monitor{};
  double factor = 0.1;         ///< number by which the rate is multiplied
  std::int64_t patience = 10;  ///< epochs in a row without improvement that are tolerated
  std::int64_t cooldown = 0;   ///< epochs after a reduction that do not count for patience
  double least_rate = 0;       ///< lower bound of the rate
};

/// Lowers the learning rate when a value stops improving (nn::PlateauSchedule).
class ReduceLROnPlateau final : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {}) : options_(std::move(options)) {}
  std::string name() const override { return "reduce_lr_on_plateau"; }
  void on_train_begin(Training&) override;
  void on_epoch_end(Training&) override;
  std::string settings() const override;
  bool sets_rate() const override { return true; }
  std::vector<double> state() const override;
  void restore(const std::vector<double>& state) override;

 private:
  ReduceLROnPlateauOptions options_;
  std::optional<nn::PlateauSchedule> schedule_;
};

/// Writes the values of all epochs to a CSV file after every epoch.
class CSVLogger final : public Callback {
 public:
  explicit CSVLogger(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return "csv_logger"; }
  void on_epoch_end(Training&) override;

 private:
  std::filesystem::path path_;
};

/// Draws the values of these names over epochs as curves in one SVG picture, which it writes after every epoch. No
/// names: the losses.
class Curves final : public Callback {
 public:
  explicit Curves(std::filesystem::path path, std::vector<std::string> names = {}, std::string title = {})
      : path_(std::move(path)), names_(std::move(names)), title_(std::move(title)) {}
  std::string name() const override { return "curves"; }
  void on_epoch_end(Training&) override;

 private:
  std::filesystem::path path_;
  std::vector<std::string> names_;
  std::string title_;
};

/// The options of TensorBoard: what is written besides the values of epochs.
struct TensorBoardOptions {
  std::int64_t histograms = 0;  ///< histograms of all parameters after every epoch divisible by this; 0: none
  bool update_losses = false;   ///< after every batch, also writes the mean loss of the epoch so far
};

/// Writes the values of epochs to event files that `tensorboard --logdir` shows. Training and validation are two runs,
/// "<folder>/train" and "<folder>/validation", so that their curves share a chart.
class TensorBoard final : public Callback {
 public:
  explicit TensorBoard(std::filesystem::path folder, TensorBoardOptions options = {});
  std::string name() const override { return "tensorboard"; }
  void on_train_begin(Training&) override;
  void on_batch_end(Training&) override;
  void on_epoch_end(Training&) override;

 private:
  std::filesystem::path folder_;
  TensorBoardOptions options_;
  std::shared_ptr<EventWriter> training_, validation_;
};

/// Ends training without an exception when a loss or a gradient is not finite; `History::stopped` says where.
class TerminateOnNaN final : public Callback {
 public:
  std::string name() const override { return "terminate_on_nan"; }
  bool on_not_finite(Training&, const std::string& what) override;
  std::string settings() const override { return "ends training"; }
};

/// Keeps exponential moving averages of the weights, starting with the first update of this training. They are updated
/// after every update and replace the weights during validation and, with `in_the_end`, when training has ended.
class Ema final : public Callback {
 public:
  /// Averages `parameters`, with the weight `decay` for the old average and 1 - decay for the new value. `in_the_end`:
  /// whether training ends with the averages as parameters. Throws ValueError for a decay outside [0, 1).
  explicit Ema(std::vector<Parameter> parameters, double decay = 0.999, bool in_the_end = true);
  std::string name() const override { return "ema"; }
  void on_train_begin(Training&) override;
  void on_batch_end(Training&) override;
  void on_validation_begin(Training&) override;
  void on_validation_end(Training&) override;
  void on_train_end(Training&) override;
  std::string settings() const override;
  std::vector<nn::Named<State>> variables() const override { return average_->states(); }
  std::vector<double> state() const override { return {static_cast<double>(seen_)}; }
  void restore(const std::vector<double>& state) override;

 private:
  std::vector<Parameter> parameters_;
  nn::WeightAverageOptions options_;
  std::shared_ptr<nn::WeightAverage> average_;
  bool in_the_end_;
  std::int64_t seen_ = 0;  ///< the last update that the averages include
};

/// Calls functions of the user's; those that are not given are skipped.
class LambdaCallback final : public Callback {
 public:
  /// The functions to call; empty ones are skipped.
  struct Functions {
    std::function<void(Training&)> on_train_begin{}, on_epoch_begin{}, on_batch_end{}, on_epoch_end{}, on_train_end{};
  };
  explicit LambdaCallback(Functions f) : f_(std::move(f)) {}
  std::string name() const override { return "lambda"; }
  void on_train_begin(Training& t) override { call(f_.on_train_begin, t); }
  void on_epoch_begin(Training& t) override { call(f_.on_epoch_begin, t); }
  void on_batch_end(Training& t) override { call(f_.on_batch_end, t); }
  void on_epoch_end(Training& t) override { call(f_.on_epoch_end, t); }
  void on_train_end(Training& t) override { call(f_.on_train_end, t); }

 private:
  static void call(const std::function<void(Training&)>& f, Training& t) {
    if (f) f(t);
  }
  Functions f_;
};

}  // namespace ferrite::train
