/// Steps of training, their errors when something is not finite, and compiled programs of functions of batches.
#include "ferrite/train/detail/train_step.h"

#include <cmath>
#include <limits>
#include <optional>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/error.h"

// ---- functions of batches ------------------------------------------------------------------------------

namespace ferrite::train::detail {
namespace {

constexpr std::size_t kMostPrograms = 64;

std::vector<bool> with_lengths(const Batch& batch) {
  std::vector<bool> defined;
  for (const Tensor& l : batch.lengths) defined.push_back(l.defined());
  return defined;
}

Tensors operands(const Batch& batch) {
  Tensors all = batch.fields;
  for (const Tensor& l : batch.lengths)
    if (l.defined()) all.push_back(l);
  return all;
}

Batch batch_of(const Tensors& operands, const std::vector<bool>& with_lengths) {
  Batch batch;
  std::size_t next = 0;
  for (std::size_t i = 0; i < with_lengths.size(); ++i) batch.fields.push_back(operands[next++]);
  for (const bool defined : with_lengths) batch.lengths.push_back(defined ? operands[next++] : Tensor());
  return batch;
}

std::string types_of(const Batch& batch) {
  std::string types;
  for (const Tensor& x : operands(batch)) types += x.spec().str() + ' ';
  return types;
}

/// Throws TraceError if an existing plan no longer matches the function; a plan that the next call makes does. Types
/// alone do not determine which plan that call takes: switches that a step reads decide, too, such as what is frozen.
template <class Program>
void verify(const Program& program, const Tensors& in) {
  try {
    program.verify(in);
  } catch (const ferrite::detail::NoPlanError&) {  // nothing to compare with
  }
}

}  // namespace

BatchFunction::Program& BatchFunction::program(const Batch& batch) {
  const std::vector<bool> which = with_lengths(batch);
  std::unique_ptr<Program>& p = programs_[which];
  if (!p)
    p = std::make_unique<Program>([this, which](const Tensors& in) { return f_(batch_of(in, which)); }, PlanOptions{});
  return *p;
}

bool BatchFunction::compiles(const std::string& types) {
  if (mode_ == Compile::never) return false;
  if (mode_ == Compile::always || compiled_.contains(types)) return true;
  if (compiled_.size() >= kMostPrograms || met_.insert(types).second) return false;
  compiled_.insert(types);
  return true;
}

bool BatchFunction::runs_compiled(const Batch& batch) const {
  return mode_ == Compile::always || (mode_ == Compile::automatic && compiled_.contains(types_of(batch)));
}

Tensors BatchFunction::operator()(const Batch& batch) {
  const std::string types = types_of(batch);
  if (!compiles(types)) return f_(batch);
  try {
    Program& p = program(batch);
    const Tensors in = operands(batch);
    if (mode_ == Compile::always && verified_.insert(types).second) verify(p, in);
    return p(in);
  } catch (const TraceError&) {
    if (mode_ == Compile::always) throw;
    mode_ = Compile::never;
    return f_(batch);
  }
}

// ---- steps ---------------------------------------------------------------------------------------------

namespace {

constexpr Label kLoss = "the loss";
constexpr Label kGradient = "a gradient's sum";

double largest(Dtype dtype) {
  return dtype == Dtype::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

Tensor finite(const Tensor& x, Label who) { return checked(x, -largest(x.dtype()), largest(x.dtype()), who); }

void check_loss(const Tensor& loss) {
  if (!loss.defined()) throw ValueError("fit: the step gave no loss");
  if (loss.numel() != 1 || !is_float(loss.dtype()))
    throw ShapeError("fit: the loss must be one float, got " + loss.spec().str() + "; average it over the batch");
}

double number(const Tensor& loss) { return loss.dtype() == Dtype::f64 ? loss.item<double>() : loss.item<float>(); }

/// Returns the output with the mean as its loss.
StepOutput averaged(StepOutput out) {
  if (out.count.defined()) out.loss = mean_of(out.loss, out.count);
  return out;
}

/// The variables of a module that a step may write before the loss is known: running statistics, random counters.
class Snapshot {
 public:
  explicit Snapshot(const nn::Module& module) : module_(module) {
    for (const auto& b : module.named_buffers()) buffers_.push_back(b.variable.peek());
    for (const auto& s : module.named_states()) states_.push_back(s.variable.peek());
  }
  void put_back() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) module_.named_buffers()[i].variable.assign(buffers_[i]);
    for (std::size_t i = 0; i < states_.size(); ++i) module_.named_states()[i].variable.assign(states_[i]);
  }

 private:
  const nn::Module& module_;
  std::vector<Tensor> buffers_, states_;
};

/// Returns value and place of the first element of x that is not finite; empty if all are finite.
std::string not_finite_in(const Tensor& x) {
  if (!is_float(x.dtype())) return {};
  const std::vector<double> values = cast(x, Dtype::f64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) return Scalar(values[i]).str() + " at element " + std::to_string(i);
  return {};
}

}  // namespace

Steps::Steps(const Model& model, const FitOptions& options)
    : model_(model),
      options_(options),
      train_([this](const Batch& b) { return options_.accumulate > 1 ? gradients(b) : step(b); },
             model.pure || options.compile != Compile::automatic ? options.compile : Compile::never),
      evaluate_(
          [this](const Batch& b) {
            if (!parallel_) return packed(averaged(model_.evaluate(b)));
            ParallelRun::Joined joined = parallel_->evaluate(b, model_.evaluate);
            return packed({std::move(joined.loss), std::move(joined.prediction), std::move(joined.count)});
          },
          model.pure || options.compile != Compile::automatic ? options.compile : Compile::never) {
  if (model_.forward && !model_.optimizers.empty()) parameters_ = model_.optimizers[0]->parameters();
}

void Steps::begin_epoch(std::int64_t epoch) {
  // Compares at the epochs 1, 2, 4, 8 and so on, because a trace takes as long as several steps.
  if (epoch > 0 && (epoch & (epoch - 1)) == 0) {
    train_.verify_next();
    evaluate_.verify_next();
  }
}

/// Returns loss, count (empty if the step returns none) and, if metrics need it, the prediction.
Tensors Steps::packed(StepOutput out) const {
  check_loss(out.loss);
  Tensors all = {detach(reshape(out.loss, {}))};
  all.push_back(out.count.defined() ? cast(reshape(detach(out.count), {}), Dtype::f64) : zeros({0}, Dtype::f64));
  if (!options_.metrics.empty() && out.prediction.defined()) all.push_back(detach(out.prediction));
  return all;
}

Tensors Steps::clipped(Tensors gradients) const {
  if (options_.clip_value > 0) gradients = nn::clip_grad_value(gradients, options_.clip_value);
  if (options_.clip_norm > 0) gradients = nn::clip_grad_norm(gradients, options_.clip_norm).grads;
  return gradients;
}

/// Computes loss and gradients of the whole batch with all processes. Checks follow after all messages between them
/// have arrived, so that the processes throw together.
Steps::Computed Steps::computed_by_all(const Batch& batch) const {
  ParallelRun::Joined joined = parallel_->gradients(batch, model_.forward);
  if (!options_.metrics.empty() && !joined.prediction.defined())
    throw ValueError("fit: there are metrics, but the step gives no prediction");
  (void)finite(joined.loss, kLoss);
  for (const Tensor& g : joined.gradients)
    if (g.defined()) (void)finite(sum(g), kGradient);
  return {packed({std::move(joined.loss), std::move(joined.prediction), std::move(joined.count)}),
          std::move(joined.gradients)};
}

Steps::Computed Steps::computed(const Batch& batch) const {
  if (parallel_) return computed_by_all(batch);
  Tape tape;
  StepOutput out = averaged(model_.forward(batch));
  check_loss(out.loss);
  (void)finite(out.loss, kLoss);
  Tensors gradients = tape.grad(out.loss, parameters_);
  for (const Tensor& g : gradients)
    if (g.defined()) (void)finite(sum(g), kGradient);
  return {packed(std::move(out)), std::move(gradients)};
}

/// Runs a whole step, update included: what a program does when gradients are not gathered.
Tensors Steps::step(const Batch& batch) const {
  if (model_.own_step) {
    StepOutput out = averaged(model_.own_step(batch));
    check_loss(out.loss);
    return packed(std::move(out));
  }
  Computed c = computed(batch);
  apply(clipped(std::move(c.gradients)));
  return std::move(c.packed);
}

/// Returns loss, count, prediction, and a gradient for every parameter; empty if the loss does not depend on it.
Tensors Steps::gradients(const Batch& batch) {
  Computed c = computed(batch);
  Tensors all = std::move(c.packed);
  if (all.size() == 2) all.push_back(zeros({0}));  // none
  for (const Tensor& g : c.gradients)
    all.push_back(g.defined() ? g : zeros({0}));  // programs of other shapes may reach other parameters
  return all;
}

double Steps::weight(const Tensors& packed, const Batch& batch) const {
  if (model_.weight) return model_.weight(batch);
  return packed[1].rank() == 0 ? packed[1].item<double>() : static_cast<double>(batch.size());
}

/// Runs the whole batch on this process alone, to find what is not finite.
void Steps::alone(const Batch& batch) const {
  Tape tape;
  (void)tape.grad(averaged(model_.forward(batch)).loss, parameters_);
}

void Steps::apply(const Tensors& gradients) const {
  if (parallel_) {
    parallel_->update(gradients);
  } else {
    model_.optimizers[0]->step(gradients);
  }
}

/// Adds gradients, weighted by the weight of their batch relative to the first: batches of the same weight are summed
/// as they are.
void Steps::gather(const Tensors& gradients, double weight) {
  if (gathered_++ == 0) first_size_ = weight, weight_ = 0;
  const double share = weight / first_size_;
  weight_ += share;
  std::size_t next = 3;
  if (sums_.empty()) sums_.resize(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& g = gradients[next++];
    if (g.shape() != parameters_[i].shape()) continue;
    const Tensor weighted = share == 1 ? g : g * share;
    sums_[i] = sums_[i].defined() ? sums_[i] + weighted : weighted;
  }
}

void Steps::update() {
  Tensors means;
  for (const Tensor& s : sums_) means.push_back(s.defined() && weight_ != 1 ? s / weight_ : s);
  sums_.clear();
  gathered_ = 0;
  apply(clipped(std::move(means)));
}

/// Returns f(batch). When it finds something that is not finite, restores all variables and throws NotFinite, which
/// says what it was.
Tensors Steps::guarded(BatchFunction& f, const Batch& batch) {
  std::optional<Snapshot> before;
  if (!f.runs_compiled(batch)) before.emplace(model_.module);
  std::string found;
  try {
    return f(batch);
  } catch (const RangeError& e) {
    if (e.who() != kLoss.text() && e.who() != kGradient.text()) throw;
    found = e.what();
  }
  if (before) before->put_back();
  const Snapshot again(model_.module);
  const std::string what = explanation(f, batch, found);
  again.put_back();
  throw NotFinite(what);
}

/// Returns which operation of which layer was the first to compute something that is not finite.
std::string Steps::explanation(BatchFunction& f, const Batch& batch, const std::string& found) const {
  for (std::size_t i = 0; i < batch.fields.size(); ++i) {
    const std::string where = not_finite_in(batch.fields[i]);
    if (!where.empty()) return "field " + std::to_string(i) + " of the batch holds " + where;
  }
  for (const auto& p : model_.module.named_parameters()) {
    const std::string where = not_finite_in(p.variable.peek());
    if (!where.empty()) return "parameter " + p.name + " holds " + where + " before this step";
  }
  try {
    const DetectAnomaly detect;
    if (parallel_) {
      alone(batch);
    } else {
      (void)f.eager(batch);
    }
  } catch (const AnomalyError& e) {
    return e.what();
  } catch (const ValueError&) {  // the sum of a gradient is not finite again, though each of its elements is
  }
  return found;
}

/// Returns the predictions of the whole batch; undefined if there are none.
Tensor Steps::whole(const Tensors& packed, const Batch& batch) const {
  if (packed.size() < 3 || options_.metrics.empty()) return {};
  return parallel_ ? parallel_->whole(packed[2], batch.size()) : packed[2];
}

Steps::Result Steps::train(const Batch& batch, bool last) {
  Tensors out = guarded(train_, batch);
  Result result{.loss = number(out[0]), .weight = weight(out, batch), .prediction = whole(out, batch)};
  if (result.prediction.defined() && result.prediction.numel() == 0) result.prediction = {};
  if (options_.accumulate > 1 && !model_.own_step) {
    gather(out, result.weight);
    result.updated = last || gathered_ == options_.accumulate;
    if (result.updated) update();
  }
  if (!std::isfinite(result.loss)) throw NotFinite("the loss of the step is " + Scalar(result.loss).str());
  return result;
}

Steps::Result Steps::evaluate(const Batch& batch) {
  Tensors out = evaluate_(batch);
  return {.loss = number(out[0]), .weight = weight(out, batch), .prediction = whole(out, batch), .updated = false};
}

}  // namespace ferrite::train::detail
