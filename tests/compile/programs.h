#pragma once
/// Random programs of elementwise operations, views, reductions, joins and products.
#include <random>
#include <sstream>

#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

namespace programs {

using namespace ferrite;

/// The kinds of operations that a program may contain.
struct Mix {
  bool reductions = true;
  bool joins = true;
  bool products = true;
  int most_steps = 30;
  bool chain = false;  ///< whether every step reads the result of the one before, and perhaps an input
};

/// A random program that depends on the seed but not on the values of its inputs: f(inputs) -> some of its values.
class Program {
 public:
  virtual ~Program() = default;
  explicit Program(std::uint64_t seed, const Mix& mix = {}) : seed_(seed), mix_(mix) {
    std::mt19937_64 random(seed);
    const int inputs = pick(random, 1, 3);
    for (int i = 0; i < inputs; ++i) {
      Shape s;
      const int rank = pick(random, 0, 3);
      for (int k = 0; k < rank; ++k) s.push_back(pick(random, 1, pick(random, 0, 9) == 0 ? 40 : 6));
      specs_.push_back({s, Dtype::f32});
    }
  }

  const Specs& specs() const { return specs_; }

  Tensors inputs() const {
    Tensors in;
    for (std::size_t i = 0; i < specs_.size(); ++i)
      in.push_back(uniform(specs_[i].shape, {seed_, i + 1, 0}, -2, 2, specs_[i].dtype));
    return in;
  }

  Tensors operator()(const Tensors& in) const {
    std::mt19937_64 random(seed_ + 1);
    std::vector<Tensor> live(in.begin(), in.end());
    const int steps = pick(random, 1, mix_.most_steps);
    for (int i = 0; i < steps; ++i) {
      Tensor made = next(random, live);
      if (made.numel() <= 4096) live.push_back(std::move(made));
    }
    Tensors out{live.back()};
    if (mix_.chain) return out;
    for (int k = pick(random, 0, 2); k > 0; --k) out.push_back(any(random, live));
    return out;
  }

 protected:
  using Random = std::mt19937_64;
  std::uint64_t seed() const { return seed_; }
  /// Returns a new value computed from live ones.
  virtual Tensor next(Random& r, const std::vector<Tensor>& live) const { return step(r, live); }

  static int pick(Random& r, int low, int high) {
    return low + static_cast<int>(r() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Returns one of the live values, preferably a newer one.
  static const Tensor& any(Random& r, const std::vector<Tensor>& live) {
    const auto n = static_cast<int>(live.size());
    const int back = std::min(pick(r, 0, n - 1), pick(r, 0, n - 1));
    return live[static_cast<std::size_t>(n - 1 - back)];
  }
  static Tensor real(const Tensor& x) { return is_float(x.dtype()) ? x : cast(x, Dtype::f32); }

  Tensor step(Random& r, const std::vector<Tensor>& live) const {
    const Tensor& x = mix_.chain ? live.back() : any(r, live);
    const int kind = pick(r, 0, 9);
    if (kind <= 2) return unary(r, x);
    if (kind <= 4)
      return binary(r, x, mix_.chain ? live[static_cast<std::size_t>(pick(r, 0, 1)) % specs_.size()] : any(r, live));
    if (kind <= 7) return view(r, x);
    if (kind == 8 && mix_.reductions) return reduction(r, x);
    if (kind == 9) return other(r, x, any(r, live));
    return unary(r, x);
  }

  static Tensor unary(Random& r, const Tensor& any_type) {
    const Tensor x = real(any_type);
    switch (pick(r, 0, 13)) {
      case 0: return exp(minimum(x, 3.0));
      case 1: return sin(x);
      case 2: return tanh(x);
      case 3: return sigmoid(x);
      case 4: return relu(x);
      case 5: return x * 0.75;
      case 6: return 1.5 - x;
      case 7: return square(clamp(x, -4, 4));
      case 8: return -x;
      case 9: return lt(x, 0.25);
      case 10: return cast(cast(x, Dtype::f64) + 1.0, Dtype::f32);
      case 11: return cast(3 * square(cast(x * 9, Dtype::i32)) + 1, Dtype::f32);
      case 12: return cast(relu(1 - cast(x, Dtype::i64)) * -2, Dtype::f32);
      default: return cos(x);
    }
  }

  static Tensor binary(Random& r, const Tensor& a_any, const Tensor& b_any) {
    const Tensor a = real(a_any);
    Tensor b = real(b_any);
    if (!broadcasts(a.shape(), b.shape())) b = tanh(a);
    switch (pick(r, 0, 5)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * clamp(b, -2, 2);
      case 3: return maximum(a, b);
      case 4: return where(lt(a, b), a, 0.5 * b);
      default: return a / (1 + square(b));
    }
  }

  static bool broadcasts(const Shape& a, const Shape& b) {
    for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i)
      if (a[-i] != b[-i] && a[-i] != 1 && b[-i] != 1) return false;
    return true;
  }

  static Tensor view(Random& r, const Tensor& x) {
    const int rank = x.rank();
    if (rank == 0) return expand(x, {pick(r, 1, 4), pick(r, 1, 4)});
    if (x.numel() == 0) return pick(r, 0, 1) ? flip(x, {0}) : unsqueeze(x, rank < 6 ? 1 : 0);
    const int axis = pick(r, 0, rank - 1);
    const std::int64_t n = x.shape()[axis];
    switch (pick(r, 0, 8)) {
      case 0: return transpose(x, axis, pick(r, 0, rank - 1));
      case 1: return flip(x, {axis});
      case 2: {
        // One draw after the other, so that every compiler makes the same program.
        const int begin = pick(r, 0, static_cast<int>(n) - 1), by = pick(r, 1, 2);
        return slice(x, axis, begin, pick(r, begin + 1, static_cast<int>(n)), by);
      }
      case 3: {
        Shape before = Shape::filled(rank, 0);
        Shape after = before;
        before[axis] = pick(r, n > 1 ? -1 : 0, 2);
        after[axis] = pick(r, 0, 2);
        return x.dtype() == Dtype::boolean ? pad(x, before, after, 1) : pad(x, before, after, 0.5 * pick(r, -1, 1));
      }
      case 4: return reshape(x, {-1});
      case 5: return split_axis(r, x, axis);
      case 6: return rank < 5 ? expand(unsqueeze(x, axis), expanded(r, x.shape(), axis)) : select(x, axis, 0);
      case 7: return select(x, axis, pick(r, 0, static_cast<int>(n) - 1));
      default: return rank < 2 ? unsqueeze(x, 0) : flatten(x, rank - 2, rank - 1);
    }
  }
  static Shape expanded(Random& r, Shape s, int axis) {
    s.insert(axis, pick(r, 1, 3));
    return s;
  }
  static Tensor split_axis(Random& r, const Tensor& x, int axis) {
    const std::int64_t n = x.shape()[axis];
    const std::int64_t parts = pick(r, 1, 4);
    if (x.rank() > 5 || n % parts != 0) return reshape(x, {-1});
    Shape s = x.shape();
    s[axis] = n / parts;
    s.insert(axis, parts);
    return reshape(x, s);
  }

  static Tensor reduction(Random& r, const Tensor& any_type) {
    const Tensor x = real(any_type);
    Shape axes;
    for (int i = 0; i < x.rank(); ++i)
      if (pick(r, 0, 1)) axes.push_back(i);
    const bool keep = pick(r, 0, 1) != 0;
    switch (pick(r, 0, 3)) {
      case 0: return amax(x, axes, keep);
      case 1: return x.rank() ? softmax(x, pick(r, 0, x.rank() - 1)) : exp(-square(x));
      case 2: return x.rank() ? layer_norm(x) : x;
      default: return mean(x, axes, keep);
    }
  }

  Tensor other(Random& r, const Tensor& a, const Tensor& b) const {
    if (mix_.products && pick(r, 0, 1) && a.rank() >= 1) {
      const Tensor x = real(a);
      return x.rank() == 1 ? 0.25 * matmul(unsqueeze(x, 1), unsqueeze(x, 0)) : 0.25 * matmul(x, transpose(x));
    }
    if (!mix_.joins || a.rank() == 0) return a;
    const int axis = pick(r, 0, a.rank() - 1);
    const Tensor x = real(a);
    const Tensor y = b.shape() == a.shape() ? real(b) : tanh(x);
    switch (pick(r, 0, 2)) {
      case 0: return concat({x, y, 2 * x}, axis);
      case 1: return stack({x, y}, axis);
      default: {
        Shape before = Shape::filled(a.rank(), 0);
        Shape after = before;
        before[axis] = after[axis] = x.shape()[axis];
        return pad(x, before, Shape::filled(a.rank(), 0)) + pad(y, Shape::filled(a.rank(), 0), after);
      }
    }
  }

  std::uint64_t seed_;
  Mix mix_;
  Specs specs_;
};

/// Returns the differences between a plan and the eager run of a program; empty if there are none.
inline std::string difference(const Program& f, const PlanOptions& options, PlanReport* report = nullptr) {
  const Tensors in = f.inputs();
  const Tensors wanted = f(in);
  const Graph g = trace([&](const Tensors& x) { return f(x); }, {f.specs().data(), f.specs().size()});
  const Plan plan(g, options);
  if (report) *report = plan.report();
  const Tensors got = plan.run(std::span<const Tensor>(in.data(), in.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto same = support::identical(got[i], wanted[i]);
    if (same) continue;
    std::ostringstream text;
    text << "result " << i << ": " << same.message() << "\n" << plan.graph().str() << plan.report().str();
    return text.str();
  }
  return {};
}

}  // namespace programs
