// fit compared bit for bit with a hand-written loop, for combinations of models, modes, accumulation, clipping,
// schedules and averages.
#include <memory>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/train/fit.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;

namespace {

enum class Kind : std::uint8_t { net, module, own_step };
enum class Schedule : std::uint8_t { none, by_update, by_epoch };

struct Case {
  Kind kind = Kind::net;
  std::int64_t accumulate = 1;
  double clip = 0;        ///< largest joint norm of the gradients
  double clip_value = 0;  ///< largest absolute value of a gradient's elements
  Schedule schedule = Schedule::none;
  bool averages = false;

  std::string str() const {
    return "kind " + std::to_string(static_cast<int>(kind)) + ", accumulate " + std::to_string(accumulate) + ", clip " +
           std::to_string(clip) + ", clip value " + std::to_string(clip_value) + ", schedule " +
           std::to_string(static_cast<int>(schedule)) + (averages ? ", averages" : "");
  }
};

constexpr std::int64_t kEpochs = 3;
constexpr double kDecay = 0.75;

/// Returns a loader of 24 sequences of 2 to 8 steps in two buckets, in batches of 4 and of 2.
const DataLoader& loader() {
  static const DataLoader of_all = [] {
    std::vector<Tensor> each;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 24; ++i) {
      each.push_back(uniform({2 + i * 5 % 7, 3}, {.seed = 8, .call = static_cast<std::uint64_t>(i)}, -1, 1));
      labels.push_back(i * 2 % 3);
    }
    return DataLoader(Dataset({sequences(each), Tensor::from(labels, {24})}),
                      {.batch_size = 4, .seed = 5, .buckets = 2, .threads = 1});
  }();
  return of_all;
}
const DataLoader& validation() {
  static const DataLoader of_some(loader().data().first(9), {.batch_size = 5, .shuffle = false});
  return of_some;
}

/// A model of the user's that is not a layer and has its own forward function.
struct Reader final : nn::Module {
  nn::Gru gru{3, 5, {.seed = 1}};
  nn::Dropout dropout{0.2, {.seed = 3}};
  nn::BatchNorm1d norm{nn::BatchNormOptions{5}};
  nn::Linear head{5, 3, {.seed = 2}};
  Reader() { adopt("gru", gru), adopt("dropout", dropout), adopt("norm", norm), adopt("head", head); }
  Tensor classes(const Batch& b) const {
    const Tensor h = gru.run(b.x(), b.context()).state;
    return head(norm(dropout(h)));
  }
};

/// A model, its optimisers and what they train; a step of the user's own has two and clips by itself.
struct Parts {
  std::unique_ptr<Reader> reader{};
  std::unique_ptr<dsl::Network> net{};
  std::vector<Parameter> first{}, second{};
  std::unique_ptr<nn::Adam> adam{};
  std::unique_ptr<nn::Sgd> sgd{};
  std::unique_ptr<nn::Schedule> schedule{};

  explicit Parts(const Case& c) {
    if (c.kind == Kind::module)
      reader = std::make_unique<Reader>();
    else
      net = std::make_unique<dsl::Network>(
          dsl::sequence(3).gru(5).dropout(0.2).last_step().batch_norm().linear(3).build(1));
    first = module().parameters();
    if (c.kind == Kind::own_step) {
      second = {first.begin() + 4, first.end()};
      first.resize(4);
      sgd = std::make_unique<nn::Sgd>(second, nn::SgdOptions{.learning_rate = 0.05, .momentum = 0.9});
    }
    adam = std::make_unique<nn::Adam>(first, nn::AdamOptions{.learning_rate = 0.02});
    if (c.schedule != Schedule::none) schedule = std::make_unique<nn::CosineSchedule>(*adam, 12);
  }
  const nn::Module& module() const { return reader ? static_cast<const nn::Module&>(*reader) : *net; }
  StepOutput forward(const Batch& b) const {
    const Tensor y = reader ? reader->classes(b) : (*net)(b.x(), b.context());
    return {nn::cross_entropy(y, b.y()), y};
  }
  static Tensors clipped(Tensors g, const Case& c) {
    if (c.clip_value > 0) g = nn::clip_grad_value(g, c.clip_value);
    if (c.clip > 0) g = nn::clip_grad_norm(g, c.clip).grads;
    return g;
  }
  /// Updates with both optimisers from the gradients of all parameters.
  void update(const Tensors& g) const {
    adam->step(std::span(g.data(), first.size()));
    if (sgd) sgd->step(std::span(g.data() + first.size(), second.size()));
  }
};

/// Returns the number of a batch's rows whose largest entry is that of the label.
double right(const Tensor& y, const Batch& b) {
  return static_cast<double>(sum(cast(eq(argmax(y, -1), b.y()), Dtype::i64)).item<std::int64_t>());
}

/// Trains with a loop as one would write it without `fit`; returns the contents of `History`.
std::map<std::string, std::vector<double>> by_hand(const Case& c, const Parts& p) {
  std::map<std::string, std::vector<double>> history;
  std::vector<Parameter> all = p.first;
  all.insert(all.end(), p.second.begin(), p.second.end());
  std::vector<Tensor> averages;
  const nn::Module& module = p.module();
  const auto exchange = [&] {
    for (std::size_t i = 0; i < averages.size(); ++i) {
      const Tensor w = all[i].peek();
      all[i].assign(averages[i]);
      averages[i] = w;
    }
  };
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    double loss_sum = 0, hits = 0, n = 0;
    std::vector<Tensor> sums(all.size());
    double gathered = 0, first_size = 0;
    std::int64_t waiting = 0;
    for (std::int64_t i = 0; i < loader().batches(); ++i) {
      const Batch b = loader().batch(epoch, i);
      const auto size = static_cast<double>(b.size());
      Tape tape;
      const StepOutput out = p.forward(b);
      Tensors g = tape.grad(out.loss, all);
      loss_sum += static_cast<double>(out.loss.item()) * size;
      hits += right(out.prediction, b);
      n += size;
      if (c.accumulate > 1) {
        if (waiting++ == 0) first_size = size, gathered = 0;
        const double weight = size / first_size;
        gathered += weight;
        for (std::size_t k = 0; k < all.size(); ++k) {
          const Tensor weighted = weight == 1 ? g[k] : g[k] * weight;
          sums[k] = sums[k].defined() ? sums[k] + weighted : weighted;
        }
        if (waiting < c.accumulate && i + 1 < loader().batches()) continue;
        for (std::size_t k = 0; k < all.size(); ++k) g[k] = gathered == 1 ? sums[k] : sums[k] / gathered;
        sums.assign(all.size(), {});
        waiting = 0;
      }
      p.update(Parts::clipped(g, c));
      if (c.schedule == Schedule::by_update) p.schedule->advance();
      if (!c.averages) continue;
      if (averages.empty())
        for (const Parameter& w : all) averages.push_back(w.peek() + 0);
      else
        for (std::size_t k = 0; k < all.size(); ++k)
          averages[k] = averages[k] + (1 - kDecay) * (all[k].peek() - averages[k]);
    }
    history["loss"].push_back(loss_sum / n);
    history["accuracy"].push_back(hits / n);
    exchange();
    module.eval();
    loss_sum = hits = n = 0;
    for (std::int64_t i = 0; i < validation().batches(); ++i) {
      const Batch b = validation().batch(0, i);
      const StepOutput out = p.forward(b);
      const auto size = static_cast<double>(b.size());
      loss_sum += static_cast<double>(out.loss.item()) * size;
      hits += right(out.prediction, b);
      n += size;
    }
    module.train();
    exchange();
    history["val_loss"].push_back(loss_sum / n);
    history["val_accuracy"].push_back(hits / n);
    if (c.schedule == Schedule::by_epoch) p.schedule->advance();
  }
  exchange();
  return history;
}

History by_fit(const Case& c, const Parts& p, Compile mode) {
  FitOptions options{.epochs = kEpochs,
                     .validation = &validation(),
                     .metrics = {"accuracy"},
                     .schedule = p.schedule.get(),
                     .schedule_by_epoch = c.schedule == Schedule::by_epoch,
                     .compile = mode};
  if (c.averages) options.callbacks = {Ema(p.module().parameters(), kDecay)};
  const Forward forward = [&p](const Batch& b) { return p.forward(b); };
  if (c.kind == Kind::own_step) {
    const OwnStep step{.run =
                           [&](const Batch& b) {
                             Tape tape;
                             StepOutput out = p.forward(b);
                             p.update(Parts::clipped(tape.grad(out.loss, p.module().parameters()), c));
                             return out;
                           },
                       .optimizers = {p.adam.get(), p.sgd.get()},
                       .evaluate = forward};
    return fit(p.module(), step, loader(), options);
  }
  options.optimizer = p.adam.get();
  options.accumulate = c.accumulate;
  options.clip_norm = c.clip;
  options.clip_value = c.clip_value;
  if (c.kind == Kind::module) return fit(p.module(), forward, loader(), options);
  options.loss = "cross_entropy";
  return fit(*p.net, loader(), options);
}

void check_equal(const Parts& a, const Parts& b) {
  const nn::Module &x = a.module(), &y = b.module();
  for (std::size_t i = 0; i < x.named_parameters().size(); ++i)
    BOOST_TEST(identical(x.named_parameters()[i].variable.peek(), y.named_parameters()[i].variable.peek()),
               x.named_parameters()[i].name);
  for (std::size_t i = 0; i < x.named_buffers().size(); ++i)
    BOOST_TEST(identical(x.named_buffers()[i].variable.peek(), y.named_buffers()[i].variable.peek()),
               x.named_buffers()[i].name);
  for (std::size_t i = 0; i < x.named_states().size(); ++i)
    BOOST_TEST(identical(x.named_states()[i].variable.peek(), y.named_states()[i].variable.peek()),
               x.named_states()[i].name);
  const auto states = [](const nn::Optimizer& o, const nn::Optimizer& other) {
    for (std::size_t i = 0; i < o.states().size(); ++i)
      BOOST_TEST(identical(o.states()[i].variable.peek(), other.states()[i].variable.peek()), o.states()[i].name);
  };
  states(*a.adam, *b.adam);
  if (a.sgd) states(*a.sgd, *b.sgd);
  if (a.schedule) BOOST_TEST(a.schedule->steps() == b.schedule->steps());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(matrix)

BOOST_AUTO_TEST_CASE(every_way_to_train_has_the_bits_of_a_loop_by_hand) {
  int cases = 0;
  const auto check = [&](const Case& c) {
    const Parts hand(c);
    const auto wanted = by_hand(c, hand);
    for (const Compile mode : {Compile::never, Compile::always})
      BOOST_TEST_CONTEXT(c.str() << (mode == Compile::never ? ", eager" : ", compiled")) {
        const Parts parts(c);
        const History history = by_fit(c, parts, mode);
        check_equal(parts, hand);
        BOOST_TEST(history.names().size() == wanted.size());
        for (const auto& [name, values] : wanted) BOOST_TEST((history[name] == values), name);
        ++cases;
      }
  };
  for (const Kind kind : {Kind::net, Kind::module, Kind::own_step})
    for (const std::int64_t accumulate : {1, 3}) {
      if (kind == Kind::own_step && accumulate > 1) continue;  // makes its own updates
      for (const double clip : {0.0, 0.3}) {
        for (const Schedule schedule : {Schedule::none, Schedule::by_update, Schedule::by_epoch})
          for (const bool averages : {false, true})
            check({.kind = kind, .accumulate = accumulate, .clip = clip, .schedule = schedule, .averages = averages});
        check({.kind = kind, .accumulate = accumulate, .clip = clip, .clip_value = 0.02});
      }
    }
  BOOST_TEST(cases == 140);
}

BOOST_AUTO_TEST_SUITE_END()
