/// The backward pass of a scan: the gradient of one step, run as a scan in the other direction.
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes/gradient.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {

ScanBack::ScanBack(const ScanBody& body) : of_(body.signature()) {
  const Graph& step = body.graph();
  std::vector<char> given(step.inputs.size(), 1);  // stacks and captures are there; carries go from step to step
  std::fill_n(given.begin(), of_.carries, 0);
  gradient_ = std::make_unique<const GraphGradient>(step, given, step.outputs.size());
  for (const ValueId v : step.inputs) float_inputs_.push_back(is_float(step.values[v].dtype));
  for (const ValueId v : step.outputs) float_results_.push_back(is_float(step.values[v].dtype));
}

ScanBack::~ScanBack() = default;

Graph ScanBack::forward() const { return gradient_->forward(); }
std::size_t ScanBack::saved() const { return gradient_->residuals(); }

const ScanBack::Pass& ScanBack::pass(const Request& request) const {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<const Pass>& pass : passes_)
    if (pass->request == request) return *pass;
  passes_.push_back(std::make_unique<const Pass>(make(request)));
  return *passes_.back();
}

namespace {

/// Inputs of a graph in the order of their kinds, those without readers left out.
class UsedInputs {
 public:
  explicit UsedInputs(const Graph& g) : view_(g), from_(g.inputs) {}
  /// The next inputs, one for each name in `of`; the names of those that are read go to `which`, themselves to `to`.
  void take(const std::vector<std::size_t>& of, std::vector<std::size_t>& which, std::vector<ValueId>& to) {
    for (const std::size_t name : of) {
      const ValueId v = from_[at_++];
      if (!view_.uses(v)) continue;
      which.push_back(name);
      to.push_back(v);
    }
  }
  /// The next n inputs, read or not.
  std::vector<ValueId> take_all(std::size_t n) {
    const auto first = from_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += n;
    return {first, first + static_cast<std::ptrdiff_t>(n)};
  }

 private:
  GraphView view_;
  std::vector<ValueId> from_;
  std::size_t at_ = 0;
};

}  // namespace

ScanBack::Pass ScanBack::make(const Request& request) const {
  const std::size_t ends = of_.carries + of_.sums, inputs = float_inputs_.size();
  std::vector<char> arriving(float_results_.size(), 1);  // at carries and sums always
  std::copy(request.ys.begin(), request.ys.end(), arriving.begin() + static_cast<std::ptrdiff_t>(ends));
  Graph b = gradient_->backward(arriving, {request.inputs.data(), request.inputs.size()});

  const auto numbers = [](std::size_t begin, std::size_t end, const auto& counts) {
    std::vector<std::size_t> list;
    for (std::size_t i = begin; i < end; ++i)
      if (counts(i)) list.push_back(i - begin);
    return list;
  };
  const auto all = [](std::size_t) { return true; };
  const auto is_real = [&](std::size_t k) { return float_results_[k] && arriving[k]; };
  const auto has_gradient = [&](std::size_t i) { return float_inputs_[i] && request.inputs[i]; };
  const std::size_t carries = numbers(0, of_.carries, is_real).size();

  Pass pass;
  pass.request = request;
  UsedInputs used(b);
  std::vector<ValueId> saved, xs, captures, sums, ys;
  used.take(numbers(0, gradient_->residuals(), all), pass.saved, saved);
  used.take(numbers(of_.carries, of_.carries + of_.xs, all), pass.xs, xs);
  used.take(numbers(of_.carries + of_.xs, inputs, all), pass.captures, captures);
  b.inputs = used.take_all(carries);
  used.take(numbers(of_.carries, ends, is_real), pass.sums, sums);
  used.take(numbers(ends, float_results_.size(), is_real), pass.ys, ys);
  for (const std::size_t k : pass.ys)
    pass.arrived.push_back(static_cast<std::size_t>(
        std::count_if(request.ys.begin(), request.ys.begin() + k, [](char f) { return f != 0; })));
  for (const std::vector<ValueId>* list : {&saved, &xs, &ys, &captures, &sums})
    b.inputs.insert(b.inputs.end(), list->begin(), list->end());

  // Gradients come in the order of the inputs: those of xs, which become stacks, go behind those that are summed.
  const auto first = b.outputs.begin() + static_cast<std::ptrdiff_t>(carries);
  const std::size_t stacks = numbers(of_.carries, of_.carries + of_.xs, has_gradient).size();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(stacks), b.outputs.end());
  const std::size_t summed = b.outputs.size() - carries - stacks;
  pass.body = std::make_shared<const ScanBody>(std::move(b),
                                               ScanSignature{carries, saved.size() + xs.size() + ys.size(), summed});
  return pass;
}

}  // namespace ferrite::detail
