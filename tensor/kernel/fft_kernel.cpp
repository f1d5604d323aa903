/// Fourier transforms of one row: passes of radix 2, 3, 4, 5, 8 and of any other small prime, real transforms through
/// complex ones of half their length, and convolutions with a chirp. In loops that compilers vectorise.
#include "ferrite/tensor/kernel/fft.h"
#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <class T>
struct Complex {
  T re, im;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend Complex operator*(T s, Complex a) { return {s * a.re, s * a.im}; }
};
/// Returns -i a.
template <class T>
[[gnu::always_inline]] inline Complex<T> minus_i(Complex<T> a) {
  return {a.im, -a.re};
}

// ---- transforms of `radix` numbers, in place -------------------------------------------------------------

template <class T>
[[gnu::always_inline]] inline void two(Complex<T>& a, Complex<T>& b) {
  const Complex<T> t = a - b;
  a = a + b;
  b = t;
}

template <int R, class T>
[[gnu::always_inline]] inline void butterfly(Complex<T>* a) {
  if constexpr (R == 2) {
    two(a[0], a[1]);
  } else if constexpr (R == 3) {
    constexpr T s = static_cast<T>(0.866025403784438646763723170752936183);
    const Complex<T> sum = a[1] + a[2], turned = minus_i(s * (a[1] - a[2]));
    const Complex<T> middle = a[0] - static_cast<T>(0.5) * sum;
    a[0] = a[0] + sum;
    a[1] = middle + turned;
    a[2] = middle - turned;
  } else if constexpr (R == 4) {
    const Complex<T> s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], e = minus_i(a[1] - a[3]);
    a[0] = s + t;
    a[1] = d + e;
    a[2] = s - t;
    a[3] = d - e;
  } else if constexpr (R == 5) {
    constexpr T c1 = static_cast<T>(0.309016994374947424102293417182819059);
    constexpr T c2 = static_cast<T>(-0.809016994374947424102293417182819059);
    constexpr T s1 = static_cast<T>(0.951056516295153572116439333379382143);
    constexpr T s2 = static_cast<T>(0.587785252292473129168705954639072769);
    const Complex<T> p = a[1] + a[4], m = a[1] - a[4], q = a[2] + a[3], r = a[2] - a[3];
    const Complex<T> u = a[0] + c1 * p + c2 * q, v = a[0] + c2 * p + c1 * q;
    const Complex<T> x = minus_i(s1 * m + s2 * r), y = minus_i(s2 * m - s1 * r);
    a[0] = a[0] + p + q;
    a[1] = u + x;
    a[2] = v + y;
    a[3] = v - y;
    a[4] = u - x;
  } else {
    static_assert(R == 8);
    constexpr T h = static_cast<T>(0.707106781186547524400844362104849039);
    Complex<T> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    butterfly<4>(even);
    butterfly<4>(odd);
    const Complex<T> o1{h * (odd[1].re + odd[1].im), h * (odd[1].im - odd[1].re)};
    const Complex<T> o2 = minus_i(odd[2]);
    const Complex<T> o3{h * (odd[3].im - odd[3].re), -h * (odd[3].re + odd[3].im)};
    a[0] = even[0] + odd[0];
    a[4] = even[0] - odd[0];
    a[1] = even[1] + o1;
    a[5] = even[1] - o1;
    a[2] = even[2] + o2;
    a[6] = even[2] - o2;
    a[3] = even[3] + o3;
    a[7] = even[3] - o3;
  }
}

// ---- passes ----------------------------------------------------------------------------------------------

/// Number of elements whose results are gathered before they are stored.
constexpr std::int64_t kGathered = 16;
template <int R>
constexpr auto kSize = static_cast<std::size_t>(R);

/// Runs the first pass of a transform: its results lie `R` apart, so they are gathered and dealt out. Multiplications
/// by the twiddles of p = 0 are exact.
template <int R, class T>
void first_pass(const FftPass<T>& f, const T* __restrict xr, const T* __restrict xi, T* __restrict yr,
                T* __restrict yi) {
  const std::int64_t m = f.groups;
  for (std::int64_t begin = 0; begin < m; begin += kGathered) {
    const std::int64_t count = m - begin < kGathered ? m - begin : kGathered;
    alignas(64) T re[kSize<R>][kGathered], im[kSize<R>][kGathered];
    const auto each = [&](std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t p = begin + i;
        Complex<T> a[kSize<R>];
        for (int k = 0; k < R; ++k) a[k] = {xr[p + m * k], xi[p + m * k]};
        butterfly<R>(a);
        re[0][i] = a[0].re;
        im[0][i] = a[0].im;
        for (int k = 1; k < R; ++k) {
          const Complex<T> b = a[k] * Complex<T>{f.twiddles.re[(k - 1) * m + p], f.twiddles.im[(k - 1) * m + p]};
          re[k][i] = b.re;
          im[k][i] = b.im;
        }
      }
    };
    if (count == kGathered) {
      each(kGathered);
    } else {
      each(count);
    }
    for (std::int64_t i = 0; i < count; ++i)
      for (int k = 0; k < R; ++k) {
        yr[(begin + i) * R + k] = re[k][i];
        yi[(begin + i) * R + k] = im[k][i];
      }
  }
}

/// Runs a later pass of `Stride` interleaved transforms; 0: the number is in the pass.
template <int R, int Stride, class T>
void later_pass(const FftPass<T>& f, const T* __restrict xr, const T* __restrict xi, T* __restrict yr,
                T* __restrict yi) {
  const std::int64_t m = f.groups, s = Stride ? Stride : f.stride;
  for (std::int64_t p = 0; p < m; ++p) {
    Complex<T> w[kSize<R>];
    for (int k = 1; k < R; ++k) w[k] = {f.twiddles.re[(k - 1) * m + p], f.twiddles.im[(k - 1) * m + p]};
    const T *ar = xr + s * p, *ai = xi + s * p;
    T *br = yr + s * R * p, *bi = yi + s * R * p;
    for (std::int64_t q = 0; q < s; ++q) {
      Complex<T> a[kSize<R>];
      for (int k = 0; k < R; ++k) a[k] = {ar[q + s * m * k], ai[q + s * m * k]};
      butterfly<R>(a);
      br[q] = a[0].re;
      bi[q] = a[0].im;
      for (int k = 1; k < R; ++k) {
        const Complex<T> b = a[k] * w[k];
        br[q + s * k] = b.re;
        bi[q + s * k] = b.im;
      }
    }
  }
}

/// Runs a pass of any radix: a sum of `radix` terms for each result.
template <class T>
void other_pass(const FftPass<T>& f, Split<T> x, Split<T> y) {
  const std::int64_t m = f.groups, s = f.stride, r = f.radix;
  for (std::int64_t p = 0; p < m; ++p)
    for (std::int64_t k = 0; k < r; ++k) {
      T *br = y.re + s * (r * p + k), *bi = y.im + s * (r * p + k);
      for (std::int64_t q = 0; q < s; ++q) br[q] = x.re[q + s * p], bi[q] = x.im[q + s * p];
      std::int64_t turn = 0;  // j k mod radix
      for (std::int64_t j = 1; j < r; ++j) {
        turn = turn + k < r ? turn + k : turn + k - r;
        const Complex<T> w{f.roots.re[turn], f.roots.im[turn]};
        const T *ar = x.re + s * (p + m * j), *ai = x.im + s * (p + m * j);
        for (std::int64_t q = 0; q < s; ++q) {
          const Complex<T> t = Complex<T>{ar[q], ai[q]} * w;
          br[q] += t.re;
          bi[q] += t.im;
        }
      }
      if (k == 0) continue;
      const Complex<T> w{f.twiddles.re[(k - 1) * m + p], f.twiddles.im[(k - 1) * m + p]};
      for (std::int64_t q = 0; q < s; ++q) {
        const Complex<T> t = Complex<T>{br[q], bi[q]} * w;
        br[q] = t.re;
        bi[q] = t.im;
      }
    }
}

template <int R, class T>
void pass_of(const FftPass<T>& f, Split<T> x, Split<T> y) {
  if (f.stride == 1) {
    first_pass<R>(f, x.re, x.im, y.re, y.im);
  } else if (f.stride == 4) {
    later_pass<R, 4>(f, x.re, x.im, y.re, y.im);
  } else if (f.stride == 8) {
    later_pass<R, 8>(f, x.re, x.im, y.re, y.im);
  } else {
    later_pass<R, 0>(f, x.re, x.im, y.re, y.im);
  }
}

template <class T>
Split<T> run(const FftPasses<T>& passes, Split<T> x, Split<T> work) {
  for (int i = 0; i < passes.count; ++i) {
    const FftPass<T>& f = passes.pass[i];
    if (f.radix == 2) {
      pass_of<2>(f, x, work);
    } else if (f.radix == 3) {
      pass_of<3>(f, x, work);
    } else if (f.radix == 4) {
      pass_of<4>(f, x, work);
    } else if (f.radix == 5) {
      pass_of<5>(f, x, work);
    } else if (f.radix == 8) {
      pass_of<8>(f, x, work);
    } else {
      other_pass(f, x, work);
    }
    const Split<T> other = x;
    x = work;
    work = other;
  }
  return x;
}

/// Computes y_k = c_k sum_j (x_j c_j) conj(c_(k - j)), where c is the chirp, in place.
template <class T>
void convolve(const FftChirp& chirp, Split<T> x, double* memory) {
  const std::int64_t n = chirp.n, m = chirp.passes.n;
  const Split<double> a{memory, memory + m}, b{memory + 2 * m, memory + 3 * m};
  for (std::int64_t j = 0; j < n; ++j) {
    const Complex<double> t = Complex<double>{static_cast<double>(x.re[j]), static_cast<double>(x.im[j])} *
                              Complex<double>{chirp.chirp.re[j], chirp.chirp.im[j]};
    a.re[j] = t.re;
    a.im[j] = t.im;
  }
  for (std::int64_t j = n; j < m; ++j) a.re[j] = a.im[j] = 0;
  Split<double> y = run(chirp.passes, a, b);
  for (std::int64_t j = 0; j < m; ++j) {
    const Complex<double> t =
        Complex<double>{y.re[j], y.im[j]} * Complex<double>{chirp.response.re[j], chirp.response.im[j]};
    y.re[j] = t.re;
    y.im[j] = t.im;
  }
  const Split<double> z = y.re == a.re ? b : a;
  y = run(chirp.passes, {y.im, y.re}, {z.im, z.re});  // the inverse: real and imaginary parts are exchanged
  for (std::int64_t j = 0; j < n; ++j) {
    const Complex<double> t = Complex<double>{y.im[j], y.re[j]} * Complex<double>{chirp.chirp.re[j], chirp.chirp.im[j]};
    x.re[j] = static_cast<T>(t.re);
    x.im[j] = static_cast<T>(t.im);
  }
}

/// Computes the complex transform of a plan; the inverse with real and imaginary parts exchanged.
template <class T>
Split<T> transform(const FftPlan<T>& plan, Split<T> x, Split<T> work) {
  if (!plan.chirp) return run(plan.passes, x, work);
  convolve(*plan.chirp, x, plan.chirp_work);
  return x;
}

// ---- rows ------------------------------------------------------------------------------------------------

template <class T>
struct Work {
  Split<T> x, other;
  explicit Work(const FftPlan<T>& plan)
      : x{plan.work, plan.work + plan.points}, other{plan.work + 2 * plan.points, plan.work + 3 * plan.points} {}
};

template <class T>
void even_rfft(const FftPlan<T>& plan, const T* __restrict x, T* __restrict out, FftScale f) {
  const std::int64_t n = plan.points;
  const Work<T> work(plan);
  for (std::int64_t j = 0; j < n; ++j) {
    work.x.re[j] = x[2 * j];
    work.x.im[j] = x[2 * j + 1];
  }
  const Split<T> z = transform(plan, work.x, work.other);
  const T* __restrict zr = z.re, * __restrict zi = z.im;
  const T* __restrict wr = plan.untangle.re, * __restrict wi = plan.untangle.im;
  const T scale = static_cast<T>(f.scale), half = static_cast<T>(0.5 * f.scale * f.inner);
  out[0] = scale * (zr[0] + zi[0]);
  out[1] = 0;
  out[2 * n] = scale * (zr[0] - zi[0]);
  out[2 * n + 1] = 0;
  for (std::int64_t k = 1; k < n; ++k) {
    const T a = zr[k], b = zi[k], c = zr[n - k], d = zi[n - k];
    const T o = b + d, p = c - a, minus_wi = -wi[k];  // g++ 12 fuses a difference next to a sum, whatever flags are set
    out[2 * k] = half * ((a + c) + (wr[k] * o + minus_wi * p));
    out[2 * k + 1] = half * ((b - d) + (wr[k] * p + wi[k] * o));
  }
}

template <class T>
void rfft(const FftPlan<T>& plan, const T* x, T* out, FftScale f) {
  if (plan.untangle.re) return even_rfft(plan, x, out, f);
  const Work<T> work(plan);
  for (std::int64_t j = 0; j < plan.n; ++j) {
    work.x.re[j] = x[j];
    work.x.im[j] = 0;
  }
  const Split<T> y = transform(plan, work.x, work.other);
  const T scale = static_cast<T>(f.scale), inner = static_cast<T>(f.scale * f.inner);
  out[0] = scale * y.re[0];
  out[1] = 0;
  for (std::int64_t k = 1; k <= plan.n / 2; ++k) {
    out[2 * k] = inner * y.re[k];
    out[2 * k + 1] = inner * y.im[k];
  }
}

template <class T>
void even_irfft(const FftPlan<T>& plan, const T* __restrict x, T* __restrict out, FftScale f) {
  const std::int64_t n = plan.points;
  const Work<T> work(plan);
  T* __restrict zr = work.x.re, * __restrict zi = work.x.im;
  const T* __restrict wr = plan.untangle.re, * __restrict wi = plan.untangle.im;
  const T half = static_cast<T>(0.5 * f.inner);
  zr[0] = x[0] + x[2 * n];
  zi[0] = x[0] - x[2 * n];
  for (std::int64_t k = 1; k < n; ++k) {
    const T a = x[2 * k], b = x[2 * k + 1], c = x[2 * (n - k)], d = x[2 * (n - k) + 1];
    const T o = a - c, p = b + d, minus_wi = -wi[k];  // as above
    zr[k] = half * ((a + c) - (wr[k] * p + minus_wi * o));
    zi[k] = half * ((b - d) + (wr[k] * o + wi[k] * p));
  }
  const Split<T> y = transform(plan, {zi, zr}, {work.other.im, work.other.re});
  const T scale = static_cast<T>(f.scale);
  for (std::int64_t j = 0; j < n; ++j) {
    out[2 * j] = scale * y.im[j];
    out[2 * j + 1] = scale * y.re[j];
  }
}

template <class T>
void irfft(const FftPlan<T>& plan, const T* x, T* out, FftScale f) {
  if (plan.untangle.re) return even_irfft(plan, x, out, f);
  const std::int64_t n = plan.n;
  const Work<T> work(plan);
  const T half = static_cast<T>(0.5 * f.inner);
  work.x.re[0] = x[0];
  work.x.im[0] = 0;
  for (std::int64_t k = 1; k <= n / 2; ++k) {
    work.x.re[k] = work.x.re[n - k] = half * x[2 * k];
    work.x.im[k] = half * x[2 * k + 1];
    work.x.im[n - k] = -work.x.im[k];
  }
  const Split<T> y = transform(plan, {work.x.im, work.x.re}, {work.other.im, work.other.re});
  const T scale = static_cast<T>(f.scale);
  for (std::int64_t j = 0; j < n; ++j) out[j] = scale * y.im[j];
}

template <class T>
void fft(const FftPlan<T>& plan, const T* x, T* out, double factor, bool inverse) {
  const Work<T> work(plan);
  const Split<T> from = inverse ? Split<T>{work.x.im, work.x.re} : work.x;
  for (std::int64_t j = 0; j < plan.n; ++j) {
    work.x.re[j] = x[2 * j];
    work.x.im[j] = x[2 * j + 1];
  }
  Split<T> y = transform(plan, from, inverse ? Split<T>{work.other.im, work.other.re} : work.other);
  if (inverse) y = {y.im, y.re};
  const T scale = static_cast<T>(factor);
  for (std::int64_t j = 0; j < plan.n; ++j) {
    out[2 * j] = scale * y.re[j];
    out[2 * j + 1] = scale * y.im[j];
  }
}

template <class T>
constexpr FftKernels<T> kernels_of() {
  return {.rfft = rfft<T>, .irfft = irfft<T>, .fft = fft<T>, .run = run<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(FftKernels, fft_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
