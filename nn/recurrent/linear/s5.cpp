/// The simplified state-space layer S5.
#include "ferrite/nn/recurrent/s5.h"

#include <algorithm>
#include <cmath>

#include "ferrite/nn/recurrent/detail/scan_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::nn {
namespace {

// ---- complex numbers as a last axis of 2 ------------------------------------------------------------------

Tensor re(const Tensor& x) { return select(x, -1, 0); }
Tensor im(const Tensor& x) { return select(x, -1, 1); }
Tensor complex(const Tensor& re, const Tensor& im) { return stack({re, im}, -1); }
Tensor times(const Tensor& x, const Tensor& y) {
  return complex(re(x) * re(y) - im(x) * im(y), re(x) * im(y) + im(x) * re(y));
}
Tensor reciprocal_of(const Tensor& x) {
  const Tensor n = square(re(x)) + square(im(x));
  return complex(re(x) / n, -im(x) / n);
}
/// Real and imaginary parts, each a matrix product.
Tensor product(const Tensor& x, const Tensor& y) {
  return complex(matmul(re(x), re(y)) - matmul(im(x), im(y)), matmul(re(x), im(y)) + matmul(im(x), re(y)));
}

// ---- where it starts -----------------------------------------------------------------------------------------

/// The normal part of the matrix HiPPO-LegS of n states, S = -1/2 + K with K skew: its eigenvalues [n, 2] by ascending
/// imaginary part and eigenvectors [n, n, 2], columns, in f64.
struct Hippo {
  Tensor values, vectors;
};
Hippo hippo(std::int64_t n) {
  // K[i][j] = sqrt(i + 1/2) sqrt(j + 1/2) above the diagonal, its negative below.
  const Tensor p = sqrt(arange(0, n, 1, Dtype::f64) + 0.5);
  const Tensor outer = unsqueeze(p, 1) * unsqueeze(p, 0);
  const Tensor K = triu(outer, 1) - tril(outer, -1);
  // K'K has each square of a frequency twice; u and K u / w of one of its eigenvectors span the pair.
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

/// [J n, J n, 2] with the same [n, n, 2] along its diagonal.
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
    decay = complex(r * cos(im(scaled)), r * sin(im(scaled)));
    gain = times(reciprocal_of(Lambda), complex(re(decay) - 1, im(decay)));
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

}  // namespace ferrite::nn
