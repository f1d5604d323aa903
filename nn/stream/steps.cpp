/// The steps of layers without a recurrence, and the fallback that runs a layer on tensors.
#include "ferrite/nn/detail/steps.h"
#include "ferrite/nn/carry.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::GateMatrix;

std::int64_t bytes_of(const StepRows& r) { return r.batch * r.width * size_of(r.dtype); }

class Identity final : public Step {
 public:
  explicit Identity(const StepRows& rows) : rows_(rows) {}
  StepRows result() const override { return rows_; }
  bool commits() const override { return false; }
  void run(const void* x, void* y) override {
    std::copy_n(static_cast<const std::byte*>(x), bytes_of(rows_), static_cast<std::byte*>(y));
  }
  bool never_throws() const override { return true; }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    std::copy_n(static_cast<const std::byte*>(x), n * bytes_of(rows_), static_cast<std::byte*>(y));
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Identity>(*this); }

 private:
  StepRows rows_;
};

class Pointwise final : public Step {
 public:
  Pointwise(const Primitive& op, const StepRows& rows) : op_(&op), block_(op.block(rows.dtype)), rows_(rows) {}
  const Primitive* pointwise() const override { return op_; }
  StepRows result() const override { return rows_; }
  bool commits() const override { return false; }
  void run(const void* x, void* y) override { Pointwise::run_several(1, x, y); }
  bool never_throws() const override { return true; }
  void advance(const void* x, void* y) override { Pointwise::run_several(1, x, y); }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    const std::ptrdiff_t run = 1;
    block_(&x, &run, y, n * rows_.batch * rows_.width);
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Pointwise>(*this); }

 private:
  const Primitive* op_;
  ferrite::detail::Block block_;
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
        has_bias_(bias.defined()),
        packed_(ferrite::detail::gate_pack_size<T>(D_, 1, N_)),
        added_(bias.defined() ? N_ : 0),
        matrix_(ferrite::detail::packed_gates<T>(packed_.get(), D_, 1, N_)),
        product_(ferrite::detail::products_in_use.of<T>().packed_product) {
    refresh();
  }
  StepRows result() const override { return {batch_, N_, dtype_of<T>}; }
  bool commits() const override { return false; }
  void run(const void* x, void* y) override { LinearStep::run_several(1, x, y); }
  bool never_throws() const override { return true; }
  void advance(const void* x, void* y) override { LinearStep::run_several(1, x, y); }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    matrix_.data = packed_.get();  // of a copy elsewhere
    product_(matrix_, n * batch_, static_cast<const T*>(x), D_, has_bias_ ? added_.get() : nullptr, static_cast<T*>(y));
  }
  void refresh() override {
    const Tensor w = contiguous(weight_.peek());
    ferrite::detail::pack_gates(w.data<T>(), N_, D_, 1, N_, N_, packed_.get());
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), N_, added_.get());
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<LinearStep>(*this); }

 private:
  Parameter weight_, bias_;
  std::int64_t D_, N_, batch_;
  bool has_bias_;
  StepMemory<T> packed_, added_;
  GateMatrix<T> matrix_;
  decltype(ferrite::detail::ProductKernels<T>::packed_product) product_;
};

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(const Parameter& weight, std::int64_t batch) : weight_(weight), batch_(batch) {
    EmbeddingStep::refresh();
  }
  StepRows result() const override { return {batch_, table_.shape()[1], table_.dtype()}; }
  bool commits() const override { return false; }
  void run(const void* x, void* y) override {
    const auto* const tokens = static_cast<const std::int64_t*>(x);
    const std::int64_t row = table_.shape()[1] * size_of(table_.dtype());
    for (std::int64_t b = 0; b < batch_; ++b)
      if (tokens[b] < 0 || tokens[b] >= table_.shape()[0]) throw_token(tokens[b]);
    for (std::int64_t b = 0; b < batch_; ++b)
      std::copy_n(table_.raw() + tokens[b] * row, row, static_cast<std::byte*>(y) + b * row);
  }
  void refresh() override { table_ = contiguous(weight_.peek()); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<EmbeddingStep>(*this); }

 private:
  [[noreturn]] void throw_token(std::int64_t token) const {
    throw ShapeError("embedding: token " + std::to_string(token) + " lies outside 0.." +
                     std::to_string(table_.shape()[0] - 1));
  }

  Parameter weight_;
  std::int64_t batch_;
  Tensor table_;  ///< immutable: the snapshot needs no copy
};

/// A layer without a step of its own: a copy of it on tensors, as any call.
class OnTensors final : public Step {
 public:
  OnTensors(const Layer& layer, const StepRows& in)
      : layer_(evaluating(layer)),
        parameters_(layer.named_parameters()),
        buffers_(layer.named_buffers()),
        carry_(*layer_, in.batch),
        in_(in) {
    const Tensor y = call(zeros(shape(), in.dtype));
    if (y.shape()[0] != in.batch)
      throw ShapeError("stream: " + layer.kind() + " gives " + y.shape().str() + " for " + std::to_string(in.batch) +
                       " rows");
    out_ = {in.batch, y.numel() / in.batch, y.dtype()};
    before_.resize(carry_.variables().size());
    next_.resize(before_.size());
    OnTensors::reset();
  }
  OnTensors(const OnTensors& o)
      : Step(o),
        layer_(evaluating(*o.layer_)),
        parameters_(o.parameters_),
        buffers_(o.buffers_),
        carry_(*layer_, o.in_.batch),
        in_(o.in_),
        out_(o.out_),
        before_(o.before_.size()),
        next_(o.next_.size()) {
    carry_.restore(o.carry_.save());
  }

  StepRows result() const override { return out_; }
  void run(const void* x, void* y) override {
    Tensor rows = Tensor::empty({shape(), in_.dtype});
    std::copy_n(static_cast<const std::byte*>(x), bytes_of(in_), ferrite::detail::Writer::raw(rows));
    take(before_);
    try {
      const Tensor result = contiguous(call(rows));
      std::copy_n(result.raw(), bytes_of(out_), static_cast<std::byte*>(y));
    } catch (...) {
      put_back(before_);
      throw;
    }
    take(next_);
    put_back(before_);
  }
  void commit() override { put_back(next_); }
  void commit_rows(Rows rows) override {
    std::vector<Tensor> states;
    for (std::size_t i = 0; i < next_.size(); ++i) {
      std::vector<float> own(rows, rows + in_.batch);
      states.push_back(where(gt(Tensor::from(own, {1, in_.batch, 1}), 0), next_[i], before_[i]));
    }
    put_back(states);
  }
  void refresh() override {
    take_values(parameters_, layer_->named_parameters());
    take_values(buffers_, layer_->named_buffers());
  }
  void reset() override { carry_.reset(); }
  void reset_row(std::int64_t row) override { carry_.reset(row); }
  void save(std::vector<Tensor>& states) const override {
    for (const Tensor& s : carry_.save()) states.push_back(s);
  }
  std::size_t restore(std::span<const Tensor> states) override {
    const std::size_t own = carry_.variables().size();
    if (states.size() < own) throw ValueError("stream: fewer states than the model has");
    carry_.restore(states.first(own));
    return own;
  }
  std::size_t on_tensors() const override { return 1; }
  std::unique_ptr<Step> clone() const override { return std::make_unique<OnTensors>(*this); }

 private:
  static std::unique_ptr<Layer> evaluating(const Layer& layer) {
    std::unique_ptr<Layer> copy = copy_in_place_of(layer);
    copy->eval();
    return copy;
  }

  void take(std::vector<Tensor>& states) const {
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = carry_.variables()[i].peek();
  }
  void put_back(const std::vector<Tensor>& states) const {
    for (std::size_t i = 0; i < states.size(); ++i) carry_.variables()[i].assign(states[i]);
  }
  Shape shape() const { return is_integer(in_.dtype) ? Shape{in_.batch, 1} : Shape{in_.batch, 1, in_.width}; }
  Tensor call(const Tensor& x) const {
    const NewFrame frame;
    const SingleStep single;
    return (*layer_)(x, {.carry = &carry_});
  }

  std::unique_ptr<Layer> layer_;
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;
  Carry carry_;
  StepRows in_, out_;
  std::vector<Tensor> before_, next_;  ///< states around the last run
};

}  // namespace

void run_profiled(Step& step, const void* x, void* y) {
  const ferrite::detail::ProfileEvent event(step.step_name(), step.scope());
  ferrite::detail::in_layer(step.scope(), [&] { step.run(x, y); });
}

void run_profiled(Step& step, std::int64_t n, const void* x, void* y) {
  const ferrite::detail::ProfileEvent event(step.steps_name(), step.scope());
  step.run_several(n, x, y);
}

std::unique_ptr<Layer> copy_in_place_of(const Layer& layer) {
  std::unique_ptr<Layer> copy = layer.clone();
  copy->take_path(layer);
  return copy;
}

std::unique_ptr<Step> step_of(const Layer& layer, const StepRows& in) {
  const StepInput wanted = layer.step_input();
  if (wanted.width > 0 && (wanted.width != in.width || wanted.dtype != in.dtype))
    throw ShapeError("stream: " + layer.kind() + " takes " + std::to_string(wanted.width) + " values of " +
                     std::string(name_of(wanted.dtype)) + " a row, the layer before it gives " +
                     std::to_string(in.width) + " of " + std::string(name_of(in.dtype)));
  std::unique_ptr<Step> step = layer.make_step(in);
  if (!step) step = layer.program_step(in);
  if (!step) {
    ferrite::detail::log_info("stream: " + layer.kind() + " has no step of its own: it runs on tensors");
    step = std::make_unique<OnTensors>(layer, in);
  }
  step->set_layer(layer.path(), layer.kind());
  return step;
}

std::unique_ptr<Step> identity_step(const StepRows& rows) { return std::make_unique<Identity>(rows); }

std::unique_ptr<Step> pointwise_step(const Primitive& op, const StepRows& rows) {
  return std::make_unique<Pointwise>(op, rows);
}

std::unique_ptr<Step> linear_step(const Parameter& weight, const Parameter& bias, std::int64_t batch) {
  if (weight.dtype() == Dtype::f64) return std::make_unique<LinearStep<double>>(weight, bias, batch);
  return std::make_unique<LinearStep<float>>(weight, bias, batch);
}

std::unique_ptr<Step> embedding_step(const Parameter& weight, std::int64_t batch) {
  return std::make_unique<EmbeddingStep>(weight, batch);
}

}  // namespace ferrite::nn::detail
