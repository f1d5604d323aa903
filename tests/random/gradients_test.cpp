// Random programs of scans in compiled calls in scans, several outputs with cotangents, and shared parts: their
// gradients have the bits of the tape's, however the parts run, and agree with central differences.
#include <map>
#include <random>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/tensor/ops.h"
#include "random/seeds.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;

namespace {

using Random = std::mt19937_64;

int pick(Random& r, int low, int high) {
  return low + static_cast<int>(r() % static_cast<std::uint64_t>(high - low + 1));
}

/// The ways in which the parts of a program run.
struct Ways {
  bool compiled = false;     ///< parts that are separate functions are compiled, each once
  bool checkpoints = false;  ///< scans keep few carries
};

/// A smooth program on f64 [3, 4] and a matrix [4, 4] that depends on the seed alone.
class Nested {
 public:
  Nested(std::uint64_t seed, Ways ways) : seed_(seed), ways_(ways) {}

  /// Computes x, y, w -> three results, one of which is a product of the others.
  Tensors operator()(const Tensors& in) {
    const Tensors t = part(seed_, 2, {in[0], in[1], in[2]});
    return {t[0], t[1], t[0] * t[1]};
  }

 private:
  using Compiled = std::function<Tensors(const Tensors&)>;

  /// Computes x, y, w -> two results.
  Tensors part(std::uint64_t seed, int depth, const Tensors& in) {
    Random r(seed);
    std::vector<Tensor> live = {in[0], in[1]};
    const Tensor& w = in[2];
    const auto any = [&]() -> const Tensor& {
      return live[static_cast<std::size_t>(pick(r, 0, static_cast<int>(live.size()) - 1))];
    };
    for (int n = pick(r, 3, 6); n > 0; --n) {
      const Tensor a = any(), b = any();
      switch (pick(r, 0, depth > 0 ? 9 : 6)) {
        case 0: live.push_back(tanh(a)); break;
        case 1: live.push_back(a * b); break;
        case 2: live.push_back(a + 0.5 * b); break;
        case 3: live.push_back(tanh(matmul(a, w))); break;
        case 4: live.push_back(concat({slice(a, 0, 0, 1), slice(b, 0, 1, 3)}, 0)); break;
        case 5: live.push_back(a - mean(b, {1}, true)); break;
        case 6: live.push_back(sigmoid(a) * b); break;
        case 7:
        case 8: scanned(r, depth, a, b, w, live); break;
        default:
          for (const Tensor& t : called(r(), depth - 1, {a, b, w})) live.push_back(t);
      }
    }
    return {live[live.size() - 1], live[live.size() - 2]};
  }

  void scanned(Random& r, int depth, const Tensor& a, const Tensor& b, const Tensor& w, std::vector<Tensor>& live) {
    const std::uint64_t seed = r();
    const bool calls = pick(r, 0, 1) != 0;
    ScanOptions o{.reverse = pick(r, 0, 1) != 0};
    const int every = pick(r, 1, 4);
    if (ways_.checkpoints) o.checkpoint_every = every;
    const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      const Tensors t = calls ? called(seed, depth - 1, {c[0], x[0], w}) : part(seed, depth - 1, {c[0], x[0], w});
      return {{tanh(t[0]), c[1] + 1}, {t[1], t[0]}};
    };
    const ScanResult s = scan(body, {a, zeros({})}, {stack({b, 0.5 * a, a * b}, 0)}, o);
    switch (pick(r, 0, 3)) {  // the parts of it that are read
      case 0: live.push_back(s.carry[0]); break;
      case 1: live.push_back(select(s.y[0], 0, 1)); break;
      case 2: live.push_back(tanh(sum(s.y[1], {0}))); break;
      default: live.push_back(s.carry[0] * mean(s.y[0], {0}));
    }
  }

  Tensors called(std::uint64_t seed, int depth, const Tensors& in) {
    if (!ways_.compiled) return part(seed, depth, in);
    Compiled& f = compiled_[seed];
    if (!f) f = compile([this, seed, depth](const Tensors& x) { return part(seed, depth, x); });
    return f(in);
  }

  std::uint64_t seed_;
  Ways ways_;
  std::map<std::uint64_t, Compiled> compiled_;
};

/// A request: the results at which cotangents arrive, and the inputs whose gradients are wanted.
struct Ask {
  explicit Ask(std::uint64_t seed) {
    Random r(seed + 77);
    results = static_cast<unsigned>(pick(r, 1, 7));
    inputs = static_cast<unsigned>(pick(r, 1, 7));
    for (std::uint64_t k = 0; k < 3; ++k) {
      const Shape shape = k < 2 ? Shape{3, 4} : Shape{4, 4};
      in.push_back(uniform(shape, {seed, k, 0}, -1, 1, Dtype::f64));
      direction.push_back(uniform(shape, {seed, 10 + k, 0}, -1, 1, Dtype::f64));
      cotangents.push_back(uniform({3, 4}, {seed, 20 + k, 0}, -1, 1, Dtype::f64));
    }
  }
  unsigned results, inputs;
  Tensors in, direction, cotangents;

  /// Returns the gradients; empty if no result depends on any of these inputs.
  template <class F>
  Tensors gradients(F&& f, const Tensors& at, GradOptions options = {}) const {
    Tape tape;
    Tensors x = at;
    std::vector<Tensor> wanted;
    for (std::size_t i = 0; i < 3; ++i)
      if (inputs >> i & 1) wanted.push_back(x[i] = tape.watch(x[i]));
    const Tensors out = f(x);
    std::vector<GradOf> of;
    for (std::size_t k = 0; k < 3; ++k)
      if (results >> k & 1) of.push_back({out[k], cotangents[k]});
    const Tensors g = tape.grad(of, wanted, options);
    return {g.begin(), g.end()};
  }
  /// Returns the sum of results times cotangents, with the wanted inputs moved along a direction.
  template <class F>
  double value(F&& f, double distance) const {
    Tensors x = in;
    for (std::size_t i = 0; i < 3; ++i)
      if (inputs >> i & 1) x[i] = x[i] + distance * direction[i];
    const Tensors out = f(x);
    double total = 0;
    for (std::size_t k = 0; k < 3; ++k)
      if (results >> k & 1) total += sum(out[k] * cotangents[k]).item<double>();
    return total;
  }
};

void check(std::uint64_t seed) {
  const Ask ask(seed);
  Nested plain(seed, {});
  Tensors wanted;
  try {
    wanted = ask.gradients(plain, ask.in);
  } catch (const TapeError&) {
    return;  // nothing depends on the wanted inputs
  }
  const auto same = [&](const Tensors& got, const Tensors& expected, const char* way) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      BOOST_TEST(support::identical(got[i], expected[i]), "seed " << seed << ", " << way << ", gradient " << i);
  };
  Nested few(seed, {.checkpoints = true}), compiled(seed, {.compiled = true});
  Nested both(seed, {.compiled = true, .checkpoints = true});
  same(ask.gradients(few, ask.in), wanted, "few carries kept");
  const auto whole = compile([&](const Tensors& x) { return both(x); });
  same(ask.gradients(whole, ask.in), wanted, "compiled");
  const auto inside = compile([&](const Tensors& x) { return ask.gradients(both, x); });
  same(inside(ask.in), wanted, "gradients compiled");
  // A compiled part is one entry of the tape: the gradients that it passes to one of its operands are added up before
  // they meet those from elsewhere.
  const Tensors of_parts = ask.gradients(compiled, ask.in);
  same(ask.gradients(both, ask.in), of_parts, "parts compiled, few carries kept");
  for (std::size_t i = 0; i < wanted.size(); ++i)
    BOOST_TEST(support::within(of_parts[i], wanted[i], 1e-13), "seed " << seed << ", parts compiled, gradient " << i);

  // Along a direction the first order is compared with central differences of values, the second with those of the
  // gradient.
  const auto along = [&](const Tensors& g) {
    double total = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < 3; ++i)
      if (ask.inputs >> i & 1) total += sum(g[next++] * ask.direction[i]).item<double>();
    return total;
  };
  constexpr double kStep = 1e-4;
  const double slope = (ask.value(plain, kStep) - ask.value(plain, -kStep)) / (2 * kStep);
  BOOST_TEST(std::fabs(slope - along(wanted)) <= 1e-5 * std::max(1.0, std::fabs(slope)),
             "seed " << seed << ": slope " << slope << ", gradient " << along(wanted));
}

/// Checks the gradient of the gradient along its direction, of compiled and of plain parts.
void check_second(std::uint64_t seed) {
  const Ask ask(seed);
  const auto second = [&](Nested& f) {
    Tape tape;
    Tensors x = ask.in;
    std::vector<Tensor> variables;
    for (Tensor& t : x) variables.push_back(t = tape.watch(t));
    const Tensors out = f(x);
    std::vector<GradOf> of;
    for (std::size_t k = 0; k < 3; ++k)
      if (ask.results >> k & 1) of.push_back({out[k], ask.cotangents[k]});
    const Tensors g = tape.grad(of, variables, {.create_graph = true});
    std::vector<GradOf> along;
    for (std::size_t i = 0; i < 3; ++i) along.push_back({g[i], ask.direction[i]});
    return tape.grad(along, variables);
  };
  Nested plain(seed, {}), few(seed, {.compiled = true, .checkpoints = true});
  Tensors wanted;
  try {
    wanted = second(plain);
  } catch (const TapeError&) {
    return;
  }
  const Tensors got = second(few);
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(support::within(got[i], wanted[i], 1e-10), "seed " << seed << ", second order, input " << i);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_gradients)

BOOST_AUTO_TEST_CASE(have_the_bits_of_the_tape_however_the_parts_run) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(2000U, 100U), 10);
  for (std::uint64_t k = 0; k < range.count; ++k) check(range.first + k);
}

BOOST_AUTO_TEST_CASE(of_gradients_agree_however_the_parts_run) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(2000U, 100U), 20);
  for (std::uint64_t k = 0; k < range.count; ++k) check_second(range.first + k);
}

BOOST_AUTO_TEST_SUITE_END()
