/// Any bytes are a program of tensors. Run eagerly, planned operation by operation, and fused, it has the same bits.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"

namespace {

using namespace ferrite;

constexpr std::int64_t kMostElements = 6000;
constexpr int kMostSteps = 40;

/// Reads bytes as choices; zeros when they have run out.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  /// Returns a number in [low, high].
  int pick(int low, int high) {
    const int b = done() ? 0 : bytes_[at_];
    ++at_;
    return low + b % (high - low + 1);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

Tensor real(const Tensor& x) { return is_float(x.dtype()) ? x : cast(x, Dtype::f32); }

bool broadcasts(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i)
    if (a[-i] != b[-i] && a[-i] != 1 && b[-i] != 1) return false;
  return true;
}

Tensor unary(Choices& c, const Tensor& any_type) {
  const Tensor x = real(any_type);
  switch (c.pick(0, 9)) {
    case 0: return exp(minimum(x, 3.0));
    case 1: return tanh(x);
    case 2: return relu(x);
    case 3: return -x;
    case 4: return 1.5 - x;
    case 5: return square(clamp(x, -4, 4));
    case 6: return lt(x, 0.25);
    case 7: return cast(cast(x, Dtype::f64) * 3, Dtype::f32);
    case 8: return x * 0.5;
    default: return sin(x);
  }
}

Tensor binary(Choices& c, const Tensor& a_any, const Tensor& b_any) {
  const Tensor a = real(a_any);
  const Tensor b = broadcasts(a_any.shape(), b_any.shape()) ? real(b_any) : tanh(a);
  switch (c.pick(0, 4)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * clamp(b, -2, 2);
    case 3: return maximum(a, b);
    default: return where(lt(a, b), a, 0.5 * b);
  }
}

Tensor padded(Choices& c, const Tensor& x, int axis) {
  Shape before = Shape::filled(x.rank(), 0);
  Shape after = before;
  before[axis] = c.pick(x.shape()[axis] > 1 ? -1 : 0, 2);
  after[axis] = c.pick(0, 2);
  return pad(real(x), before, after, 0.5 * c.pick(-1, 1));
}

Tensor view(Choices& c, const Tensor& x) {
  const int rank = x.rank();
  if (rank == 0) return expand(x, {c.pick(1, 4), c.pick(1, 4)});
  const int axis = c.pick(0, rank - 1);
  const auto n = static_cast<int>(x.shape()[axis]);
  switch (c.pick(0, 7)) {
    case 0: return transpose(x, axis, c.pick(0, rank - 1));
    case 1: return flip(x, {axis});
    case 2: {
      const int begin = c.pick(0, n - 1);
      return slice(x, axis, begin, c.pick(begin + 1, n), c.pick(1, 2));
    }
    case 3: return padded(c, x, axis);
    case 4: return reshape(x, {-1});
    case 5: return select(x, axis, c.pick(0, n - 1));
    case 6: {
      Shape s = x.shape();
      if (rank > 4) return reshape(x, {-1});
      s.insert(axis, c.pick(1, 3));
      return expand(unsqueeze(x, axis), s);
    }
    default: return rank < 2 ? unsqueeze(x, 1) : flatten(x, rank - 2, rank - 1);
  }
}

Tensor reduction(Choices& c, const Tensor& any_type) {
  const Tensor x = real(any_type);
  const int which = c.pick(0, (1 << x.rank()) - 1);
  Shape axes;
  for (int i = 0; i < x.rank(); ++i)
    if (which >> i & 1) axes.push_back(i);
  const bool keep = c.pick(0, 1) != 0;
  switch (c.pick(0, 3)) {
    case 0: return amax(x, axes, keep);
    case 1: return sum(x, axes, keep);
    case 2: return x.rank() ? softmax(x, c.pick(0, x.rank() - 1)) : x + 1;
    default: return mean(x, axes, keep);
  }
}

Tensor joined(Choices& c, const Tensor& a, const Tensor& b) {
  const Tensor x = real(a);
  if (x.rank() == 0) return x;
  const int axis = c.pick(0, x.rank() - 1);
  const Tensor y = a.shape() == b.shape() ? real(b) : tanh(x);
  return c.pick(0, 1) ? concat({x, y, 2 * x}, axis) : stack({x, y}, axis);
}

Tensor product(const Tensor& a, const Tensor& b) {
  const Tensor x = real(a);
  if (x.rank() == 0) return x;
  if (x.rank() == 1) return matmul(unsqueeze(x, 1), unsqueeze(tanh(x), 0)) * 0.25;
  const Tensor y = real(b);
  if (y.rank() == 2 && y.shape()[0] == x.shape()[-1]) return matmul(x, y) * 0.25;
  return matmul(x, transpose(x)) * 0.25;
}

Tensor step(Choices& c, const std::vector<Tensor>& live) {
  const auto n = static_cast<int>(live.size());
  const Tensor& a = live[static_cast<std::size_t>(n - 1 - c.pick(0, std::min(n - 1, 3)))];
  const Tensor& b = live[static_cast<std::size_t>(c.pick(0, n - 1))];
  switch (c.pick(0, 8)) {
    case 0:
    case 1: return unary(c, a);
    case 2:
    case 3: return binary(c, a, b);
    case 4:
    case 5: return view(c, a);
    case 6: return reduction(c, a);
    case 7: return joined(c, a, b);
    default: return product(a, b);
  }
}

Specs input_specs(Choices& c) {
  Specs specs;
  const int inputs = c.pick(1, 3);
  for (int i = 0; i < inputs; ++i) {
    Shape s;
    const int rank = c.pick(0, 3);
    for (int k = 0; k < rank; ++k) s.push_back(c.pick(1, 40));
    if (s.numel() > kMostElements) s = {7, 5};
    specs.push_back({s, Dtype::f32});
  }
  return specs;
}

Tensors run(Choices c, const Tensors& in) {
  std::vector<Tensor> live(in.begin(), in.end());
  for (int i = 0; i < kMostSteps && !c.done(); ++i) {
    Tensor next = step(c, live);
    if (next.numel() <= kMostElements) live.push_back(std::move(next));
  }
  Tensors out{live.back()};
  if (live.size() > 4) out.push_back(live[live.size() / 2]);
  return out;
}

template <class T>
bool same_elements(const Tensor& a, const Tensor& b) {
  const std::vector<T> x = a.to_vector<T>();
  const std::vector<T> y = b.to_vector<T>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T p = x[i];
    const T q = y[i];
    if (p != p && q != q) continue;
    if (std::memcmp(&p, &q, sizeof p) != 0) return false;
  }
  return true;
}

bool same(const Tensor& a, const Tensor& b) {
  if (!(a.spec() == b.spec())) return false;
  return visit_dtype(a.dtype(), [&](auto zero) { return same_elements<decltype(zero)>(a, b); });
}

/// Checks that a program that runs eagerly can be traced, planned and fused. Any exception here ends the program.
void check(const Choices& c, const Specs& specs) noexcept {
  Tensors in;
  for (std::size_t i = 0; i < specs.size(); ++i) in.push_back(uniform(specs[i].shape, {3, i, 0}, -2, 2));
  const Tensors wanted = run(c, in);
  const Graph g = trace([&](const Tensors& x) { return run(c, x); }, {specs.data(), specs.size()});
  for (const PlanOptions& options : {PlanOptions{}, PlanOptions{.fuse = false}, PlanOptions{.reuse = false}}) {
    const Tensors got = Plan(g, options).run(std::span<const Tensor>(in.data(), in.size()));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (!same(got[k], wanted[k])) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices c({data, size});
  const Specs specs = input_specs(c);
  check(c, specs);
  return 0;
}
