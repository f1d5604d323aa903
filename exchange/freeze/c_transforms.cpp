/// Writes Fourier transforms as passes of fixed radices, and frames of signals.
#include <utility>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/kernel/fft_plan.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::FftPass;
using ferrite::detail::FftPlan;

// ---- passes ---------------------------------------------------------------------------------------------------
// $T is the type, $s its suffix, $S the suffix in capitals, $R the radix, $B the butterfly: a transform of $R numbers
// re, im in place.

constexpr std::string_view kPass =
    R"(/* One pass of a Fourier transform: transforms of $R numbers, m groups of s interleaved ones. Where s is 1,
   lanes run along the groups. */
static void $name(const $T *xr, const $T *xi, $T *yr, $T *yi, ptrdiff_t m, ptrdiff_t s, const $T *wr, const $T *wi) {
  const ptrdiff_t outer = s == 1 ? 1 : m, inner = s == 1 ? m : s;
  for (ptrdiff_t p = 0; p < outer; ++p)
    for (ptrdiff_t j = 0; j < inner; j += NF_LANES_$S) {
      const int left = inner - j < NF_LANES_$S ? (int)(inner - j) : NF_LANES_$S;
      nf_$s re[$R], im[$R];
      NF_UNROLL
      for (int k = 0; k < $R; ++k) {
        re[k] = nf_get_$s(xr + s * (p + m * k) + j, left);
        im[k] = nf_get_$s(xi + s * (p + m * k) + j, left);
      }
$B      NF_UNROLL
      for (int k = 0; k < $R; ++k) {
        nf_$s a = re[k], b = im[k];
        if (k > 0) {
          const ptrdiff_t at = (k - 1) * m + (s == 1 ? j : p);
          const nf_$s c = s == 1 ? nf_get_$s(wr + at, left) : nf_set_$s(wr[at]);
          const nf_$s d = s == 1 ? nf_get_$s(wi + at, left) : nf_set_$s(wi[at]);
          a = re[k] * c - im[k] * d;
          b = re[k] * d + im[k] * c;
        }
        if (s == 1) {
          nf_scatter_$s(yr + j * $R + k, $R, a, left);
          nf_scatter_$s(yi + j * $R + k, $R, b, left);
        } else {
          nf_put_$s(yr + s * ($R * p + k) + j, a, left);
          nf_put_$s(yi + s * ($R * p + k) + j, b, left);
        }
      }
    }
}
)";

constexpr std::string_view kOtherPass =
    R"(/* One pass of a Fourier transform of any radix: a sum of `radix` terms for each result. */
static void $name(const $T *xr, const $T *xi, $T *yr, $T *yi, ptrdiff_t radix, ptrdiff_t m, ptrdiff_t s, const $T *wr,
                  const $T *wi, const $T *roots_r, const $T *roots_i) {
  for (ptrdiff_t p = 0; p < m; ++p)
    for (ptrdiff_t k = 0; k < radix; ++k)
      for (ptrdiff_t q = 0; q < s; q += NF_LANES_$S) {
        const int left = s - q < NF_LANES_$S ? (int)(s - q) : NF_LANES_$S;
        nf_$s a = nf_get_$s(xr + s * p + q, left), b = nf_get_$s(xi + s * p + q, left);
        ptrdiff_t turn = 0;
        for (ptrdiff_t j = 1; j < radix; ++j) {
          const nf_$s e = nf_get_$s(xr + s * (p + m * j) + q, left), f = nf_get_$s(xi + s * (p + m * j) + q, left);
          turn = turn + k < radix ? turn + k : turn + k - radix;
          a = a + (e * nf_set_$s(roots_r[turn]) - f * nf_set_$s(roots_i[turn]));
          b = b + (e * nf_set_$s(roots_i[turn]) + f * nf_set_$s(roots_r[turn]));
        }
        if (k > 0) {
          const nf_$s c = nf_set_$s(wr[(k - 1) * m + p]), d = nf_set_$s(wi[(k - 1) * m + p]), e = a;
          a = e * c - b * d;
          b = e * d + b * c;
        }
        nf_put_$s(yr + s * (radix * p + k) + q, a, left);
        nf_put_$s(yi + s * (radix * p + k) + q, b, left);
      }
}
)";

constexpr std::string_view kTwo = R"(      {
        const nf_$s a = re[0] - re[1], b = im[0] - im[1];
        re[0] = re[0] + re[1], im[0] = im[0] + im[1];
        re[1] = a, im[1] = b;
      }
)";
constexpr std::string_view kThree = R"(      {
        const nf_$s c = nf_set_$s(($T)0.866025403784438646763723170752936183), half = nf_set_$s(($T)0.5);
        const nf_$s a = re[1] + re[2], b = im[1] + im[2], e = c * (im[1] - im[2]), f = -(c * (re[1] - re[2]));
        const nf_$s g = re[0] - half * a, h = im[0] - half * b;
        re[0] = re[0] + a, im[0] = im[0] + b;
        re[1] = g + e, im[1] = h + f;
        re[2] = g - e, im[2] = h - f;
      }
)";
/// A transform of the numbers at $0, $1, $2 and $3.
constexpr std::string_view kFour = R"(      {
        const nf_$s a = re[$0] + re[$2], b = im[$0] + im[$2], c = re[$0] - re[$2], d = im[$0] - im[$2];
        const nf_$s e = re[$1] + re[$3], f = im[$1] + im[$3], g = im[$1] - im[$3], h = -(re[$1] - re[$3]);
        re[$0] = a + e, im[$0] = b + f;
        re[$1] = c + g, im[$1] = d + h;
        re[$2] = a - e, im[$2] = b - f;
        re[$3] = c - g, im[$3] = d - h;
      }
)";
constexpr std::string_view kFive = R"(      {
        const nf_$s c1 = nf_set_$s(($T)0.309016994374947424102293417182819059);
        const nf_$s c2 = nf_set_$s(-($T)0.809016994374947424102293417182819059);
        const nf_$s s1 = nf_set_$s(($T)0.951056516295153572116439333379382143);
        const nf_$s s2 = nf_set_$s(($T)0.587785252292473129168705954639072769);
        const nf_$s pr = re[1] + re[4], pi = im[1] + im[4], mr = re[1] - re[4], mi = im[1] - im[4];
        const nf_$s qr = re[2] + re[3], qi = im[2] + im[3], rr = re[2] - re[3], ri = im[2] - im[3];
        const nf_$s ur = re[0] + c1 * pr + c2 * qr, ui = im[0] + c1 * pi + c2 * qi;
        const nf_$s vr = re[0] + c2 * pr + c1 * qr, vi = im[0] + c2 * pi + c1 * qi;
        const nf_$s ar = s1 * mi + s2 * ri, ai = -(s1 * mr + s2 * rr);
        const nf_$s br = s2 * mi - s1 * ri, bi = -(s2 * mr - s1 * rr);
        re[0] = re[0] + pr + qr, im[0] = im[0] + pi + qi;
        re[1] = ur + ar, im[1] = ui + ai;
        re[2] = vr + br, im[2] = vi + bi;
        re[3] = vr - br, im[3] = vi - bi;
        re[4] = ur - ar, im[4] = ui - ai;
      }
)";
constexpr std::string_view kEight = R"(      {
        const nf_$s h = nf_set_$s(($T)0.707106781186547524400844362104849039);
        const nf_$s minus_h = nf_set_$s(-($T)0.707106781186547524400844362104849039);
        const nf_$s ar = re[0], ai = im[0], br = re[2], bi = im[2], cr = re[4], ci = im[4], dr = re[6], di = im[6];
        const nf_$s pr = h * (re[3] + im[3]), pi = h * (im[3] - re[3]), qr = im[5], qi = -re[5];
        const nf_$s tr = h * (im[7] - re[7]), ti = minus_h * (re[7] + im[7]), er = re[1], ei = im[1];
        re[0] = ar + er, im[0] = ai + ei;
        re[4] = ar - er, im[4] = ai - ei;
        re[1] = br + pr, im[1] = bi + pi;
        re[5] = br - pr, im[5] = bi - pi;
        re[2] = cr + qr, im[2] = ci + qi;
        re[6] = cr - qr, im[6] = ci - qi;
        re[3] = dr + tr, im[3] = di + ti;
        re[7] = dr - tr, im[7] = di - ti;
      }
)";

std::string four(const char* a, const char* b, const char* c, const char* d) {
  return replaced(replaced(replaced(replaced(std::string(kFour), "$0", a), "$1", b), "$2", c), "$3", d);
}
std::string butterfly(std::int64_t radix) {
  switch (radix) {
    case 2: return std::string(kTwo);
    case 3: return std::string(kThree);
    case 4: return four("0", "1", "2", "3");
    case 5: return std::string(kFive);
    default: return four("0", "2", "4", "6") + four("1", "3", "5", "7") + std::string(kEight);
  }
}

template <class T>
class Transforms {
 public:
  explicit Transforms(const CCall& c) : c_(c), s_(suffix_of(c.dtype())), t_(c_type(c.dtype())) {}

  /// Refuses lengths with a prime factor that no pass has.
  std::shared_ptr<const FftPlan<T>> plan(std::int64_t n, bool real) const {
    auto p = ferrite::detail::new_fft_plan<T>(n, real);
    if (p->chirp)
      c_.body.refuse(c_.node(), std::to_string(n) + " points have a prime factor above 31; choose another length");
    return p;
  }
  std::string constant(const T* values, std::int64_t n, std::string_view what) const {
    return c_.body.module().constant(Tensor::from<T>(std::vector<T>(values, values + n), Shape{n}), what);
  }
  /// Writes all passes on the arrays named a (real and imaginary parts), with b as the other pair; returns the pair
  /// that holds the result.
  std::pair<std::string, std::string> passes(CText& to, const FftPlan<T>& p, std::pair<std::string, std::string> a,
                                             std::pair<std::string, std::string> b) const {
    for (int i = 0; i < p.passes.count; ++i) {
      const FftPass<T>& f = p.passes.pass[i];
      const std::int64_t turns = (f.radix - 1) * f.groups;
      const std::string wr = constant(f.twiddles.re, turns, "turns, real parts"),
                        wi = constant(f.twiddles.im, turns, "turns, imaginary parts");
      const bool known = f.radix <= 5 || f.radix == 8;
      std::string call = known ? pass(f.radix) : define("fft_pass", std::string(kOtherPass));
      call += "(" + a.first + ", " + a.second + ", " + b.first + ", " + b.second + ", ";
      if (!known) call += text(f.radix) + ", ";
      call += text(f.groups) + ", " + text(f.stride) + ", " + wr + ", " + wi;
      if (!known)
        call += ", " + constant(f.roots.re, f.radix, "roots, real parts") + ", " +
                constant(f.roots.im, f.radix, "roots, imaginary parts");
      to.line(call + ");");
      std::swap(a, b);
    }
    return a;
  }
  std::string number(double v) const { return c_number(static_cast<T>(v)); }
  const std::string& type() const { return t_; }
  /// Returns four working arrays of n numbers, named a, b, c and d in what follows.
  void arrays(std::int64_t n) const {
    const std::string work = c_.body.scratch(c_.dtype(), 4 * n);
    for (int k = 0; k < 4; ++k)
      c_.to.line(t_ + " *const " + std::string(1, static_cast<char>('a' + k)) + " = " + work + " + " + text(k * n) +
                 ";");
    c_.to.line("(void)a, (void)b, (void)c, (void)d;");
  }

 private:
  std::string define(const std::string& name, std::string source) const {
    source = replaced(replaced(replaced(std::move(source), "$T", t_), "$s", s_), "$S", s_ == "d" ? "D" : "F");
    c_.body.module().has(c_.dtype());
    return c_.body.module().define(name + "_" + s_, source);
  }
  std::string pass(std::int64_t radix) const {
    std::string source = replaced(std::string(kPass), "$B", butterfly(radix));
    return define("fft_pass" + text(radix), replaced(source, "$R", text(radix)));
  }

  const CCall& c_;
  std::string s_, t_;
};

template <class T>
void write_rfft_of(const CCall& c) {
  const double scale = std::get<double>(*c.node().attrs.at(0)), inner = std::get<double>(*c.node().attrs.at(1));
  const LoweredWindow& x = c.in(0);
  const std::int64_t n = x.spec.shape[-1], rows = x.spec.shape.numel() / n, m = n / 2 + 1;
  const Transforms<T> f(c);
  const auto plan = f.plan(n, true);
  const std::int64_t points = plan->points;
  const std::string from = c.dense(x), t = f.type();
  f.arrays(points);
  c.to.open(loop_over("row", rows));
  c.to.line("const " + t + " *const x = " + from + " + row * " + text(n) + ";");
  c.to.line(t + " *const y = " + c.at(c.out()) + " + row * " + text(2 * m) + ";");
  const bool even = plan->untangle.re != nullptr;
  c.to.line(loop_over("j", points) + (even ? " a[j] = x[2 * j], b[j] = x[2 * j + 1];" : " a[j] = x[j], b[j] = 0;"));
  const auto [re, im] = f.passes(c.to, *plan, {"a", "b"}, {"c", "d"});
  if (even) {
    const std::string wr = f.constant(plan->untangle.re, points + 1, "turns, real parts"),
                      wi = f.constant(plan->untangle.im, points + 1, "turns, imaginary parts");
    const std::string half = f.number(0.5 * scale * inner), whole = f.number(scale);
    c.to.line("y[0] = " + whole + " * (" + re + "[0] + " + im + "[0]);");
    c.to.line("y[1] = 0;");
    c.to.line("y[" + text(2 * points) + "] = " + whole + " * (" + re + "[0] - " + im + "[0]);");
    c.to.line("y[" + text(2 * points + 1) + "] = 0;");
    c.to.open("for (ptrdiff_t k = 1; k < " + text(points) + "; ++k)");
    c.to.line("const " + t + " e = " + re + "[k], f = " + im + "[k], g = " + re + "[" + text(points) +
              " - k], h = " + im + "[" + text(points) + " - k];");
    c.to.line("const " + t + " o = f + h, p = g - e, u = " + wr + "[k], v = " + wi + "[k], minus_v = -v;");
    c.to.line("y[2 * k] = " + half + " * ((e + g) + (u * o + minus_v * p));");
    c.to.line("y[2 * k + 1] = " + half + " * ((f - h) + (u * p + v * o));");
    c.to.close();
  } else {
    c.to.line("y[0] = " + f.number(scale) + " * " + re + "[0];");
    c.to.line("y[1] = 0;");
    const std::string by = f.number(static_cast<T>(scale * inner));
    c.to.line("for (ptrdiff_t k = 1; k <= " + text(n / 2) + "; ++k) y[2 * k] = " + by + " * " + re +
              "[k], y[2 * k + 1] = " + by + " * " + im + "[k];");
  }
  c.to.close();
}

template <class T>
void write_irfft_of(const CCall& c) {
  const std::int64_t n = std::get<std::int64_t>(*c.node().attrs.at(0)), m = n / 2 + 1;
  const double scale = std::get<double>(*c.node().attrs.at(1)), inner = std::get<double>(*c.node().attrs.at(2));
  const std::int64_t rows = c.out().spec.shape.numel() / n;
  const Transforms<T> f(c);
  const auto plan = f.plan(n, true);
  const std::int64_t points = plan->points;
  const std::string from = c.dense(c.in(0)), t = f.type(), half = f.number(0.5 * inner), whole = f.number(scale);
  f.arrays(points);
  c.to.open(loop_over("row", rows));
  c.to.line("const " + t + " *const x = " + from + " + row * " + text(2 * m) + ";");
  c.to.line(t + " *const y = " + c.at(c.out()) + " + row * " + text(n) + ";");
  const bool even = plan->untangle.re != nullptr;
  if (even) {
    const std::string wr = f.constant(plan->untangle.re, points + 1, "turns, real parts"),
                      wi = f.constant(plan->untangle.im, points + 1, "turns, imaginary parts");
    c.to.line("a[0] = x[0] + x[" + text(2 * points) + "];");
    c.to.line("b[0] = x[0] - x[" + text(2 * points) + "];");
    c.to.open("for (ptrdiff_t k = 1; k < " + text(points) + "; ++k)");
    c.to.line("const " + t + " e = x[2 * k], f = x[2 * k + 1], g = x[2 * (" + text(points) + " - k)], h = x[2 * (" +
              text(points) + " - k) + 1];");
    c.to.line("const " + t + " o = e - g, p = f + h, u = " + wr + "[k], v = " + wi + "[k], minus_v = -v;");
    c.to.line("a[k] = " + half + " * ((e + g) - (u * p + minus_v * o));");
    c.to.line("b[k] = " + half + " * ((f - h) + (u * o + v * p));");
    c.to.close();
  } else {
    c.to.line("a[0] = x[0];");
    c.to.line("b[0] = 0;");
    c.to.open("for (ptrdiff_t k = 1; k <= " + text(n / 2) + "; ++k)");
    c.to.line("a[k] = a[" + text(n) + " - k] = " + half + " * x[2 * k];");
    c.to.line("b[k] = " + half + " * x[2 * k + 1];");
    c.to.line("b[" + text(n) + " - k] = -b[k];");
    c.to.close();
  }
  // The inverse: real and imaginary parts are exchanged.
  const auto [re, im] = f.passes(c.to, *plan, {"b", "a"}, {"d", "c"});
  if (even)
    c.to.line(loop_over("j", points) + " y[2 * j] = " + whole + " * " + im + "[j], y[2 * j + 1] = " + whole + " * " +
              re + "[j];");
  else
    c.to.line(loop_over("j", n) + " y[j] = " + whole + " * " + im + "[j];");
  c.to.close();
}

template <class T>
void write_fft_of(const CCall& c) {
  const double scale = std::get<double>(*c.node().attrs.at(0));
  const bool inverse = std::get<bool>(*c.node().attrs.at(1));
  const std::int64_t n = c.in(0).spec.shape[-2], rows = c.in(0).spec.shape.numel() / (2 * n);
  const Transforms<T> f(c);
  const auto plan = f.plan(n, false);
  const std::string from = c.dense(c.in(0)), t = f.type(), whole = f.number(scale);
  f.arrays(n);
  c.to.open(loop_over("row", rows));
  c.to.line("const " + t + " *const x = " + from + " + row * " + text(2 * n) + ";");
  c.to.line(t + " *const y = " + c.at(c.out()) + " + row * " + text(2 * n) + ";");
  // The inverse: real and imaginary parts are exchanged.
  c.to.line(loop_over("j", n) +
            (inverse ? " b[j] = x[2 * j], a[j] = x[2 * j + 1];" : " a[j] = x[2 * j], b[j] = x[2 * j + 1];"));
  auto [re, im] = f.passes(c.to, *plan, {"a", "b"}, {"c", "d"});
  if (inverse) std::swap(re, im);
  c.to.line(loop_over("j", n) + " y[2 * j] = " + whole + " * " + re + "[j], y[2 * j + 1] = " + whole + " * " + im +
            "[j];");
  c.to.close();
}

void write_rfft(const CCall& c) { c.dtype() == Dtype::f64 ? write_rfft_of<double>(c) : write_rfft_of<float>(c); }
void write_irfft(const CCall& c) { c.dtype() == Dtype::f64 ? write_irfft_of<double>(c) : write_irfft_of<float>(c); }
void write_fft(const CCall& c) { c.dtype() == Dtype::f64 ? write_fft_of<double>(c) : write_fft_of<float>(c); }

// ---- frames ---------------------------------------------------------------------------------------------------

/// Frames of a signal, one hop after the other.
void write_frame(const CCall& c) {
  const std::int64_t size = std::get<std::int64_t>(*c.node().attrs.at(0)),
                     hop = std::get<std::int64_t>(*c.node().attrs.at(1));
  const std::int64_t length = c.in(0).spec.shape[-1], frames = c.out().spec.shape[-2];
  const std::string x = c.dense(c.in(0));
  c.to.open(loop_over("t", c.out().spec.shape.numel() / size));
  c.to.line(loop_over("j", size) + " (" + c.at(c.out()) + ")[t * " + text(size) + " + j] = (" + x + ")[t / " +
            text(frames) + " * " + text(length) + " + t % " + text(frames) + " * " + text(hop) + " + j];");
  c.to.close();
}
/// Frames added up, each one hop after the one before.
void write_overlap_add(const CCall& c) {
  const std::int64_t hop = std::get<std::int64_t>(*c.node().attrs.at(0)), length = c.out().spec.shape[-1];
  const std::int64_t frames = c.in(0).spec.shape[-2], size = c.in(0).spec.shape[-1];
  const std::string x = c.dense(c.in(0));
  c.to.line(loop_over("i", c.out().spec.shape.numel()) + " (" + c.at(c.out()) + ")[i] = 0;");
  c.to.open(loop_over("t", c.in(0).spec.shape.numel() / size));
  c.to.line(loop_over("j", size) + " (" + c.at(c.out()) + ")[t / " + text(frames) + " * " + text(length) + " + t % " +
            text(frames) + " * " + text(hop) + " + j] += (" + x + ")[t * " + text(size) + " + j];");
  c.to.close();
}

constexpr CWriter kWriters[] = {{"fft", write_fft},
                                {"frame", write_frame},
                                {"irfft", write_irfft},
                                {"overlap_add", write_overlap_add},
                                {"rfft", write_rfft}};

}  // namespace

std::span<const CWriter> transform_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
