// Oracles and samples of tensor/ops/fourier.cpp.
#include <cmath>
#include <numbers>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/kernel/fft_plan.h"

namespace oracles::fourier {
namespace {

/// X_k by its definition, in long double because a sum of rotations in double is no better than the transform.
struct Frequency {
  long double re = 0, im = 0;
};

long double angle_of(std::int64_t j, std::int64_t k, std::int64_t n) {
  return 2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) / static_cast<long double>(n);
}

template <class F>
Frequency sum_of_turns(std::int64_t n, std::int64_t k, int sign, const F& element) {
  Frequency total;
  for (std::int64_t j = 0; j < n; ++j) {
    const long double angle = static_cast<long double>(sign) * angle_of(j, k, n);
    const Frequency x = element(j);
    total.re += x.re * std::cos(angle) - x.im * std::sin(angle);
    total.im += x.re * std::sin(angle) + x.im * std::cos(angle);
  }
  return total;
}

bool is_inner(std::int64_t k, std::int64_t n) { return k != 0 && 2 * k != n; }

struct RealFftAttrs {
  double scale = 1, inner = 1;
  static constexpr auto fields = attr_list(attr("scale", &RealFftAttrs::scale), attr("inner", &RealFftAttrs::inner));
};

struct InverseRealFftAttrs {
  std::int64_t n = 1;
  double scale = 1, inner = 2;
  static constexpr auto fields =
      attr_list(attr("n", &InverseRealFftAttrs::n), attr("scale", &InverseRealFftAttrs::scale),
                attr("inner", &InverseRealFftAttrs::inner));
};

struct Rfft {
  using Attributes = RealFftAttrs;
  static constexpr auto name = "rfft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t n = in[0].shape[-1];
    for_each_index(out[0].shape, [&](const Shape& i) {
      const std::int64_t k = i[-2];
      Shape from = i;
      from.erase(from.rank() - 1);
      const Frequency y = sum_of_turns(n, k, -1, [&](std::int64_t j) {
        from[-1] = j;
        return Frequency{in[0].at(from), 0};
      });
      const double part = static_cast<double>(i[-1] == 0 ? y.re : y.im);
      out[0].at(i) = is_inner(k, n) ? a.scale * a.inner * part : i[-1] == 0 ? a.scale * part : 0;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 8}}}, .attrs = RealFftAttrs{}},
            {.inputs = {{{2, 2, 7}}}, .attrs = RealFftAttrs{0.5, 1}},
            {.inputs = {{{30}}}, .attrs = RealFftAttrs{1, 2}},
            {.inputs = {{{2, 37}}}, .attrs = RealFftAttrs{0.25, 1}},
            {.inputs = {{{1, 74}}}, .attrs = RealFftAttrs{0.125, 1}},
            {.inputs = {{{16}}}, .attrs = RealFftAttrs{0.25, 1}},
            {.inputs = {{{3, 1}}}, .attrs = RealFftAttrs{}},
            {.inputs = {{{3, 2}}}, .attrs = RealFftAttrs{}},
            {.inputs = {{{0, 4}}}, .attrs = RealFftAttrs{}}};
  }
};

struct Irfft {
  using Attributes = InverseRealFftAttrs;
  static constexpr auto name = "irfft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from.push_back(0);
      long double total = 0;
      for (std::int64_t k = 0; k <= a.n / 2; ++k) {
        const long double angle = angle_of(i[-1], k, a.n);
        from[-2] = k;
        from[-1] = 0;
        const long double re = in[0].at(from);
        from[-1] = 1;
        const long double im = in[0].at(from);
        total += is_inner(k, a.n) ? a.inner * (re * std::cos(angle) - im * std::sin(angle)) : re * std::cos(angle);
      }
      out[0].at(i) = a.scale * static_cast<double>(total);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5, 2}}}, .attrs = InverseRealFftAttrs{8, 0.125, 2}},
            {.inputs = {{{2, 4, 2}}}, .attrs = InverseRealFftAttrs{7, 1, 2}},
            {.inputs = {{{16, 2}}}, .attrs = InverseRealFftAttrs{30, 0.125, 1}},
            {.inputs = {{{2, 19, 2}}}, .attrs = InverseRealFftAttrs{37, 0.0625, 2}},
            {.inputs = {{{38, 2}}}, .attrs = InverseRealFftAttrs{74, 0.03125, 2}},
            {.inputs = {{{2, 1, 2}}}, .attrs = InverseRealFftAttrs{1, 1, 2}},
            {.inputs = {{{2, 2, 2}}}, .attrs = InverseRealFftAttrs{2, 0.5, 2}},
            {.inputs = {{{0, 3, 2}}}, .attrs = InverseRealFftAttrs{4, 1, 2}}};
  }
};

struct FftAttrs {
  double scale = 1;
  bool inverse = false;
  static constexpr auto fields = attr_list(attr("scale", &FftAttrs::scale), attr("inverse", &FftAttrs::inverse));
};

struct Fft {
  using Attributes = FftAttrs;
  static constexpr auto name = "fft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      const Frequency y = sum_of_turns(in[0].shape[-2], i[-2], a.inverse ? 1 : -1, [&](std::int64_t j) {
        from[-2] = j;
        from[-1] = 0;
        const double re = in[0].at(from);
        from[-1] = 1;
        return Frequency{re, in[0].at(from)};
      });
      out[0].at(i) = a.scale * static_cast<double>(i[-1] == 0 ? y.re : y.im);
    });
  }
  static std::vector<Sample> samples() {
    return {
        {.inputs = {{{2, 8, 2}}}, .attrs = FftAttrs{}},         {.inputs = {{{15, 2}}}, .attrs = FftAttrs{0.5, true}},
        {.inputs = {{{2, 77, 2}}}, .attrs = FftAttrs{0.125}},   {.inputs = {{{41, 2}}}, .attrs = FftAttrs{0.125, true}},
        {.inputs = {{{3, 1, 2}}}, .attrs = FftAttrs{2, false}}, {.inputs = {{{32, 2}}}, .attrs = FftAttrs{0.25}},
        {.inputs = {{{0, 4, 2}}}, .attrs = FftAttrs{}}};
  }
};

struct Ifft {
  static constexpr auto name = "ifft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    Fft::oracle(in, out, {1 / static_cast<double>(in[0].shape[-2]), true});
  }
  static std::vector<Sample> samples() { return {{.inputs = {{{3, 6, 2}}}}, {.inputs = {{{0, 4, 2}}}}}; }
};

const Added added = add<Rfft, Irfft, Fft, Ifft>();

}  // namespace
}  // namespace oracles::fourier
