/// The layers without a product in their loop: linear recurrent units, S5 and Mamba, their shared recurrences on
/// sequences, and their steps for streams, with states in place and weights packed once.
#include <algorithm>
#include <cmath>

#include "ferrite/nn/recurrent/detail/linear_recurrence.h"
#include "ferrite/nn/recurrent/lru.h"
#include "ferrite/nn/recurrent/mamba.h"
#include "ferrite/nn/recurrent/s5.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/kernel/linear_scan.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/selective_scan.h"
#include "ferrite/tensor/shapes.h"

// ---- recurrences on sequences --------------------------------------------------------------------------

namespace ferrite::nn::detail {

Tensor last_of(const Tensor& h, const SequenceOptions& o) {
  if (!o.lengths.defined()) return select(h, 1, o.reverse ? 0 : -1);
  if (o.reverse) return select(h, 1, 0);
  Shape one = h.shape();
  one[1] = 1;
  Tensor at = unsqueeze(o.lengths - 1, 1);
  for (int k = 2; k < h.rank(); ++k) at = unsqueeze(at, -1);
  return squeeze(gather(h, 1, expand(at, one)), 1);
}

Tensor run_linear(const Tensor& a, const Tensor& b, const SequenceOptions& o, Tensor& state) {
  const Tensor h = linear_scan(a, b, state, {.reverse = o.reverse, .lengths = o.lengths, .resets = o.resets});
  state = last_of(h, o);
  return h;
}

Tensor run_diagonal(const Diagonal& d, const Tensor& x, const SequenceOptions& options, Tensor& state) {
  Shape pairs = x.shape(), flat = pairs;
  pairs[-1] = d.decay.shape()[0], flat[-1] = 2 * pairs[-1];
  pairs.push_back(2);
  const Tensor h = run_linear(d.decay, reshape(matmul(x, d.in), pairs), options, state);
  const Tensor y = matmul(reshape(h, flat), d.out);
  return d.skip.defined() ? y + d.skip * x : y;
}

Tensor by_blocks(const Tensor& x, const Tensor& w) {
  const std::int64_t blocks = w.shape()[0], in = w.shape()[1], out = w.shape()[2];
  if (blocks == 1) return matmul(x, select(w, 0, 0));
  Shape shape = x.shape();
  shape[-1] = blocks * out;
  const Tensor by_block = permute(reshape(x, {-1, blocks, in}), {1, 0, 2});  // [blocks, rows, in]
  return reshape(permute(matmul(by_block, w), {1, 0, 2}), shape);
}

// ---- steps of streams ----------------------------------------------------------------------------------

namespace {

using namespace ferrite::detail;

/// The states of all rows, [batch, ...]: those that a step reads, and those that it leaves until `commit`.
template <class T>
class RowStates {
 public:
  explicit RowStates(const Shape& shape)
      : shape_(shape),
        width_(shape.numel() / std::max<std::int64_t>(shape[0], 1)),
        now_(shape.numel()),
        next_(shape.numel()) {}

  T* now() const { return now_.get(); }
  T* next() const { return next_.get(); }
  void commit() { std::copy_n(next(), now_.size(), now()); }
  void commit_rows(Step::Rows rows) {
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      if (rows[b]) std::copy_n(next() + b * width_, width_, now() + b * width_);
  }
  StateMemory state() const {
    return {.name = "h", .spec = {shape_, ferrite::dtype_of<T>}, .first = reinterpret_cast<std::byte*>(now())};
  }

 private:
  Shape shape_;
  std::int64_t width_;
  StepMemory<T> now_, next_;
};

/// The base of steps with one state: `Self` runs a loop over n steps that reads states from one memory and leaves them
/// in another.
template <class Self, class T>
class OneState : public Step {
 public:
  explicit OneState(const Shape& state, std::int64_t at_once) : states_(state), at_once_(at_once) {}

  bool never_throws() const override { return true; }
  void run(Inputs x, void* y) override { self().steps(1, x[0], states_.now(), y, states_.next()); }
  void commit() override { states_.commit(); }
  void commit_rows(Rows rows) override { states_.commit_rows(rows); }
  void advance(Inputs x, void* y) override { self().steps(1, x[0], states_.now(), y, states_.now()); }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    self().steps(n, x[0], states_.now(), y, states_.now());
  }
  void states(const StateVisitor& see) override { see(states_.state()); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Self>(static_cast<const Self&>(*this)); }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  RowStates<T> states_;
  std::int64_t at_once_;
};

// ---- minimal layers ----------------------------------------------------------------------------------------

template <class T>
class Minimal final : public OneState<Minimal<T>, T> {
 public:
  Minimal(MinimalCell cell, std::int64_t H, std::int64_t batch)
      : OneState<Minimal<T>, T>({batch, H},
                                steps_at_once(batch * gates_of(cell) * H * static_cast<std::int64_t>(sizeof(T)))),
        G_(gates_of(cell)),
        H_(H),
        B_(batch),
        scan_(minimal_kernels<T>(cell).scan) {}

  StepRows result() const override { return {B_, H_, ferrite::dtype_of<T>}; }
  void steps(std::int64_t n, const void* gates, const T* from, void* h, T* to) const {
    const T* x = static_cast<const T*>(gates);
    T* y = static_cast<T*>(h);
    for (std::int64_t b = 0; b < B_; ++b)
      scan_({n, H_, B_ * G_ * H_, B_ * H_, x + b * G_ * H_, from + b * H_, nullptr}, y + b * H_);
    std::copy_n(y + (n - 1) * B_ * H_, B_ * H_, to);
  }

 private:
  std::int64_t G_, H_, B_;
  decltype(MinimalKernels<T>::scan) scan_;
};

// ---- diagonal recurrences ----------------------------------------------------------------------------------

/// A packed matrix [K, N].
template <class T>
class Packed {
 public:
  explicit Packed(const Tensor& w) : K_(w.shape()[0]), N_(w.shape()[1]), memory_(gate_pack_size<T>(K_, 1, N_)) {
    take(w);
  }
  void take(const Tensor& w) { pack_columns(contiguous(w), memory_.get()); }
  /// Computes the product x [rows, K] -> y [rows, N].
  void multiply(std::int64_t rows, const T* x, T* y) const {
    products_in_use.of<T>().packed_product(packed_gates<T>(memory_.get(), K_, 1, N_), rows, x, K_, nullptr, y);
  }
  std::int64_t rows() const { return K_; }
  std::int64_t columns() const { return N_; }

 private:
  std::int64_t K_, N_;
  StepMemory<T> memory_;
};

template <class T>
class DiagonalStep final : public OneState<DiagonalStep<T>, T> {
 public:
  DiagonalStep(std::function<Diagonal()> compute, std::vector<Parameter> parameters, std::int64_t batch)
      : DiagonalStep(computed(compute, parameters), compute, parameters, batch) {}

  StepRows result() const override { return {B_, out_.columns(), ferrite::dtype_of<T>}; }
  void steps(std::int64_t n, const void* inputs, const T* from, void* outputs, T* to) const {
    const T* x = static_cast<const T*>(inputs);
    T *y = static_cast<T*>(outputs), *driven = room_.get(), *h = driven + room_.size() / 2;
    const std::int64_t W = in_.columns(), N = out_.columns();
    in_.multiply(n * B_, x, driven);
    for (std::int64_t b = 0; b < B_; ++b)
      scan_({n, B_ * W, W, false, true, true, nullptr, decay_.get(), from + b * W}, driven + b * W, h + b * W);
    std::copy_n(h + (n - 1) * B_ * W, B_ * W, to);
    out_.multiply(n * B_, h, y);
    for (std::int64_t r = 0; r < n * B_; ++r)
      for (std::int64_t k = 0; k < N; ++k) y[r * N + k] = y[r * N + k] + skip_.get()[k] * x[r * N + k];
  }
  void refresh() override {
    const Diagonal d = computed(compute_, parameters_);
    in_.take(d.in);
    out_.take(d.out);
    take_vectors(d);
  }

 private:
  DiagonalStep(const Diagonal& d, const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters,
               std::int64_t batch)
      : DiagonalStep(d, compute, parameters, batch,
                     steps_at_once(batch * d.in.shape()[1] * static_cast<std::int64_t>(sizeof(T)))) {}
  DiagonalStep(const Diagonal& d, const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters,
               std::int64_t batch, std::int64_t at_once)
      : OneState<DiagonalStep<T>, T>({batch, d.decay.shape()[0], 2}, at_once),
        compute_(compute),
        parameters_(parameters),
        B_(batch),
        in_(d.in),
        out_(d.out),
        decay_(d.decay.numel()),
        skip_(d.skip.numel()),
        room_(2 * (at_once * batch * d.in.shape()[1] + padded<T>(1))),
        scan_(linear_scan_in_use.of<T>().scan) {
    take_vectors(d);
  }

  static Diagonal computed(const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters) {
    for (const Parameter& p : parameters) (void)p.peek();  // throws if a value would become a constant of a program
    const NewFrame frame;
    return compute();
  }
  void take_vectors(const Diagonal& d) {
    const Tensor decay = contiguous(d.decay), skip = contiguous(d.skip);
    std::copy_n(decay.data<T>(), decay.numel(), decay_.get());
    std::copy_n(skip.data<T>(), skip.numel(), skip_.get());
  }

  std::function<Diagonal()> compute_;
  std::vector<Parameter> parameters_;
  std::int64_t B_;
  Packed<T> in_, out_;
  StepMemory<T> decay_, skip_, room_;
  decltype(LinearScanKernels<T>::scan) scan_;
};

}  // namespace

std::unique_ptr<Step> minimal_step(MinimalCell cell, std::int64_t H, const StepRows& gates) {
  if (gates.dtype == Dtype::f64) return std::make_unique<Minimal<double>>(cell, H, gates.batch);
  return std::make_unique<Minimal<float>>(cell, H, gates.batch);
}

std::unique_ptr<Step> diagonal_step(std::function<Diagonal()> compute, std::vector<Parameter> parameters,
                                    const StepRows& in) {
  if (in.dtype == Dtype::f64)
    return std::make_unique<DiagonalStep<double>>(std::move(compute), std::move(parameters), in.batch);
  return std::make_unique<DiagonalStep<float>>(std::move(compute), std::move(parameters), in.batch);
}

}  // namespace ferrite::nn::detail

// ---- linear recurrent units ----------------------------------------------------------------------------

namespace ferrite::nn {
namespace {

std::string text(double x) { return Scalar(x).str(); }

/// Draws the moduli of points that lie uniformly in the ring between two radii.
Tensor moduli(const Shape& shape, const RandomKey& key, double low, double high) {
  return sqrt(uniform(shape, key, low * low, high * high, Dtype::f64));
}

std::int64_t checked_size(const char* name, std::int64_t n) {
  if (n < 1) throw ValueError(std::string(name) + ": sizes must be positive, got " + std::to_string(n));
  return n;
}

/// Returns the recurrence of an LRU, given its parameters in the order in which the layer registers them.
detail::Diagonal diagonal_of(const std::vector<Parameter>& p) {
  const Tensor nu = p[0], theta = p[1], gamma = unsqueeze(exp(p[2]), 1), C_re = p[5], C_im = p[6];
  const std::int64_t N = C_re.shape()[1], F = C_re.shape()[0];
  const Tensor r = exp(-exp(nu)), phase = exp(theta);
  return {.in = reshape(permute(stack({p[3] * gamma, p[4] * gamma}, 2), {1, 0, 2}), {F, 2 * N}),
          .decay = stack({r * cos(phase), r * sin(phase)}, -1),
          .out = reshape(permute(stack({C_re, -C_im}, 2), {1, 2, 0}), {2 * N, F}),
          .skip = p[7]};
}

}  // namespace

Lru::Lru(std::int64_t input_size, std::int64_t hidden_size, const LruOptions& o, const Init& init)
    : LayerOf(o, name, checked_size(name, input_size), hidden_size,
              std::vector<RowState>{{"h", {checked_size(name, hidden_size), 2}}}, init) {
  if (!(o.r_min >= 0 && o.r_min < o.r_max && o.r_max <= 1 && o.max_phase > 0))
    throw ValueError("lru: takes 0 <= r_min < r_max <= 1 and a max_phase above 0, got " + text(o.r_min) + ", " +
                     text(o.r_max) + " and " + text(o.max_phase));
  const std::int64_t N = hidden_size, F = input_size;
  // The radii stay below 1, where gamma would be 0, and above 0, where nu_log would be infinite.
  const double low = std::max(o.r_min, 1e-4), high = std::min(o.r_max, 1 - 1e-6);
  const Fill nu(
      [=](const Shape& s, const RandomKey& key, Dtype t) { return cast(log(-log(moduli(s, key, low, high))), t); });
  const double phase = o.max_phase;
  const Fill theta([=](const Shape& s, const RandomKey& key, Dtype t) {
    return cast(log(uniform(s, key, 0, phase, Dtype::f64) + 1e-12), t);
  });
  nu_log = parameter("nu_log", {N}, nu, init);
  theta_log = parameter("theta_log", {N}, theta, init);
  const Variable::Draw gamma = [nu_of = nu_log](std::string_view, std::uint64_t) {
    const Tensor decay = exp(cast(nu_of.peek(), Dtype::f64));  // -log |lambda|
    return cast(0.5 * log(-expm1(-2 * decay)), nu_of.dtype());
  };
  gamma_log = parameter("gamma_log", Spec{{N}, init.dtype}, gamma, init);
  const Fill of_b = init::normal(0, std::sqrt(0.5 / static_cast<double>(F)));
  const Fill of_c = init::normal(0, std::sqrt(1 / static_cast<double>(N)));
  B_re = parameter("B_re", {N, F}, of_b, init);
  B_im = parameter("B_im", {N, F}, of_b, init);
  C_re = parameter("C_re", {F, N}, of_c, init);
  C_im = parameter("C_im", {F, N}, of_c, init);
  D = parameter("D", {F}, init::normal(0, 1), init);
}

Tensor Lru::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  return detail::run_diagonal(diagonal_of(in_order()), x, options, states[0]);
}

std::size_t Lru::add_steps(StepGraph& graph, std::size_t x) const {
  const std::vector<Parameter> all = in_order();
  return graph.add(*this, detail::diagonal_step([all] { return diagonal_of(all); }, all, graph.rows(x)), {x});
}

std::vector<Parameter> Lru::in_order() const { return {nu_log, theta_log, gamma_log, B_re, B_im, C_re, C_im, D}; }

RgLru::RgLru(const RgLruOptions& o, const Init& init)
    : LayerOf(o, name, checked_size(name, o.features), std::vector<RowState>{{"h", {o.features}}}, init) {
  const std::int64_t D = o.features, K = checked_size(name, o.heads);
  if (D % K != 0)
    throw ValueError("rg_lru: heads must divide the features, got " + std::to_string(K) + " heads of " +
                     std::to_string(D));
  // softplus(a_param) = -log(a) / 8
  const Fill decays([](const Shape& s, const RandomKey& key, Dtype t) {
    return cast(log(expm1(log(moduli(s, key, 0.9, 0.999)) / -8)), t);
  });
  a_param = parameter("a_param", {D}, decays, init);
  const Fill gate = init::normal(0, std::sqrt(static_cast<double>(K) / static_cast<double>(D)));
  const Shape block{K, D / K, D / K}, rest{K, D / K};
  input_gate_w = parameter("input_gate.w", block, gate, init);
  input_gate_b = parameter("input_gate.b", rest, init::constant(0), init);
  a_gate_w = parameter("a_gate.w", block, gate, init);
  a_gate_b = parameter("a_gate.b", rest, init::constant(0), init);
}

Tensor RgLru::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  const auto gate = [&](const Parameter& w, const Parameter& b) {
    return sigmoid(detail::by_blocks(x, w) + reshape(b, {input_size()}));
  };
  const Tensor log_a = -8 * gate(a_gate_w, a_gate_b) * softplus(a_param);
  const Tensor b = sqrt(-expm1(2 * log_a)) * (gate(input_gate_w, input_gate_b) * x);
  return detail::run_linear(exp(log_a), b, options, states[0]);
}

template class LayerOf<Lru, LruOptions, SizedSequenceLayer>;
template class LayerOf<RgLru, RgLruOptions, SequenceLayer>;

// ---- S5 ------------------------------------------------------------------------------------------------

namespace {

// ---- complex numbers as a last axis of 2 ------------------------------------------------------------------
Tensor re(const Tensor& x) { return select(x, -1, 0); }
Tensor im(const Tensor& x) { return select(x, -1, 1); }
Tensor complex(const Tensor& re, const Tensor& im) { return stack({re, im}, -1); }
Tensor times(const Tensor& x, const Tensor& y) {
  // Terms have names in the order of docs/numerics.md, rule 13.
  const Tensor falling = im(x) * re(y), imaginary = re(x) * im(y) + falling;
  const Tensor both = im(x) * im(y), real = re(x) * re(y) - both;
  return complex(real, imaginary);
}
Tensor reciprocal_of(const Tensor& x) {
  const Tensor of_imaginary = square(im(x)), n = square(re(x)) + of_imaginary;
  const Tensor imaginary = -im(x) / n;
  return complex(re(x) / n, imaginary);
}

/// Returns the product of two complex matrices, from products of their real and imaginary parts.
Tensor product(const Tensor& x, const Tensor& y) {
  return complex(matmul(re(x), re(y)) - matmul(im(x), im(y)), matmul(re(x), im(y)) + matmul(im(x), re(y)));
}

// ---- where it starts -----------------------------------------------------------------------------------------

/// The eigenvalues [n, 2], by ascending imaginary part, and eigenvectors [n, n, 2], as columns, of the normal part of
/// the matrix HiPPO-LegS of n states, S = -1/2 + K with K skew, in f64.
struct Hippo {
  Tensor values, vectors;
};
Hippo hippo(std::int64_t n) {
  // K[i][j] = sqrt(i + 1/2) sqrt(j + 1/2) above the diagonal, its negative below.
  const Tensor p = sqrt(arange(0, n, 1, Dtype::f64) + 0.5);
  const Tensor outer = unsqueeze(p, 1) * unsqueeze(p, 0);
  const Tensor K = triu(outer, 1) - tril(outer, -1);
  // K'K has each squared frequency w^2 twice; one of its eigenvectors u and K u / w span the pair.
  const EighResult squares = eigh(matmul(transpose(K), K));
  const std::vector<double> w2 = squares.eigenvalues.to_vector<double>();
  Tensors values, vectors;
  const auto add = [&](double w, const Tensor& a, const Tensor& b) {
    values.push_back(Tensor::from<double>({-0.5, w}, {2}));
    vectors.push_back(complex(a, b));
  };
  const Tensor zero = zeros({n}, Dtype::f64);
  std::vector<std::pair<double, Tensor>> pairs;
  for (std::int64_t k = n - 1; k > 0; k -= 2)
    pairs.emplace_back(std::sqrt(std::max(w2[static_cast<std::size_t>(k)], 0.0)), select(squares.eigenvectors, 1, k));
  const double half = std::sqrt(0.5);
  for (const auto& [w, u] : pairs) add(-w, u * half, matmul(K, u) * (half / w));
  if (n % 2 == 1) add(0, select(squares.eigenvectors, 1, 0), zero);
  for (auto at = pairs.rbegin(); at != pairs.rend(); ++at)
    add(at->first, at->second * half, matmul(K, at->second) * (-half / at->first));
  return {stack(values), stack(vectors, 1)};
}

/// Returns a matrix [J n, J n, 2] with J copies of x [n, n, 2] along its diagonal.
Tensor block_diagonal(const Tensor& x, std::int64_t blocks) {
  const std::int64_t n = x.shape()[0];
  Tensors rows;
  for (std::int64_t j = 0; j < blocks; ++j) rows.push_back(pad(x, {0, j * n, 0}, {0, (blocks - 1 - j) * n, 0}));
  return concat(rows, 0);
}

void check(std::int64_t D, std::int64_t P, const S5Options& o) {
  if (D < 1 || P < 1 || o.blocks < 1 || P % o.blocks != 0)
    throw ValueError("s5: sizes must be positive and blocks divide the state, got " + std::to_string(D) +
                     " features, a state of " + std::to_string(P) + " in " + std::to_string(o.blocks) + " blocks");
  if (!(o.dt_min > 0 && o.dt_min <= o.dt_max && std::isfinite(o.dt_max) && o.step_scale > 0))
    throw ValueError("s5: takes 0 < dt_min <= dt_max and a step_scale above 0, got " + Scalar(o.dt_min).str() + ", " +
                     Scalar(o.dt_max).str() + " and " + Scalar(o.step_scale).str());
}

std::vector<RowState> state_of(std::int64_t P, const S5Options& o) {
  if (o.bidirectional) return {};
  return {{"h", {P, 2}}};
}

// ---- steps -----------------------------------------------------------------------------------------------

struct S5Weights {
  Parameter Lambda, B, C, D, log_step;
};

detail::Diagonal diagonal_of(const S5Weights& w, const S5Options& o) {
  const std::int64_t P = w.log_step.shape()[0], F = w.D.shape()[0];
  const Tensor Lambda = w.Lambda, dt = o.step_scale * exp(w.log_step);
  const Tensor scaled = Lambda * unsqueeze(dt, 1);
  Tensor decay, gain;  // [P, 2]
  if (!o.bilinear) {
    const Tensor r = exp(re(scaled));
    const Tensor imaginary = r * sin(im(scaled));
    decay = complex(r * cos(im(scaled)), imaginary);
    const Tensor turn = im(decay), growth = complex(re(decay) - 1, turn);
    gain = times(reciprocal_of(Lambda), growth);
  } else {
    const Tensor a = re(scaled) * 0.5, b = im(scaled) * 0.5;
    const Tensor down = reciprocal_of(complex(1 - a, -b));
    decay = times(down, complex(1 + a, b));
    gain = down * unsqueeze(dt, 1);
  }
  return {.in = reshape(permute(times(unsqueeze(gain, 1), w.B), {1, 0, 2}), {F, 2 * P}),
          .decay = decay,
          .out = reshape(permute(complex(re(w.C), -im(w.C)), {1, 2, 0}), {-1, F}),
          .skip = w.D};
}

}  // namespace

S5::S5(std::int64_t input_size, std::int64_t hidden_size, const S5Options& o, const Init& init)
    : LayerOf(o, name, (check(input_size, hidden_size, o), input_size), hidden_size, state_of(hidden_size, o), init) {
  const std::int64_t F = input_size, P = hidden_size, J = o.blocks, n = P / J;
  const Fill eigenvalues(
      [=](const Shape&, const RandomKey&, Dtype t) {
        const Tensor one = hippo(n).values;
        return cast(reshape(expand(one, {J, n, 2}), {P, 2}), t);
      },
      false);
  Lambda = parameter("seq.Lambda", {P, 2}, eigenvalues, init);
  const Fill of_b([=](const Shape&, const RandomKey& key, Dtype t) {
    const Tensor V = block_diagonal(hippo(n).vectors, J);
    const Tensor adjoint = transpose(complex(re(V), -im(V)), 0, 1);
    const Tensor b = normal({P, F}, key, 0, 1 / std::sqrt(static_cast<double>(F)), Dtype::f64);
    return cast(product(adjoint, complex(b, zeros_like(b))), t);
  });
  B = parameter("seq.B", {P, F, 2}, of_b, init);
  const std::int64_t directions = o.bidirectional ? 2 : 1;
  const Fill of_c([=](const Shape&, const RandomKey& key, Dtype t) {
    const Tensor V = block_diagonal(hippo(n).vectors, J);
    const Tensor c = normal({directions, F, P, 2}, key, 0, 1 / std::sqrt(2 * static_cast<double>(P)), Dtype::f64);
    Tensors parts;
    for (std::int64_t d = 0; d < directions; ++d) parts.push_back(product(select(c, 0, d), V));
    return cast(concat(parts, 1), t);
  });
  C = parameter("seq.C", {F, directions * P, 2}, of_c, init);
  D = parameter("seq.D", {F}, init::uniform(0, 1), init);
  log_step = parameter("seq.log_step", {P}, init::uniform(std::log(o.dt_min), std::log(o.dt_max)), init);
}

std::size_t S5::add_steps(StepGraph& graph, std::size_t x) const {
  if (options().bidirectional) return Layer::add_steps(graph, x);
  const S5Weights w{Lambda, B, C, D, log_step};
  auto step = detail::diagonal_step([w, o = options()] { return diagonal_of(w, o); }, {Lambda, B, C, D, log_step},
                                    graph.rows(x));
  return graph.add(*this, std::move(step), {x});
}

Tensor S5::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  const detail::Diagonal d = diagonal_of({Lambda, B, C, D, log_step}, this->options());
  if (!this->options().bidirectional) return detail::run_diagonal(d, x, options, states[0]);
  const std::int64_t P = hidden_size();
  Tensor zero = zeros({x.shape()[0], P, 2}, x.dtype()), zero_back = zero;
  SequenceOptions back = options;
  back.reverse = true;
  const detail::Diagonal forth{d.in, d.decay, slice(d.out, 0, 0, 2 * P), d.skip};
  const detail::Diagonal backwards{d.in, d.decay, slice(d.out, 0, 2 * P, 4 * P), {}};
  return detail::run_diagonal(forth, x, options, zero) + detail::run_diagonal(backwards, x, back, zero_back);
}

template class LayerOf<S5, S5Options, SizedSequenceLayer>;

// ---- Mamba ---------------------------------------------------------------------------------------------

namespace {

const MambaOptions& checked_options(const MambaOptions& o) {
  if (o.features < 1 || o.state < 1 || o.expand < 1 || o.kernel_size < 1 || o.dt_rank < 0)
    throw ValueError("mamba: sizes must be positive, got " + std::to_string(o.features) + " features, a state of " +
                     std::to_string(o.state) + ", expand " + std::to_string(o.expand) + ", kernel_size " +
                     std::to_string(o.kernel_size) + " and dt_rank " + std::to_string(o.dt_rank));
  if (!(o.dt_min > 0 && o.dt_min <= o.dt_max && std::isfinite(o.dt_max)))
    throw ValueError("mamba: takes 0 < dt_min <= dt_max, got " + Scalar(o.dt_min).str() + " and " +
                     Scalar(o.dt_max).str());
  return o;
}

std::vector<RowState> states_of(const MambaOptions& o) {
  std::vector<RowState> all;
  if (o.kernel_size > 1) all.push_back({"taps", {o.kernel_size - 1, o.inner()}});
  all.push_back({"h", {o.inner(), o.state}});
  return all;
}

}  // namespace

Mamba::Mamba(const MambaOptions& o, const Init& init)
    : LayerOf(o, name, checked_options(o).features, states_of(o), init),
      in_proj_(o.features, 2 * o.inner(), init.child("in_proj"), o.bias),
      x_proj_(o.inner(), o.rank() + 2 * o.state, init.child("x_proj"), false),
      out_proj_(o.inner(), o.features, init.child("out_proj"), o.bias) {
  const std::int64_t E = o.inner(), K = o.kernel_size, R = o.rank(), N = o.state;
  adopt("in_proj", in_proj_);
  const Fill of_taps = init::uniform(-1 / std::sqrt(static_cast<double>(K)), 1 / std::sqrt(static_cast<double>(K)));
  conv_weight = parameter("conv1d.weight", {E, 1, K}, of_taps, init);
  if (o.conv_bias) conv_bias = parameter("conv1d.bias", {E}, of_taps, init);
  adopt("x_proj", x_proj_);
  const double bound = 1 / std::sqrt(static_cast<double>(R));
  dt_weight = parameter("dt_proj.weight", {R, E}, init::uniform(-bound, bound), init, FileLayout::transposed);
  const double low = std::log(o.dt_min), high = std::log(o.dt_max);
  const Fill steps([=](const Shape& s, const RandomKey& key, Dtype t) {
    const Tensor dt = maximum(exp(uniform(s, key, low, high, Dtype::f64)), full({}, 1e-4, Dtype::f64));
    return cast(dt + log(-expm1(-dt)), t);  // softplus of it is dt
  });
  dt_bias = parameter("dt_proj.bias", {E}, steps, init);
  const Fill ascending([](const Shape& s, const RandomKey&,
                          Dtype t) { return cast(contiguous(expand(log(arange(1, s[1] + 1, 1, Dtype::f64)), s)), t); },
                       false);
  A_log = parameter("A_log", {E, N}, ascending, init);
  D = parameter("D", {E}, init::constant(1), init);
  adopt("out_proj", out_proj_);
}

Tensor Mamba::convolved(const Tensor& u, const SequenceOptions& o, Tensor& taps) const {
  const std::int64_t B = u.shape()[0], T = u.shape()[1], E = u.shape()[2], past = options().kernel_size - 1;
  const Tensor all = past > 0 ? concat({taps, u}, 1) : u;
  // Number of resets up to each step of `all`.
  Tensor resets;
  if (o.resets.defined()) resets = concat({zeros({B, past}, Dtype::i64), cumsum(o.resets, 1)}, 1);
  const auto hidden = [&](const Tensor& now, const Tensor& then) { return unsqueeze(gt(now, then), 2); };
  const Tensor w = reshape(conv_weight, {E, past + 1});
  Tensor y;
  for (std::int64_t k = 0; k <= past; ++k) {
    Tensor tap = slice(all, 1, k, k + T);
    if (resets.defined() && k < past)
      tap = where(hidden(slice(resets, 1, past, past + T), slice(resets, 1, k, k + T)), 0, tap);
    const Tensor term = tap * select(w, 1, k);
    y = y.defined() ? y + term : term;
  }
  if (past > 0) {
    const Tensor ends = o.lengths.defined() ? o.lengths : full({B}, T, Dtype::i64);
    const Tensor at = unsqueeze(ends, 1) + arange(past);  // positions in `all`
    Tensor next =
        o.lengths.defined() ? gather(all, 1, expand(unsqueeze(at, 2), {B, past, E})) : slice(all, 1, T, T + past);
    if (resets.defined())
      next = where(hidden(gather(resets, 1, unsqueeze(ends + (past - 1), 1)), gather(resets, 1, at)), 0, next);
    taps = next;
  }
  return conv_bias.defined() ? y + conv_bias : y;
}

Tensor Mamba::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  const MambaOptions& sizes = options();
  const Tensors parts = chunk(in_proj_(x), 2, -1);
  const Tensor u = silu(convolved(parts[0], o, states[0]));
  const std::int64_t widths[] = {sizes.rank(), sizes.state, sizes.state};
  const Tensors of_u = split(x_proj_(u), widths, -1);
  const Tensor delta = softplus(affine(of_u[0], dt_weight, dt_bias));
  Tensor& h = states[states.size() - 1];
  SelectiveScan r = selective_scan_with_state(u, delta, -exp(A_log), of_u[1], of_u[2], D,
                                              {.state = h, .lengths = o.lengths, .resets = o.resets});
  h = std::move(r.state);
  return out_proj_(r.y * silu(parts[1]));
}

template class LayerOf<Mamba, MambaOptions, SequenceLayer>;

}  // namespace ferrite::nn
