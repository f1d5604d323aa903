/// The steps of layers without a recurrence, the fallback that runs a layer on tensors, steps that are made of a copy
/// of a layer, and functions on all states of a stream.
#include "ferrite/nn/detail/stream_steps.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/stream_sums.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::padded;

class Elements final : public Step, public InPlace {
 public:
  Elements(const ElementFunction& f, const StepRows& rows) : f_(f), rows_(rows) {}
  const ElementFunction* elements() const override { return &f_; }
  StepRows result() const override { return rows_; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override { Elements::run_several(1, x, y); }
  bool never_throws() const override { return true; }
  void advance(Inputs x, void* y) override { Elements::run_several(1, x, y); }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, Inputs x, void* y) override { f_(x[0], y, n * rows_.batch * rows_.width); }
  Channels by_channel() const override { return channels_of(rows_); }
  void run_channels(std::int64_t n, Inputs x, void* y) override {
    f_(x[0], y, channel_pitch(rows_.dtype, n) * rows_.width);
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Elements>(*this); }

 private:
  ElementFunction f_;
  StepRows rows_;
};

template <class T>
class LinearStep final : public Step {
 public:
  LinearStep(const Parameter& weight, const Parameter& bias, std::int64_t batch)
      : weight_(weight),
        bias_(bias),
        D_(weight.shape()[0]),
        N_(weight.shape()[1]),
        batch_(batch),
        few_(batch == 1 && D_ <= kFewTerms),
        packed_(ferrite::detail::gate_pack_size<T>(D_, 1, N_)),
        rows_(batch == 1 && D_ <= ferrite::detail::kBlockK ? D_ * N_ + padded<T>(1) : 0),
        added_(bias.defined() ? padded<T>(N_) : 0),
        product_(ferrite::detail::products_in_use.of<T>().packed_product),
        channels_(ferrite::detail::stream_sums_in_use.of<T>().channels),
        next_(ferrite::detail::stream_sums_in_use.of<T>().next_of(N_)) {
    find_memory();
    refresh();
  }
  LinearStep(const LinearStep& o)
      : Step(o),
        weight_(o.weight_),
        bias_(o.bias_),
        D_(o.D_),
        N_(o.N_),
        batch_(o.batch_),
        few_(o.few_),
        packed_(o.packed_),
        rows_(o.rows_),
        added_(o.added_),
        product_(o.product_),
        channels_(o.channels_),
        next_(o.next_),
        weights_(o.weights_),
        joined_(o.joined_),
        apart_(o.apart_) {
    find_memory();
  }
  StepRows result() const override { return {batch_, N_, ferrite::dtype_of<T>}; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override { LinearStep::run_several(1, x, y); }
  bool never_throws() const override { return true; }
  void advance(Inputs x, void* y) override {
    if (!few_) return LinearStep::run_several(1, x, y);
    next_(weights_, static_cast<const T*>(x[0]), nullptr, nullptr, added(x), static_cast<T*>(y));
    if (apart_) (*joined_.then)(y, y, N_);
  }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    if (n == 1 && few_) return LinearStep::advance(x, y);
    const auto* const a = static_cast<const T*>(x[0]);
    auto* const to = static_cast<T*>(y);
    product_(ferrite::detail::packed_gates<T>(packed_.get(), D_, 1, N_), n * batch_, a, D_, weights_.behind.bias, to);
    joined_.apply(x, to, n * batch_ * N_);
  }
  Channels by_channel() const override { return rows_.size() > 0 ? channels_of(result()) : Channels::no; }
  void run_channels(std::int64_t n, Inputs x, void* y) override {
    const auto* const a = static_cast<const T*>(x[0]);
    channels_(rows_.get(), N_, {&a, 1, D_, padded<T>(n)}, n, weights_.behind, added(x), static_cast<T*>(y));
    if (apart_) (*joined_.then)(y, y, padded<T>(n) * N_);
  }
  bool join(const ElementFunction& f) override {
    if (!joined_.join(f)) return false;
    apart_ = !f.joins(weights_.behind);
    return true;
  }
  bool join_sum(std::unique_ptr<Step>*) override { return joined_.join_sum(); }
  const void* factors() const override {
    return batch_ == 1 && D_ == 1 && !bias_.defined() && !joined_.then && !joined_.sums ? rows_.get() : nullptr;
  }
  const SingleOutput* single_output() const override {
    return rows_.size() > 0 && N_ == 1 && !joined_.then && !joined_.sums ? &single_ : nullptr;
  }
  void refresh() override {
    const Tensor w = contiguous(weight_.peek());
    ferrite::detail::pack_gates(w.data<T>(), N_, D_, 1, N_, N_, packed_.get());
    if (rows_.size() > 0) std::copy_n(w.data<T>(), D_ * N_, rows_.get());
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), N_, added_.get());
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<LinearStep>(*this); }

 private:
  /// Maximum number of terms for which the sums of one row have no latency that further rows could hide.
  static constexpr std::int64_t kFewTerms = 32;

  const T* added(Inputs x) const { return joined_.sums ? static_cast<const T*>(x[1]) : nullptr; }
  void find_memory() {
    weights_ = {rows_.get(), D_, N_, N_, N_, N_, weights_.behind};
    weights_.behind.bias = bias_.defined() ? added_.get() : nullptr;
    single_ = {rows_.get(), weights_.behind.bias};
  }

  Parameter weight_, bias_;
  std::int64_t D_, N_, batch_;
  bool few_;  ///< whether there is one row with few terms
  StepMemory<T> packed_;
  StepMemory<T> rows_;  ///< with a single row: the weights, row-major
  StepMemory<T> added_;
  decltype(ferrite::detail::ProductKernels<T>::packed_product) product_;
  decltype(ferrite::detail::StreamSums<T>::channels) channels_;
  typename ferrite::detail::StreamSums<T>::Next next_;
  ferrite::detail::NextWeights<T> weights_{};  ///< addresses of the weights
  SingleOutput single_{};
  JoinedSteps joined_{};
  bool apart_ = false;  ///< whether the joined function runs after the kernel
};

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(const Parameter& weight, std::int64_t batch) : weight_(weight), batch_(batch) {
    EmbeddingStep::refresh();
  }
  StepRows result() const override { return {batch_, table_.shape()[1], table_.dtype()}; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override {
    const auto* const tokens = static_cast<const std::int64_t*>(x[0]);
    for (std::int64_t b = 0; b < batch_; ++b)
      if (!is_token(tokens[b])) throw_token(tokens[b]);
    EmbeddingStep::run_several(1, x, y);
  }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  std::int64_t sure(std::int64_t n, Inputs x) const override {
    if (!x) return 0;
    const auto* const tokens = static_cast<const std::int64_t*>(x[0]);
    const auto wrong = std::find_if_not(tokens, tokens + n * batch_, [this](std::int64_t t) { return is_token(t); });
    return (wrong - tokens) / batch_;
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const auto* const tokens = static_cast<const std::int64_t*>(x[0]);
    const std::int64_t row = table_.shape()[1] * size_of(table_.dtype());
    for (std::int64_t i = 0; i < n * batch_; ++i)
      std::copy_n(table_.raw() + tokens[i] * row, row, static_cast<std::byte*>(y) + i * row);
  }
  void refresh() override { table_ = contiguous(weight_.peek()); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<EmbeddingStep>(*this); }

 private:
  bool is_token(std::int64_t token) const { return token >= 0 && token < table_.shape()[0]; }
  [[noreturn]] void throw_token(std::int64_t token) const {
    throw ShapeError("embedding: token " + std::to_string(token) + " lies outside 0.." +
                     std::to_string(table_.shape()[0] - 1));
  }

  Parameter weight_;
  std::int64_t batch_;
  Tensor table_;  ///< the table; tensors are immutable, so this snapshot needs no copy
};

/// The step of a layer that has neither kernel nor program: it calls a copy of the layer on tensors. Its states are
/// kept in memory between the calls.
class OnTensors final : public Step {
 public:
  OnTensors(const Layer& layer, const StepRows& in, std::string why)
      : why_(std::move(why)),
        layer_(evaluating_copy(layer)),
        parameters_(layer.named_parameters()),
        buffers_(layer.named_buffers()),
        carry_(*layer_, in.batch),
        in_(in) {
    for (const State& s : carry_.variables()) now_.emplace_back(bytes_of(s) / 8 + 1);
    next_.resize(now_.size());
    const Tensor y = call(zeros(shape(), in.dtype));
    if (y.shape()[0] != in.batch)
      throw ShapeError("stream: " + layer.kind() + " gives " + y.shape().str() + " for " + std::to_string(in.batch) +
                       " rows");
    out_ = {in.batch, y.numel() / in.batch, y.dtype()};
  }
  OnTensors(const OnTensors& o)
      : Step(o),
        why_(o.why_),
        layer_(evaluating_copy(*o.layer_)),
        parameters_(o.parameters_),
        buffers_(o.buffers_),
        carry_(*layer_, o.in_.batch),
        in_(o.in_),
        out_(o.out_),
        now_(o.now_),
        next_(o.next_.size()) {}

  StepRows result() const override { return out_; }
  void run(Inputs x, void* y) override {
    const Tensor result = contiguous(call(tensor_of({shape(), in_.dtype}, x[0])));
    std::copy_n(result.raw(), bytes_of(out_), static_cast<std::byte*>(y));
  }
  void commit() override {
    for (std::size_t i = 0; i < next_.size(); ++i)
      std::copy_n(next_[i].raw(), bytes_of(variable(i)), reinterpret_cast<std::byte*>(now_[i].get()));
  }
  void commit_rows(Rows rows) override {
    for (std::size_t i = 0; i < next_.size(); ++i) {  // [L, B, H]
      const std::int64_t row = variable(i).shape()[2] * size_of(variable(i).dtype());
      auto* const to = reinterpret_cast<std::byte*>(now_[i].get());
      for (std::int64_t r = 0; r < variable(i).shape()[0] * in_.batch; ++r)
        if (rows[r % in_.batch]) std::copy_n(next_[i].raw() + r * row, row, to + r * row);
    }
  }
  void refresh() override {
    take_values(parameters_, layer_->named_parameters());
    take_values(buffers_, layer_->named_buffers());
  }
  void states(const StateVisitor& see) override {
    for (std::size_t i = 0; i < now_.size(); ++i)
      see({.name = variable(i).name(),
           .spec = {variable(i).shape(), variable(i).dtype()},
           .rows = 1,
           .first = reinterpret_cast<std::byte*>(now_[i].get())});
  }
  Runs runs() const override { return Runs::on_tensors; }
  std::string why() const override { return why_; }
  std::unique_ptr<Step> clone() const override { return std::make_unique<OnTensors>(*this); }

 private:
  static std::int64_t bytes_of(const State& s) { return s.shape().numel() * size_of(s.dtype()); }
  static std::int64_t bytes_of(const StepRows& r) { return detail::bytes_of(r); }
  static Tensor tensor_of(const Spec& spec, const void* from) {
    Tensor t = Tensor::empty(spec);
    std::copy_n(static_cast<const std::byte*>(from), t.numel() * size_of(spec.dtype), ferrite::detail::Writer::raw(t));
    return t;
  }

  const State& variable(std::size_t i) const { return carry_.variables()[i]; }
  Shape shape() const { return is_integer(in_.dtype) ? Shape{in_.batch, 1} : Shape{in_.batch, 1, in_.width}; }
  /// Calls the layer on the present states; `next_` holds those after the step.
  Tensor call(const Tensor& x) {
    const NewFrame frame;
    const SingleStep single;
    for (std::size_t i = 0; i < now_.size(); ++i)
      variable(i).assign(tensor_of({variable(i).shape(), variable(i).dtype()}, now_[i].get()));
    const Tensor y = (*layer_)(x, {.carry = &carry_});
    for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = contiguous(variable(i).peek());
    return y;
  }

  std::string why_;
  std::unique_ptr<Layer> layer_;
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;
  Carry carry_;
  StepRows in_, out_;
  std::vector<StepMemory<double>> now_;
  std::vector<Tensor> next_;  ///< the states after the last run
};

}  // namespace

void fill_values(Dtype dtype, double value, std::byte* at, std::int64_t n) {
  if (dtype == Dtype::f64) {
    std::fill_n(reinterpret_cast<double*>(at), n / 8, value);
  } else if (dtype == Dtype::f32) {
    std::fill_n(reinterpret_cast<float*>(at), n / 4, static_cast<float>(value));
  } else {
    std::fill_n(at, n, std::byte{0});
  }
}

void run_profiled(Step& step, Step::Inputs x, void* y) {
  const ferrite::detail::ProfileEvent event(step.step_name(), step.scope());
  ferrite::detail::in_layer(step.scope(), [&] { step.run(x, y); });
}

void run_profiled(Step& step, RunSeveral run, std::int64_t n, Step::Inputs x, void* y) {
  const ferrite::detail::ProfileEvent event(step.steps_name(), step.scope());
  (step.*run)(n, x, y);
}

Step::Rows run_rows_of(Step& step, const Step::Rows* rows, Step::Inputs x, void* y) {
  std::optional<ferrite::detail::ProfileEvent> event;
  if (ferrite::detail::profiling()) event.emplace(step.step_name(), step.scope());
  Step::Rows given = nullptr;
  ferrite::detail::in_layer(step.scope(), [&] { given = step.run_rows(rows, x, y); });
  return given;
}

Step::Rows finish_rows_of(Step& step, Step::Rows rows, std::int64_t i, void* y) {
  std::optional<ferrite::detail::ProfileEvent> event;
  if (ferrite::detail::profiling()) event.emplace(step.step_name(), step.scope());
  Step::Rows given = nullptr;
  ferrite::detail::in_layer(step.scope(), [&] { given = step.finish(rows, i, y); });
  return given;
}

std::unique_ptr<Layer> evaluating_copy(const Layer& layer) {
  std::unique_ptr<Layer> copy = copy_in_place_of(layer);
  copy->eval();
  return copy;
}

std::unique_ptr<Layer> copy_in_place_of(const Layer& layer) {
  std::unique_ptr<Layer> copy = layer.clone();
  copy->take_path(layer);
  return copy;
}

namespace {

/// Returns the step found in a layer that does not declare that it streams. Throws ValueError if there is none.
std::unique_ptr<Step> found_step_of(const Layer& layer, const StepRows& in) {
  std::string why = "its output at a step needs other steps than those before it";
  if (std::unique_ptr<Step> step = layer.program_step(in, why)) return step;
  constexpr std::string_view prefix = "stream: ";
  if (why.starts_with(prefix)) why.erase(0, prefix.size());
  const std::string path = layer.path();
  throw ValueError("stream: " + (path.empty() ? layer.kind() : "the layer '" + path + "' (" + layer.kind() + ")") +
                   " is not causal: " + why);
}

}  // namespace

std::unique_ptr<Step> own_step_of(const Layer& layer, const StepRows& in) {
  if (!layer.streams()) return found_step_of(layer, in);
  std::string why = "it gives no step";
  std::unique_ptr<Step> step = layer.program_step(in, why);
  if (!step) {
    ferrite::detail::log_info("stream: " + layer.kind() + " runs on tensors: " + why);
    step = std::make_unique<OnTensors>(layer, in, why);
  }
  return step;
}

ElementFunction::ElementFunction(const Primitive& op, Dtype dtype, const Attrs& literals)
    : op_(&op), block_(op.block(dtype)) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.arity); ++i) {
    if (const Scalar* const v = ferrite::detail::literal_of(literals, i)) {
      fill_values(dtype, v->real(), literals_[i].bytes.data(), 64);
    } else {
      operand_ = i;
    }
  }
}

std::unique_ptr<Step> elements_step(const ElementFunction& f, const StepRows& rows) {
  return std::make_unique<Elements>(f, rows);
}

namespace {

/// Returns the pointwise operation of input and literals that a layer consists of; nothing if it is more than one.
std::optional<ElementFunction> element_function(const Layer& layer, const StepRows& rows) {
  Tracer tracer;
  const NewFrame frame(tracer);
  const Tensor x = tracer.input({{rows.batch, rows.width}, rows.dtype});
  const Graph g = tracer.finish({layer.forward(x, {})});
  if (g.nodes.size() != 1 || !g.reads.empty() || !g.writes.empty() || g.outputs[0] != g.nodes[0].out[0]) return {};
  const Graph::Node& node = g.nodes[0];
  const bool of_x = node.op->is_pointwise() && node.in.size() == 1 && node.in[0] == g.inputs[0];
  if (!of_x || g.values[node.out[0]] != x.spec() || !node.op->block(rows.dtype)) return {};
  return ElementFunction(*node.op, rows.dtype, node.attrs);
}

}  // namespace

std::size_t add_element_steps(const Layer& layer, StepGraph& graph, std::size_t x) {
  const StepRows rows = graph.rows(x);
  if (is_float(rows.dtype))
    if (const std::optional<ElementFunction> f = element_function(layer, rows))
      return graph.add(layer, elements_step(*f, rows), {x});
  return layer.Layer::add_steps(graph, x);
}

std::unique_ptr<Step> linear_step(const Parameter& weight, const Parameter& bias, std::int64_t batch) {
  if (weight.dtype() == Dtype::f64) return std::make_unique<LinearStep<double>>(weight, bias, batch);
  return std::make_unique<LinearStep<float>>(weight, bias, batch);
}

std::unique_ptr<Step> embedding_step(const Parameter& weight, std::int64_t batch) {
  return std::make_unique<EmbeddingStep>(weight, batch);
}

// ---- copies of layers ----------------------------------------------------------------------------------

namespace {

/// The step of a copy of a layer, which takes the layer's values in `refresh`.
class StepOfCopy final : public Step {
 public:
  using Make = std::function<std::unique_ptr<Step>(const Layer& copy)>;
  using Compute = std::function<void(const Layer& copy)>;

  /// Makes the step of a copy. `compute` sets the copy's variables that the layer computes; null: there are none.
  StepOfCopy(const Layer& layer, std::unique_ptr<Layer> copy, Make make, Compute compute)
      : parameters_(layer.named_parameters()),
        buffers_(layer.named_buffers()),
        states_(layer.named_states()),
        copy_(std::move(copy)),
        make_(std::move(make)),
        compute_(std::move(compute)) {
    if (compute_) compute_(*copy_);
    step_ = make_(*copy_);
  }
  StepOfCopy(const StepOfCopy& o)
      : Step(o),
        parameters_(o.parameters_),
        buffers_(o.buffers_),
        states_(o.states_),
        copy_(evaluating_copy(*o.copy_)),
        make_(o.make_),
        compute_(o.compute_),
        step_(make_(*copy_)) {
    restore_states(*step_, saved_states(*o.step_));
  }

  StepRows result() const override { return step_->result(); }
  Pace pace() const override { return step_->pace(); }
  void run(Inputs x, void* y) override { step_->run(x, y); }
  void commit() override { step_->commit(); }
  bool never_throws() const override { return step_->never_throws(); }
  void advance(Inputs x, void* y) override { step_->advance(x, y); }
  bool skips() const override { return step_->skips(); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override { return step_->run_rows(rows, x, y); }
  void commit_rows(Rows rows) override { step_->commit_rows(rows); }
  bool commits() const override { return step_->commits(); }
  std::int64_t finishing() const override { return step_->finishing(); }
  Rows finish(Rows rows, std::int64_t i, void* y) override { return step_->finish(rows, i, y); }
  std::int64_t most_at_once() const override { return step_->most_at_once(); }
  std::int64_t sure(std::int64_t n, Inputs x) const override { return step_->sure(n, x); }
  void run_several(std::int64_t n, Inputs x, void* y) override { step_->run_several(n, x, y); }
  void refresh() override {
    take_values(parameters_, copy_->named_parameters());
    take_values(buffers_, copy_->named_buffers());
    take_values(states_, copy_->named_states());
    if (compute_) compute_(*copy_);
    step_->refresh();
  }
  void each(const StepVisitor& see) override { step_->each(see); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<StepOfCopy>(*this); }

 private:
  std::vector<Named<Parameter>> parameters_;  ///< parameters of the layer, which the stream follows
  std::vector<Named<Buffer>> buffers_;
  std::vector<Named<State>> states_;
  std::unique_ptr<Layer> copy_;
  Make make_;
  Compute compute_;
  std::unique_ptr<Step> step_;
};

}  // namespace

std::unique_ptr<Step> step_of_copy(const Layer& layer, std::unique_ptr<Layer> copy,
                                   std::function<std::unique_ptr<Step>(const Layer& copy)> make) {
  return std::make_unique<StepOfCopy>(layer, std::move(copy), std::move(make), nullptr);
}

std::unique_ptr<Step> computed_step(const Layer& layer, const std::string& name, std::function<Tensor()> compute,
                                    const StepRows& in) {
  std::size_t at = 0;
  while (layer.named_parameters()[at].name != name) ++at;
  const Parameter original = layer.named_parameters()[at].variable;
  return std::make_unique<StepOfCopy>(
      layer, evaluating_copy(layer), [in](const Layer& copy) { return step_of(copy, in); },
      [at, original, compute = std::move(compute)](const Layer& copy) {
        (void)original.peek();  // throws if a value would become a constant of a program
        const NewFrame frame;
        copy.named_parameters()[at].variable.assign(compute());
      });
}

// ---- states --------------------------------------------------------------------------------------------

namespace {

/// Walks through a state of one row, in pieces that are contiguous both in memory and in the saved tensor.
class RowPieces {
 public:
  explicit RowPieces(const StateMemory& s)
      : s_(s),
        parts_(s.parts.rank() > 0 ? s.parts : s.spec.shape),
        strides_(s.strides),
        dense_(parts_.strides()),
        piece_(size_of(s.spec.dtype)),
        inner_(parts_.rank()) {
    for (int k = 0; k < dense_.rank(); ++k) dense_[k] *= piece_;
    if (strides_.rank() == 0) strides_ = dense_;
    while (inner_ > 0 && inner_ - 1 != s.rows && inner_ - 1 != s.entries && strides_[inner_ - 1] == piece_)
      piece_ *= parts_[--inner_];
  }
  /// Calls f(address in memory, offset in the saved tensor, number of bytes, whether the piece is valid).
  template <class F>
  void each(std::int64_t row, const F& f) const {
    if (s_.spec.shape.numel() > 0) along(0, row, row * strides_[s_.rows], row * dense_[s_.rows], 0, f);
  }

 private:
  template <class F>
  void along(int axis, std::int64_t row, std::int64_t at, std::int64_t given, std::int64_t entry, const F& f) const {
    if (axis == inner_) {
      std::int64_t in_ring = entry * (s_.entries < 0 ? 0 : strides_[s_.entries]);
      if (s_.at) in_ring = (s_.at[row] + s_.behind + in_ring) % s_.ring;
      return f(s_.first + at + in_ring, given, piece_, !s_.made || entry < s_.made[row]);
    }
    if (axis == s_.rows) return along(axis + 1, row, at, given, entry, f);
    for (std::int64_t i = 0; i < parts_[axis]; ++i) {
      const bool counts = axis == s_.entries;
      along(axis + 1, row, at + (counts ? 0 : i * strides_[axis]), given + i * dense_[axis], counts ? i : entry, f);
    }
  }

  const StateMemory& s_;
  Shape parts_, strides_, dense_;  ///< extents, and strides in memory and in the saved tensor, in bytes
  std::int64_t piece_;             ///< size of a piece, in bytes
  int inner_;                      ///< the first axis inside a piece
};

std::int64_t batch_of(const StateMemory& s) { return s.spec.shape[s.rows]; }

void begin_row(const StateMemory& s, std::int64_t row) {
  if (s.made) return;
  const std::int64_t inner = s.spec.shape.strides()[s.rows] * size_of(s.spec.dtype), outer = inner * batch_of(s);
  RowPieces(s).each(row, [&](std::byte* at, std::int64_t given, std::int64_t bytes, bool) {
    if (!s.initial.defined()) return fill_values(s.spec.dtype, s.fill, at, bytes);
    std::copy_n(s.initial.raw() + given / outer * inner + given % inner, bytes, at);
  });
}

Tensor saved(const StateMemory& s) {
  Tensor t = zeros(s.spec.shape, s.spec.dtype);
  std::byte* const to = ferrite::detail::Writer::raw(t);
  const RowPieces pieces(s);
  for (std::int64_t row = 0; row < batch_of(s); ++row)
    pieces.each(row, [&](const std::byte* at, std::int64_t given, std::int64_t bytes, bool means) {
      if (means) std::copy_n(at, bytes, to + given);
    });
  return t;
}

void check(const StateMemory& s, const Tensor& given) {
  if (given.spec() != s.spec) throw ShapeError("stream: holds a state " + s.spec.str() + ", got " + given.spec().str());
  if (s.spec.dtype != Dtype::i64 || s.most == kAnyNumber) return;
  for (const std::int64_t n : given.to_vector<std::int64_t>())
    if (n < 0 || n > s.most)
      throw ValueError("stream: '" + std::string(s.name) + "' of a row cannot be " + std::to_string(n) +
                       ", which lies outside 0.." + std::to_string(s.most));
}

void take(const StateMemory& s, const Tensor& given) {
  const Tensor dense = contiguous(given);
  const RowPieces pieces(s);
  for (std::int64_t row = 0; row < batch_of(s); ++row)
    pieces.each(row, [&](std::byte* at, std::int64_t from, std::int64_t bytes, bool) {
      std::copy_n(dense.raw() + from, bytes, at);
    });
}

}  // namespace

void begin_states(Step& whole) {
  whole.each([](Step& step) {
    step.states([](const StateMemory& s) {
      for (std::int64_t row = 0; row < batch_of(s); ++row) begin_row(s, row);
    });
    step.states_changed();
  });
}

void begin_states(Step& whole, std::int64_t row) {
  whole.each([row](Step& step) {
    step.states([row](const StateMemory& s) { begin_row(s, row); });
    step.states_changed();
  });
}

void each_state(Step& whole, const Step::StateVisitor& see) {
  whole.each([&see](Step& step) { step.states(see); });
}

std::vector<Tensor> saved_states(Step& whole) {
  std::vector<Tensor> states;
  each_state(whole, [&states](const StateMemory& s) { states.push_back(saved(s)); });
  return states;
}

void restore_states(Step& whole, std::span<const Tensor> states) {
  std::size_t n = 0;
  each_state(whole, [&n](const StateMemory&) { ++n; });
  if (states.size() != n)
    throw ValueError("stream: " + std::to_string(states.size()) + " states given, the model has " + std::to_string(n));
  const Tensor* given = states.data();
  each_state(whole, [&given](const StateMemory& s) { check(s, *given++); });
  given = states.data();
  each_state(whole, [&given](const StateMemory& s) { take(s, *given++); });
  whole.each([](Step& step) { step.states_changed(); });
}

}  // namespace ferrite::nn::detail
