/// Plans of Fourier transforms: factors of a length, roots of unity, chirps, and what a thread keeps of them.
#include "ferrite/tensor/ops/detail/fft_plans.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "ferrite/tensor/kernel/fft_plan.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/reserve.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(FftKernels, fft_kernels, fft_in_use)

namespace {

/// e^(-2 pi i k / n), from an angle of at most pi / 4: exact where a part is 0 or 1, and symmetric.
struct Root {
  double re, im;
};
Root root_of_unity(std::int64_t k, std::int64_t n) {
  k %= n;
  const bool below = 2 * k > n;  // the lower half of the circle: the conjugate
  std::int64_t part = 2 * (below ? n - k : k), whole = 2 * n;
  const bool left = 2 * part > n;  // mirrored at the imaginary axis
  if (left) part = n - part;
  part *= 2, whole *= 2;
  const bool steep = 2 * part > n;  // mirrored at the diagonal
  if (steep) part = n - part;
  const double angle = 2 * std::numbers::pi * (static_cast<double>(part) / static_cast<double>(whole));
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, below ? s : -s};
}

/// Arrays of real and imaginary parts.
template <class T>
struct Roots {
  std::vector<T> re, im;
  void push(Root w) {
    re.push_back(static_cast<T>(w.re));
    im.push_back(static_cast<T>(w.im));
  }
  Split<const T> get() const { return {re.data(), im.data()}; }
};

/// The radices of the passes, or none where a prime factor is too large for a pass.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  constexpr std::int64_t kLargest = 31;
  std::vector<std::int64_t> list;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  while (twos > 0) {
    const int bits = twos == 1 ? 1 : twos == 2 || twos == 4 ? 2 : 3;
    list.push_back(std::int64_t{1} << bits);
    twos -= bits;
  }
  for (std::int64_t p = 3; p <= kLargest; p += 2)
    for (; n % p == 0; n /= p) list.push_back(p);
  if (n > 1) list.clear();
  return list;
}

template <class T>
struct Passes {
  FftPasses<T> passes{};
  std::vector<Roots<T>> tables;

  void make(std::int64_t n, const std::vector<std::int64_t>& radices) {
    passes.n = n;
    tables.reserve(2 * radices.size());
    std::int64_t rest = n, stride = 1;
    for (const std::int64_t r : radices) {
      const std::int64_t groups = rest / r;
      Roots<T>&twiddles = tables.emplace_back(), &roots = tables.emplace_back();
      for (std::int64_t k = 1; k < r; ++k)
        for (std::int64_t p = 0; p < groups; ++p) twiddles.push(root_of_unity(p * k, rest));
      for (std::int64_t k = 0; k < r; ++k) roots.push(root_of_unity(k, r));
      passes.pass[passes.count++] = {r, groups, stride, twiddles.get(), roots.get()};
      rest = groups;
      stride *= r;
    }
  }
};

struct Chirp {
  FftChirp chirp{};
  Passes<double> passes;
  Roots<double> turns, response;

  explicit Chirp(std::int64_t n) {
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    passes.make(m, radices_of(m));
    std::int64_t square = 0;  // j^2 mod 2 n
    for (std::int64_t j = 0; j < n; ++j) {
      turns.push(root_of_unity(square, 2 * n));
      square = (square + 2 * j + 1) % (2 * n);
    }
    Roots<double> x, work;
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t from_0 = std::min(j, m - j);
      const auto at = static_cast<std::size_t>(from_0);
      x.push(from_0 < n ? Root{turns.re[at], -turns.im[at]} : Root{0, 0});
    }
    work = x;
    const Split<double> y =
        fft_in_use.of<double>().run(passes.passes, {x.re.data(), x.im.data()}, {work.re.data(), work.im.data()});
    const double length = static_cast<double>(m);
    for (std::int64_t j = 0; j < m; ++j) response.push({y.re[j] / length, y.im[j] / length});
    chirp = {n, passes.passes, turns.get(), response.get()};
  }
};

template <class T>
struct Planned {
  FftPlan<T> plan{};
  bool real;
  std::uint64_t used = 0;  ///< when it was asked for last
  Passes<T> passes;
  Roots<T> untangle;
  std::unique_ptr<Chirp> chirp;
  std::vector<T> work;
  std::vector<double> chirp_work;

  Planned(std::int64_t n, bool is_real) : real(is_real) {
    const bool halved = real && n % 2 == 0;
    const std::int64_t points = halved ? n / 2 : n;
    const std::vector<std::int64_t> radices = radices_of(points);
    if (radices.empty() && points > 1) {
      chirp = std::make_unique<Chirp>(points);
      chirp_work.resize(static_cast<std::size_t>(4 * chirp->passes.passes.n));
    } else {
      passes.make(points, radices);
    }
    if (halved)
      for (std::int64_t k = 0; k <= points; ++k) untangle.push(root_of_unity(k, n));
    work.resize(static_cast<std::size_t>(4 * points));
    plan = {.n = n,
            .passes = passes.passes,
            .chirp = chirp ? &chirp->chirp : nullptr,
            .untangle = halved ? untangle.get() : Split<const T>{nullptr, nullptr},
            .work = work.data(),
            .chirp_work = chirp_work.data(),
            .points = points};
  }
};

template <class T>
struct Plans {
  static constexpr std::size_t kMost = 16;
  std::vector<std::unique_ptr<Planned<T>>> list;
  std::uint64_t now = 0;

  const FftPlan<T>& get(std::int64_t n, bool real) {
    for (const auto& p : list)
      if (p->plan.n == n && p->real == real) {
        p->used = ++now;
        return p->plan;
      }
    auto made = std::make_unique<Planned<T>>(n, real);
    made->used = ++now;
    if (list.size() < kMost) return list.emplace_back(std::move(made))->plan;
    auto& oldest = *std::min_element(list.begin(), list.end(), [](auto& a, auto& b) { return a->used < b->used; });
    oldest = std::move(made);
    return oldest->plan;
  }
};

}  // namespace

template <class T>
const FftPlan<T>& fft_plan(std::int64_t n, bool real) {
  return kept_for_calls<Plans<T>>().get(n, real);
}
template const FftPlan<float>& fft_plan(std::int64_t, bool);
template const FftPlan<double>& fft_plan(std::int64_t, bool);

template <class T>
std::shared_ptr<const FftPlan<T>> new_fft_plan(std::int64_t n, bool real) {
  const auto made = std::make_shared<Planned<T>>(n, real);
  return {made, &made->plan};
}
template std::shared_ptr<const FftPlan<float>> new_fft_plan(std::int64_t, bool);
template std::shared_ptr<const FftPlan<double>> new_fft_plan(std::int64_t, bool);

}  // namespace ferrite::detail
