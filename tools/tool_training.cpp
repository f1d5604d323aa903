/// Trains nets by a configuration, and runs trained nets.
#include "tool_training.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include "classic_numbers.h"
#include "ferrite/io/any_file.h"
#include "ferrite/io/csv.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/time_series.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/system/files.h"
#include "ferrite/tensor/threads.h"
#include "ferrite/train/adapt.h"
#include "ferrite/train/fit.h"
#include "ferrite/train/net_file.h"
#include "ferrite/train/split.h"
#include "ferrite/train/windows.h"
#include "ferrite/train/words.h"
#include "tool_config.h"

namespace ferrite::tools {
namespace {

std::filesystem::path beside(const std::filesystem::path& config, const std::string& path) {
  return std::filesystem::path(path).is_absolute() ? std::filesystem::path(path) : config.parent_path() / path;
}

bool ends_with(const std::filesystem::path& path, std::string_view ending) { return path.extension() == ending; }

/// Returns the examples of a table: columns as inputs and targets, or windows of a series.
train::Dataset from_table(const std::filesystem::path& path, Config& c) {
  const io::CsvTable table = io::read_csv(path);
  const std::vector<std::string> inputs = c.texts("inputs"), targets = c.texts("targets");
  if (inputs.empty()) c.refuse("inputs", "is missing: the columns that the net is given");
  const double unit = c.number("unit", 1);
  if (!(unit > 0)) c.refuse("unit", "must be above 0");
  const Tensor x = table.numbers(inputs) / unit;
  if (c.has("windows")) {
    Config& w = c.table("windows");
    std::vector<std::int64_t> places;
    for (const std::string& t : targets) {
      const auto at = std::find(inputs.begin(), inputs.end(), t);
      if (at == inputs.end()) c.refuse("targets", "of windows must be among the inputs; '" + t + "' is not");
      places.push_back(at - inputs.begin());
    }
    const std::int64_t horizon = w.whole("horizon", 1, 1);
    return train::windows(x, {.length = w.whole("length", 32, 1),
                              .horizon = horizon,
                              .step = w.whole("step", 1, 1),
                              .delay = w.whole("delay", 0, 0),
                              .targets = places,
                              .flat = true});
  }
  if (targets.empty()) c.refuse("targets", "is missing: the columns that the net should give");
  if (c.flag("classes", false)) {
    if (targets.size() != 1) c.refuse("targets", "of classes must be one column");
    return {{x, table.categories(targets[0]).codes}};
  }
  return {{x, table.numbers(targets) / unit}};
}

/// Returns the examples of a file of tensors: "x" and "y", and "lengths" if x holds concatenated sequences.
train::Dataset from_tensors(const std::filesystem::path& path, Config& c) {
  const io::TensorFile file = io::read_tensors(path);
  const Tensor x = file.tensor(c.text("input", "x")), y = file.tensor(c.text("target", "y"));
  const Tensor targets = is_integer(y.dtype()) ? cast(y, Dtype::i64) : y;
  const std::string lengths = c.text("lengths", file.contains("lengths") ? "lengths" : "");
  if (lengths.empty()) return {{x, targets}};
  return {{train::sequences(x, file.tensor(lengths)), targets}};
}

train::Dataset read_data(const std::filesystem::path& path, Config& c) {
  if (ends_with(path, ".csv")) return from_table(path, c);
  if (ends_with(path, ".ts")) {
    const io::TimeSeries series = io::read_time_series(path);
    return {{train::sequences(series.values, series.lengths),
             series.labels.defined() ? series.labels : unsqueeze(series.targets, 1)}};
  }
  return from_tensors(path, c);
}

struct Parts {
  train::Dataset training;
  std::optional<train::Dataset> validation{};
};

Parts read_parts(const std::filesystem::path& config, Config& c) {
  const std::string file = c.text("file");
  const bool is_table = ends_with(file, ".csv"), is_series = ends_with(file, ".ts");
  for (const char* key : {"inputs", "targets", "unit", "classes", "windows"})
    c.only_where(is_table, key, "is for tables, " + file + " is none");
  c.only_where(!c.has("windows"), "classes", "is not for windows, whose targets are numbers");
  for (const char* key : {"input", "target", "lengths"})
    c.only_where(!is_table && !is_series, key, "is for files of tensors, " + file + " is none");
  const train::Dataset all = read_data(beside(config, file), c);
  const double share = c.number("validation", 0);
  if (!(share >= 0 && share < 1)) c.refuse("validation", "must be a share between 0 and 1");
  const bool by_file = c.has("validation_file");
  c.only_where(!by_file || share == 0, "validation", "is a share; validation_file replaces it");
  for (const char* key : {"split", "seed", "gap"})
    c.only_where(share > 0, key, "is for a share of the examples: set validation = 0.2");
  const bool random = c.one_of("split", "random", {"random", "time"}) == "random";
  const auto seed = static_cast<std::uint64_t>(c.whole("seed", 0, 0));
  const std::int64_t gap = c.whole("gap", 0, 0);
  if (all.size() == 0) c.refuse(c.has("windows") ? "windows" : "file", "leaves no examples");
  if (by_file) return {all, read_data(beside(config, c.text("validation_file")), c)};
  if (share == 0) return {all};
  const std::vector<train::Dataset> parts = c.with("validation", [&] {
    return train::split(all, {1 - share, share}, {.shuffle = random, .seed = seed, .gap = gap});
  });
  if (parts[0].size() == 0 || parts[1].size() == 0)
    c.refuse("validation", "leaves " + std::to_string(parts[0].size()) + " examples to learn from and " +
                               std::to_string(parts[1].size()) + " for validation");
  return {parts[0], parts[1]};
}

std::unique_ptr<nn::Optimizer> optimizer_of(const nn::Module& net, Config& c) {
  const std::string name = c.one_of("optimizer", "adam", {"adam", "adamw", "sgd", "rmsprop"});
  const double rate = c.number("learning_rate", name == "sgd" ? 1e-2 : 1e-3), decay = c.number("weight_decay", 0);
  c.only_where(name == "sgd", "momentum", "is for sgd, the optimizer is " + name);
  if (name == "sgd")
    return std::make_unique<nn::Sgd>(
        net.parameters(),
        nn::SgdOptions{.learning_rate = rate, .momentum = c.number("momentum", 0), .weight_decay = decay});
  if (name == "rmsprop")
    return std::make_unique<nn::RmsProp>(net.parameters(),
                                         nn::RmsPropOptions{.learning_rate = rate, .weight_decay = decay});
  const nn::AdamOptions options{.learning_rate = rate, .weight_decay = decay};
  if (name == "adamw") return std::make_unique<nn::AdamW>(net.parameters(), options);
  return std::make_unique<nn::Adam>(net.parameters(), options);
}

train::DataLoader loader_of(const train::Dataset& data, Config& c, bool training) {
  return train::DataLoader(data, {.batch_size = c.whole("batch_size", 32, 1),
                                  .shuffle = training && c.flag("shuffle", true),
                                  .seed = static_cast<std::uint64_t>(c.whole("seed", 0, 0)),
                                  .bucket_lengths = training ? c.wholes("bucket_lengths") : std::vector<std::int64_t>{},
                                  .buckets = training ? static_cast<int>(c.whole("buckets", 0, 0)) : 0,
                                  .threads = static_cast<int>(c.whole("threads", 0, 0))});
}

std::vector<train::AnyCallback> callbacks_of(Config& c, const nn::Module& net, const std::filesystem::path& folder,
                                             const std::vector<std::string>& metrics, bool validated, std::ostream& out,
                                             bool terminal) {
  std::vector<std::string> values = {"loss"};
  values.insert(values.end(), metrics.begin(), metrics.end());
  for (std::size_t i = 0, n = validated ? values.size() : 0; i < n; ++i) values.push_back("val_" + values[i]);
  const bool looked_at = c.has("early_stopping") || c.has("reduce_on_plateau");
  c.only_where(looked_at, "monitor", "is what early_stopping and reduce_on_plateau look at, and there is neither");
  const train::Monitor monitor{.value = c.one_of("monitor", validated ? "val_loss" : "loss",
                                                 std::vector<std::string_view>(values.begin(), values.end()))};
  std::vector<train::AnyCallback> all = {train::ProgressBar(out, terminal)};
  if (c.has("ema")) c.with("ema", [&] { all.emplace_back(train::Ema(net.parameters(), c.number("ema", 0.999))); });
  if (c.has("early_stopping"))
    all.emplace_back(train::EarlyStopping({.monitor = monitor, .patience = c.whole("early_stopping", 0, 0)}));
  if (c.has("reduce_on_plateau"))
    all.emplace_back(train::ReduceLROnPlateau({.monitor = monitor, .patience = c.whole("reduce_on_plateau", 10, 0)}));
  if (c.flag("tensorboard", false)) all.emplace_back(train::TensorBoard(folder / "tensorboard", {.histograms = 1}));
  all.emplace_back(train::CSVLogger(folder / "log.csv"));
  all.emplace_back(train::Curves(folder / "loss.svg"));
  return all;
}

/// Checks, before anything is written, that the net takes an example and returns what the loss compares with its
/// target.
void check_fit(const Config& c, const dsl::Network& net, const train::Dataset& data, const std::string& loss) {
  const std::int64_t first = 0;
  const train::Batch one = data.batch(std::span(&first, 1));
  const std::string example =
      "an example is " + data[0][0].spec().str() + " with the target " + data[0][1].spec().str();
  const Tensor y = [&] {
    try {
      const bool training = net.training();
      net.eval();
      const Tensor given = net(one.x(), one.context());
      if (training) net.train();
      return given;
    } catch (const Error& e) {
      c.refuse("net", std::string(e.what()) + "; " + example);
    }
  }();
  const bool classes = loss.starts_with("cross_entropy");
  if (classes && is_float(one.y().dtype()) && one.y().shape()[-1] == 1)
    c.refuse("training", loss + " is for classes, and " + example + "; set data.classes = true, or another loss");
  if (!classes && y.shape() != one.y().shape())
    c.refuse("net", "gives " + y.spec().str() + " for a batch of one, whose target is " + one.y().spec().str());
}

/// During its lifetime, Ctrl-C prints how to continue before it ends the program as usual.
class Interruptions {
 public:
  Interruptions() : before_(std::signal(SIGINT, say)) {
    if (before_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  }
  ~Interruptions() { std::signal(SIGINT, before_); }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  static void say(int) {
    constexpr std::string_view kText =
        "\nferrite: interrupted; run the same command again to continue from the last save\n";
    constexpr int kStandardError = 2;
    if (ferrite::detail::system_calls().write(kStandardError, kText.data(), kText.size()) < 0)
      std::_Exit(2);  // the output is closed
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  void (*before_)(int);
};

/// Trains the net; the error for a checkpoint of another training says what the command can do about it.
train::History fit(const dsl::Network& net, const train::DataLoader& training, const train::FitOptions& options,
                   const std::filesystem::path& folder) {
  try {
    const Interruptions interruptions;
    return train::fit(net, training, options);
  } catch (const train::OtherTrainingError& e) {
    const std::string& name = e.changes().front().name;
    throw train::OtherTrainingError(e.file(), e.changes(),
                                    "delete " + folder.string() + " or pass --restart to start over, or --changed " +
                                        name.substr(0, name.find('.')) + " to continue with the new value");
  }
}

Tensor read_input(const std::filesystem::path& path) {
  if (ends_with(path, ".npy")) return io::read_npy(path);
  if (ends_with(path, ".csv")) return io::read_csv(path).numbers();
  return io::read_tensors(path).tensor("x");
}

}  // namespace

void train(const std::filesystem::path& path, const TrainingChoice& choice, std::ostream& out, bool terminal) {
  const ClassicNumbers classic(out);
  Config c = Config::read(path);
  const std::string words = c.text("net");
  const auto seed = static_cast<std::uint64_t>(c.whole("seed", 0, 0));
  const std::filesystem::path folder = beside(path, c.text("output", path.stem().string()));
  set_threads(static_cast<int>(c.whole("threads", 1, 1)));
  const dsl::Network net = c.with("net", [&] { return train::parse_words(words).build(seed); });
  const Parts parts = read_parts(path, c.table("data"));
  const train::DataLoader training = loader_of(parts.training, c.table("loader"), true);
  std::optional<train::DataLoader> validation;
  if (parts.validation) validation.emplace(loader_of(*parts.validation, c.table("loader"), false));

  Config& t = c.table("training");
  const std::unique_ptr<nn::Optimizer> optimizer = t.with("optimizer", [&] { return optimizer_of(net, t); });
  const std::int64_t epochs = t.whole("epochs", 10, 1);
  std::optional<nn::CosineSchedule> cosine;
  if (t.one_of("schedule", "constant", {"constant", "cosine"}) == "cosine") cosine.emplace(*optimizer, epochs);
  const std::vector<std::string> names = t.texts("metrics");
  std::vector<train::AnyMetric> metrics;
  t.with("metrics", [&] { metrics.assign(names.begin(), names.end()); });
  const std::string loss = t.text("loss", "mse");
  const double clip_norm = t.number("clip_norm", 0);
  if (!(clip_norm >= 0)) t.refuse("clip_norm", "must not be negative");
  train::FitOptions options{.loss = t.with("loss", [&] { return train::Loss(loss); }),
                            .optimizer = optimizer.get(),
                            .epochs = epochs,
                            .validation = validation ? &*validation : nullptr,
                            .metrics = std::move(metrics),
                            .accumulate = t.whole("accumulate", 1, 1),
                            .clip_norm = clip_norm,
                            .schedule = cosine ? &*cosine : nullptr,
                            .schedule_by_epoch = true,
                            .checkpoint = folder / "training.safetensors",
                            .checkpoint_every = t.whole("checkpoint_every", 0, 0),
                            .identity = {{"net_seed", std::to_string(seed)}},  // seed of the first weights
                            .changed = choice.changed};
  options.callbacks = callbacks_of(c.table("callbacks"), net, folder, names, validation.has_value(), out, terminal);
  c.finish();
  check_fit(c, net, parts.training, loss);

  if (train::standardizes(net)) train::adapt(net, parts.training);
  std::filesystem::create_directories(folder);
  out << net.summary() << parts.training.size() << " examples to learn from";
  if (parts.validation) out << ", " << parts.validation->size() << " for validation";
  out << "\n\n";
  if (choice.restart) std::filesystem::remove(options.checkpoint);
  const train::History history = fit(net, training, options, folder);
  const std::filesystem::path written = folder / "net.safetensors";
  if (!history.stopped().empty()) out << "stopped: " << history.stopped() << '\n';
  if (history.resumed() == history.epochs() && std::filesystem::exists(written)) {
    out << "already trained: " << history.epochs() << " of " << epochs << " epochs; " << written.string()
        << " is as it was. To train longer, raise training.epochs; to start over, pass --restart\n";
    return;
  }
  train::save_net(net, words, written);
  out << written.string() << " is written\n";
}

void run(const std::filesystem::path& path, const std::filesystem::path& input, const std::filesystem::path& output,
         std::ostream& out) {
  const dsl::Network net = train::read_network(path);
  const Tensor y = net(read_input(input));
  if (output.empty())
    out << y.str() << '\n';
  else
    io::write_npy(output, y);
}

void summary(const std::string& net, std::ostream& out) {
  out << (net.find('(') == std::string::npos ? train::read_network(net) : train::parse_words(net).build(/*seed=*/0))
             .summary();
}

}  // namespace ferrite::tools
