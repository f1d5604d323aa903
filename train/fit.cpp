/// `fit`, `evaluate` and `predict`.
#include "ferrite/train/fit.h"

#include <algorithm>

#include "ferrite/train/detail/fitting.h"
#include "ferrite/train/detail/keeping.h"

namespace ferrite::train {
namespace {

/// As sums, to which those of other parts of the batch are added, or whose counts are the weights of batches.
Forward forward_of(const nn::Layer& net, const Loss& loss, bool parallel) {
  return [&net, &loss, sums = parallel || !loss.has_weight()](const Batch& batch) {
    const Tensor y = net(batch.x(), batch.context());
    if (!sums) return StepOutput{loss(y, batch), y};
    LossSum s = loss.sum(y, batch);
    return StepOutput{std::move(s.sum), y, std::move(s.count)};
  };
}

/// Empty for a function that gives sums: the count that its step gives says it.
std::function<double(const Batch&)> weight_of(const Loss& loss) {
  if (!loss.has_weight()) return {};
  return [&loss](const Batch& batch) { return loss.weight(batch); };
}

void check_loss(const std::string& who, const Loss& loss, bool parallel) {
  if (!loss.defined()) throw ValueError(who + ": a net needs a loss: {.loss = \"mse\"}, or a function");
  if (parallel && !loss.gives_sums())
    throw ValueError(who +
                     ": on several ranks a loss must be a name or give a train::LossSum, the sum and the count of its "
                     "losses: the mean that this function gives does not tell how many losses of a part it is of");
}

void check_optimizer(const FitOptions& options) {
  if (!options.optimizer) throw ValueError("fit: there is no optimizer: {.optimizer = &adam}");
}

Logs evaluated(const detail::Model& model, const DataLoader& data, const EvaluateOptions& given) {
  const detail::KeptModes modes(model.module);
  model.module.eval();
  const FitOptions options{.metrics = given.metrics};
  detail::Steps steps(model, options);
  if (!given.parallel) return detail::evaluated(steps, data, given.metrics, nullptr);
  const std::unique_ptr<ParallelRun> run = given.parallel->begin(model.module, nullptr);
  steps.join(run.get());
  try {
    return detail::evaluated(steps, data, given.metrics, run.get());
  } catch (...) {
    run->abandon();
    throw;
  }
}

/// Zeros behind the steps of each part, so that all have as many.
Tensor joined(std::vector<Tensor> parts) {
  std::int64_t longest = 0;
  for (const Tensor& p : parts)
    if (p.rank() > 1) longest = std::max(longest, p.shape()[1]);
  for (Tensor& p : parts) {
    if (p.rank() < 2 || p.shape()[1] == longest) continue;
    Shape after = Shape::filled(p.rank(), 0);
    after[1] = longest - p.shape()[1];
    p = pad(p, Shape::filled(p.rank(), 0), after);
  }
  return concat(parts, 0);
}

}  // namespace

History fit(const nn::Layer& net, const DataLoader& data, const FitOptions& options) {
  check_loss("fit", options.loss, options.parallel != nullptr);
  check_optimizer(options);
  const Forward forward = forward_of(net, options.loss, options.parallel != nullptr);
  const detail::Model model{.module = net,
                            .forward = forward,
                            .evaluate = forward,
                            .optimizers = {options.optimizer},
                            .weight = weight_of(options.loss),
                            .pure = options.loss.captures_nothing()};
  return detail::Fitting(model, data, options).run();
}

History fit(const nn::Module& module, const Forward& forward, const DataLoader& data, const FitOptions& options) {
  if (!forward) throw ValueError("fit: the forward pass is null");
  if (options.loss.defined()) throw ValueError("fit: the forward pass gives the loss; leave `loss` out");
  check_optimizer(options);
  const detail::Model model{
      .module = module, .forward = forward, .evaluate = forward, .optimizers = {options.optimizer}};
  return detail::Fitting(model, data, options).run();
}

History fit(const nn::Module& module, const OwnStep& step, const DataLoader& data, const FitOptions& options) {
  if (!step.run) throw ValueError("fit: the step is null");
  for (const nn::Optimizer* o : step.optimizers)
    if (!o) throw ValueError("fit: an optimizer of the step is null");
  const detail::Model model{
      .module = module, .evaluate = step.evaluate, .own_step = step.run, .optimizers = step.optimizers};
  return detail::Fitting(model, data, options).run();
}

Logs evaluate(const nn::Layer& net, const DataLoader& data, const EvaluateOptions& options) {
  check_loss("evaluate", options.loss, options.parallel != nullptr);
  return evaluated({.module = net,
                    .evaluate = forward_of(net, options.loss, options.parallel != nullptr),
                    .weight = weight_of(options.loss),
                    .pure = options.loss.captures_nothing()},
                   data, options);
}

Logs evaluate(const nn::Module& module, const Forward& forward, const DataLoader& data,
              const EvaluateOptions& options) {
  if (!forward) throw ValueError("evaluate: the forward pass is null");
  return evaluated({.module = module, .evaluate = forward}, data, options);
}

Tensor predict(const nn::Layer& net, const Dataset& data, std::int64_t batch_size) {
  const detail::KeptModes modes(net);
  net.eval();
  detail::BatchFunction run([&](const Batch& b) { return Tensors{net(b.x(), b.context())}; }, Compile::automatic);
  const DataLoader loader(data, {.batch_size = batch_size, .shuffle = false});
  if (loader.batches() == 0) throw ValueError("predict: the data set is empty");
  std::vector<Tensor> parts;
  DataLoader::Epoch batches = loader.epoch(0);
  for (const Batch& b : batches) parts.push_back(run(b)[0]);
  return joined(std::move(parts));
}

}  // namespace ferrite::train
