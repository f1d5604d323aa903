/// Callbacks, and the values of epochs that they see: callbacks that watch a value, the weights or faults; those that
/// write the progress line, CSV files, curves and TensorBoard's event files.
#include "ferrite/train/callbacks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <limits>
#include <locale>
#include <ostream>
#include <sstream>

#include "ferrite/io/module_file.h"
#include "ferrite/io/text_file.h"
#include "ferrite/tensor/system/system.h"
#include "ferrite/train/callback.h"
#include "ferrite/train/detail/fingerprints.h"
#include "ferrite/train/detail/keeping.h"
#include "ferrite/train/line_chart.h"

// ---- the values of epochs ------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double Logs::operator[](std::string_view name) const {
  for (const auto& [n, value] : values_)
    if (n == name) return value;
  return kNoValue;
}

bool Logs::contains(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& v) { return v.first == name; });
}

void Logs::set(std::string_view name, double value) {
  for (auto& [n, old] : values_) {
    if (n != name) continue;
    old = value;
    return;
  }
  values_.emplace_back(name, value);
}

const std::vector<double>& History::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return values_[i];
  std::string list;
  for (const std::string& n : names_) list += (list.empty() ? "" : ", ") + n;
  throw ValueError("history: there is no '" + std::string(name) + "'; there are " + (list.empty() ? "none" : list));
}

Logs History::at(std::int64_t epoch) const {
  if (epoch < 0 || epoch >= epochs_)
    throw ShapeError("history: there is no epoch " + std::to_string(epoch) + ", there are " + std::to_string(epochs_));
  Logs logs;
  for (std::size_t i = 0; i < names_.size(); ++i) logs.set(names_[i], values_[i][static_cast<std::size_t>(epoch)]);
  return logs;
}

void History::add(const Logs& logs) {
  ++epochs_;
  for (std::vector<double>& v : values_) v.push_back(kNoValue);
  for (const auto& [name, value] : logs) set(name, value);
}

void History::set(std::string_view name, double value) {
  if (epochs_ == 0) throw ShapeError("history: no epoch has ended yet");
  const auto i = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  if (i == names_.size()) {
    names_.emplace_back(name);
    values_.emplace_back(static_cast<std::size_t>(epochs_), kNoValue);
  }
  values_[i].back() = value;
}

void Callback::restore(const std::vector<double>& state) {
  if (!state.empty())
    throw ValueError("callback " + name() + ": it remembers nothing, got " + std::to_string(state.size()) + " numbers");
}

// ---- a value: early stopping, the best weights, lower rates --------------------------------------------

namespace detail {
namespace {

/// Returns the value that a monitor watches. Throws ValueError when the epoch has no value of that name.
double monitored(const char* who, const Monitor& monitor, const Training& training) {
  if (training.logs().contains(monitor.value)) return training.logs()[monitor.value];
  std::string list;
  for (const auto& [name, value] : training.logs()) list += (list.empty() ? "" : ", ") + name;
  throw ValueError(std::string(who) + ": there is no value '" + monitor.value + "' to look at; there are " + list);
}

bool larger_is_better(const Monitor& monitor) {
  if (monitor.larger_is_better) return *monitor.larger_is_better;
  std::string_view name = monitor.value;
  if (name.starts_with("val_")) name.remove_prefix(4);
  if (name == "loss") return false;
  try {
    return metric(name)->larger_is_better();
  } catch (const ValueError&) {
    throw ValueError("monitor: whether '" + monitor.value + "' should grow or fall is not known; say larger_is_better");
  }
}

/// Returns whether `value` is better than `best`. NaN never is; anything else is better than NaN.
bool better(const Monitor& monitor, double value, double best) {
  if (std::isnan(value)) return false;
  if (std::isnan(best)) return true;
  return larger_is_better(monitor) ? value > best + monitor.least_change : value < best - monitor.least_change;
}

}  // namespace

}  // namespace detail

namespace {

void check_count(const char* what, std::int64_t n) {
  if (n < 0) throw ValueError(std::string(what) + " must be at least 0, got " + std::to_string(n));
}

void check_size(const std::string& who, const std::vector<double>& state, std::size_t n) {
  if (state.size() != n)
    throw ValueError("callback " + who + ": a state of " + std::to_string(state.size()) + " numbers, it has " +
                     std::to_string(n));
}

/// Returns a copy of every parameter and buffer of a model, named "best.<name>" and "best.buffer.<name>".
std::vector<nn::Named<State>> copies_of(const nn::Module& model) {
  std::vector<nn::Named<State>> copies;
  for (const auto& p : model.named_parameters())
    copies.push_back({"best." + p.name, State("best." + p.name, p.variable.peek())});
  for (const auto& b : model.named_buffers())
    copies.push_back({"best.buffer." + b.name, State("best.buffer." + b.name, b.variable.peek())});
  return copies;
}

/// Returns the parameters and buffers with which the monitored value was computed.
std::vector<Tensor> judged(const Monitor& monitor, const Training& t) {
  return monitor.value.starts_with("val_") ? t.validated() : detail::values_of(t.model());
}

/// Saves a model with other values of its parameters and buffers than its own.
void save_with(const nn::Module& model, const std::vector<Tensor>& values, const std::filesystem::path& path) {
  struct Back {
    const nn::Module& model;
    std::vector<Tensor> before;
    ~Back() { detail::assign_values(model, before); }
  } const back{model, detail::values_of(model)};
  detail::assign_values(model, values);
  io::save(model, path);
}

/// Returns a monitor as text: "monitor=val_loss", and the options that differ from the default.
std::string text_of(const Monitor& m) {
  std::string text = "monitor=" + m.value;
  if (m.larger_is_better) text += *m.larger_is_better ? ", larger is better" : ", smaller is better";
  return text + (m.least_change == 0 ? "" : ", least_change=" + detail::exact(m.least_change));
}

}  // namespace

std::string EarlyStopping::settings() const {
  return text_of(options_.monitor) + ", patience=" + std::to_string(options_.patience) +
         (options_.restore_best_weights ? "" : ", without the best weights") +
         (options_.start_from_epoch == 0 ? "" : ", start_from_epoch=" + std::to_string(options_.start_from_epoch));
}

std::string ReduceLROnPlateau::settings() const {
  return text_of(options_.monitor) + ", factor=" + detail::exact(options_.factor) +
         ", patience=" + std::to_string(options_.patience) + ", cooldown=" + std::to_string(options_.cooldown) +
         ", least_rate=" + detail::exact(options_.least_rate);
}

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  check_count("EarlyStopping: patience", options_.patience);
  check_count("EarlyStopping: start_from_epoch", options_.start_from_epoch);
  (void)detail::larger_is_better(options_.monitor);
}

void EarlyStopping::on_train_begin(Training& t) {
  best_ = std::numeric_limits<double>::quiet_NaN();
  best_epoch_ = -1;
  waited_ = 0;
  weights_ = options_.restore_best_weights ? copies_of(t.model()) : std::vector<nn::Named<State>>{};
}

void EarlyStopping::on_epoch_end(Training& t) {
  if (t.epoch() < options_.start_from_epoch) return;
  const double value = detail::monitored("EarlyStopping", options_.monitor, t);
  if (detail::better(options_.monitor, value, best_)) {
    best_ = value;
    best_epoch_ = t.epoch();
    waited_ = 0;
    if (weights_.empty()) return;
    const std::vector<Tensor> best = judged(options_.monitor, t);
    for (std::size_t i = 0; i < best.size(); ++i) weights_[i].variable.assign(best[i]);
    return;
  }
  if (++waited_ > options_.patience)
    t.stop(options_.monitor.value + " has not become better since epoch " + std::to_string(best_epoch_ + 1));
}

void EarlyStopping::on_train_end(Training& t) {
  if (weights_.empty() || best_epoch_ < 0) return;
  std::vector<Tensor> best;
  for (const auto& w : weights_) best.push_back(w.variable.peek());
  detail::assign_values(t.model(), best);
}

std::vector<double> EarlyStopping::state() const {
  return {best_, static_cast<double>(best_epoch_), static_cast<double>(waited_)};
}

void EarlyStopping::restore(const std::vector<double>& state) {
  check_size(name(), state, 3);
  best_ = state[0];
  best_epoch_ = static_cast<std::int64_t>(state[1]);
  waited_ = static_cast<std::int64_t>(state[2]);
}

ModelCheckpoint::ModelCheckpoint(std::filesystem::path folder, ModelCheckpointOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  check_count("ModelCheckpoint: last", options_.last);
  if (options_.best) (void)detail::larger_is_better(options_.monitor);
}

void ModelCheckpoint::on_train_begin(Training& t) {
  best_ = std::numeric_limits<double>::quiet_NaN();
  if (t.is_main()) std::filesystem::create_directories(folder_);
}

void ModelCheckpoint::on_epoch_end(Training& t) {
  if (options_.best) {
    const double value = detail::monitored("ModelCheckpoint", options_.monitor, t);
    if (detail::better(options_.monitor, value, best_)) {
      best_ = value;
      if (t.is_main()) save_with(t.model(), judged(options_.monitor, t), best_path());
    }
  }
  if (options_.last == 0 || !t.is_main()) return;
  const auto path = [&](std::int64_t epoch) {
    char name[48];
    std::snprintf(name, sizeof name, "epoch-%04lld.safetensors", static_cast<long long>(epoch + 1));
    return folder_ / name;
  };
  io::save(t.model(), path(t.epoch()));
  if (t.epoch() >= options_.last) std::filesystem::remove(path(t.epoch() - options_.last));
}

void ModelCheckpoint::restore(const std::vector<double>& state) {
  check_size(name(), state, 1);
  best_ = state[0];
}

void ReduceLROnPlateau::on_train_begin(Training& t) {
  const ReduceLROnPlateauOptions& o = options_;
  schedule_.emplace(t.optimizer(), nn::PlateauOptions{.maximize = detail::larger_is_better(o.monitor),
                                                      .factor = o.factor,
                                                      .patience = o.patience,
                                                      .threshold = o.monitor.least_change,
                                                      .relative = false,
                                                      .cooldown = o.cooldown,
                                                      .low = o.least_rate});
}

void ReduceLROnPlateau::on_epoch_end(Training& t) {
  schedule_->advance(detail::monitored("ReduceLROnPlateau", options_.monitor, t));
  t.log("learning_rate", t.optimizer().learning_rate());
}

std::vector<double> ReduceLROnPlateau::state() const {
  const nn::ScheduleState s = schedule_->state();
  std::vector<double> numbers = {static_cast<double>(s.steps), static_cast<double>(s.bases.size())};
  numbers.insert(numbers.end(), s.bases.begin(), s.bases.end());
  numbers.insert(numbers.end(), s.memory.begin(), s.memory.end());
  return numbers;
}

void ReduceLROnPlateau::restore(const std::vector<double>& state) {
  if (state.size() < 2 || !(state[1] >= 0) || !(state[1] <= static_cast<double>(state.size() - 2)))
    check_size(name(), state, schedule_->state().bases.size() + schedule_->state().memory.size() + 2);
  const auto bases = state.begin() + 2, memory = bases + static_cast<std::ptrdiff_t>(state[1]);
  const nn::ScheduleState s{
      .steps = static_cast<std::int64_t>(state[0]), .bases = {bases, memory}, .memory = {memory, state.end()}};
  const std::string fault = schedule_->fault_of(s);
  if (!fault.empty()) throw ValueError("callback " + name() + ": " + fault);
  schedule_->restore(s);
}

// ---- weights and faults: averages, ending where something is not finite --------------------------------

bool TerminateOnNaN::on_not_finite(Training&, const std::string&) { return true; }

Ema::Ema(std::vector<Parameter> parameters, double decay, bool in_the_end)
    : parameters_(std::move(parameters)),
      options_{.decay = decay},
      average_(std::make_shared<nn::WeightAverage>(parameters_, options_)),
      in_the_end_(in_the_end) {}

void Ema::on_train_begin(Training&) {
  average_ = std::make_shared<nn::WeightAverage>(parameters_, options_);
  seen_ = 0;
}

void Ema::on_batch_end(Training& t) {
  if (t.step() == seen_) return;  // gradients are still being gathered
  seen_ = t.step();
  average_->update();
}

void Ema::on_validation_begin(Training&) { average_->swap(); }
void Ema::on_validation_end(Training&) { average_->swap(); }
void Ema::on_train_end(Training&) {
  if (in_the_end_ && average_->count() > 0) average_->swap();
}

std::string Ema::settings() const {
  return "decay=" + detail::exact(*options_.decay) + ", parameters=" + std::to_string(parameters_.size()) +
         (in_the_end_ ? "" : ", not in the end");
}

void Ema::restore(const std::vector<double>& state) {
  if (state.size() != 1)
    throw ValueError("callback ema: a state of " + std::to_string(state.size()) + " numbers, it has one");
  seen_ = static_cast<std::int64_t>(state[0]);
}

// ---- the progress line ---------------------------------------------------------------------------------

namespace {

constexpr std::size_t kBarWidth = 24, kShortBar = 10;
constexpr double kShowEvery = 0.1;  // seconds

std::ostringstream classic_stream() {
  std::ostringstream s;
  s.imbue(std::locale::classic());  // the program's locale may write 1.234,5
  return s;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  std::ostringstream out = classic_stream();
  if (s >= 3600) out << s / 3600 << ':' << std::setfill('0') << std::setw(2);
  out << s / 60 % 60 << ':' << std::setfill('0') << std::setw(2) << s % 60;
  return out.str();
}

/// The parts of a progress line, which are fitted into a width.
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
  /// Returns the longest form of fewer than `columns` characters: in the last column a terminal would start a new line.
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

bool ProgressBar::on_terminal() noexcept { return ferrite::detail::is_terminal(false); }

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
  const int columns = columns_ > 0 ? columns_ : ferrite::detail::terminal_columns();
  return columns > 0 ? parts.fitting(static_cast<std::size_t>(columns))
                     : parts.line(kBarWidth, true, parts.values.size());
}

void ProgressBar::on_batch_end(Training& t) {
  if (first_ < 0) {  // unknown until the first batch of this run has ended: everything before it is of an earlier run
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

// ---- CSV files and curves ------------------------------------------------------------------------------

namespace {

/// Returns the shortest decimal that reads back as the same number; an empty text for NaN.
std::string exact_or_empty(double value) {
  if (std::isnan(value)) return {};
  char digits[32];
  return {std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr};
}

/// Returns the common name of values, "loss" for "loss" and "val_loss"; empty if they differ.
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
    for (const auto& [name, value] : h.at(e)) text += ',' + exact_or_empty(value);
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

// ---- TensorBoard ---------------------------------------------------------------------------------------

namespace {

/// Returns "1/weight" for "1.weight": TensorBoard groups by the part before a slash.
std::string by_layer(std::string name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) name[dot] = '/';
  return name;
}

}  // namespace

TensorBoard::TensorBoard(std::filesystem::path folder, TensorBoardOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options.histograms < 0)
    throw ValueError("TensorBoard: histograms must be at least 0, got " + std::to_string(options.histograms));
}

void TensorBoard::on_train_begin(Training& t) {
  if (!t.is_main()) return;
  training_ = std::make_shared<EventWriter>(folder_ / "train");
  validation_ = nullptr;
}

void TensorBoard::on_batch_end(Training& t) {
  if (options_.update_losses && t.is_main()) training_->scalar("update/loss", t.logs()["loss"], t.step());
}

void TensorBoard::on_epoch_end(Training& t) {
  if (!t.is_main()) return;
  const std::int64_t epoch = t.epoch() + 1;
  for (const auto& [name, value] : t.logs()) {
    const bool validation = name.starts_with("val_");
    if (validation && !validation_) validation_ = std::make_shared<EventWriter>(folder_ / "validation");
    (validation ? validation_ : training_)->scalar("epoch/" + (validation ? name.substr(4) : name), value, epoch);
  }
  if (options_.histograms == 0 || epoch % options_.histograms != 0) return;
  for (const auto& p : t.model().named_parameters()) training_->histogram(by_layer(p.name), p.variable.peek(), epoch);
}

}  // namespace ferrite::train
