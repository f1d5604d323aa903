/// The reduction of large angles in C, lane by lane: the counterpart of `turned_lane` and `turn_large` in
/// tensor/kernel/packet_trigonometry.h, which keep integers in arrays and so cannot be recorded. Sines of ordinary
/// angles do not call it.
#include <string>
#include <string_view>

#include "ferrite/exchange/freeze/c_functions.h"

namespace ferrite::exchange::detail {
namespace {

constexpr const char* kTurnOfFloat =
    R"(/* A large angle x = quadrant pi / 2 + rest - over: up to 2^27 by doubles, beyond by the
   digits of 2 / pi that matter (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). */
typedef struct {
  float rest, over;
  int32_t quadrant;
} nf_turn_f;
static nf_turn_f nf_turn1_f(float x) {
  static const uint32_t two_by_pi[] = {0,           0xa2f9836eU, 0x4e441529U, 0xfc2757d1U,
                                       0xf534ddc0U, 0xdb629599U, 0x3c439041U, 0xfe600000U};
  const double shift = 0x1.8p52;
  nf_turn_f t = {0.0f, 0.0f, 0};
  double v;
  if (x < 0x1p27f && x > -0x1p27f) {
    const double n = nf_fma1_d((double)x, 0x1.45f306dc9c883p-1, shift) - shift;
    t.quadrant = (int32_t)nf_fma1_d((n * 0.25 + shift) - shift, -4.0, n);
    v = nf_fma1_d(n, -0x1.1a62633145c07p-54, nf_fma1_d(n, -0x1.921fb54442d18p+0, (double)x));
  } else {
    const uint32_t bits = (uint32_t)nf_bits1_f(x), exponent = (bits >> 23) & 255U;
    const uint32_t from = exponent - 120U, word = from / 32U, place = from % 32U;
    const uint64_t digits = (bits & 0x7fffffU) | 0x800000U;
    uint64_t part[3], turns, nearest;
    if (exponent == 255U) {
      t.rest = x - x;
      return t;
    }
    for (uint32_t i = 0; i < 3U; ++i)
      part[i] = ((uint64_t)two_by_pi[word + i] << 32 | two_by_pi[word + i + 1U]) << place >> 32;
    turns = (digits * part[0] << 32) + digits * part[1] + (digits * part[2] >> 32);
    nearest = (turns + ((uint64_t)1 << 61)) >> 62;
    v = (double)(int64_t)(turns - (nearest << 62)) * 0x1.921fb54442d18p-62;
    t.quadrant = (int32_t)nearest;
    if (bits >> 31 != 0) {
      v = -v;
      t.quadrant = -t.quadrant;
    }
  }
  t.rest = (float)v;
  t.over = (float)((double)t.rest - v);
  return t;
}
)";

constexpr const char* kTurnOfDouble =
    R"(/* A large angle x = quadrant pi / 2 + rest - over by the digits of 2 / pi that matter
   (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). */
typedef struct {
  double rest, over;
  int64_t quadrant;
} nf_turn_d;
static nf_turn_d nf_turn1_d(double x) {
  static const uint32_t two_by_pi[] = {
      0,           0,           0xa2f9836eU, 0x4e441529U, 0xfc2757d1U, 0xf534ddc0U, 0xdb629599U, 0x3c439041U,
      0xfe5163abU, 0xdebbc561U, 0xb7246e3aU, 0x424dd2e0U, 0x06492eeaU, 0x09d1921cU, 0xfe1deb1cU, 0xb129a73eU,
      0xe88235f5U, 0x2ebb4484U, 0xe99c7026U, 0xb45f7e41U, 0x3991d639U, 0x835339f4U, 0x9c845f8bU, 0xbdf9283bU,
      0x1ff897ffU, 0xde05980fU, 0xef2f118bU, 0x5a0a6d1fU, 0x6d367ecfU, 0x27cb09b7U, 0x4f463f66U, 0x9e5fea2dU,
      0x7527bac7U, 0xebe5f17bU, 0x3d0739f7U, 0x8a5292eaU, 0x6bfb5fb1U, 0x1f8d5d08U, 0x56033046U, 0xfc7b6babU};
  const double quarter = 0x1.921fb54442d18p+0, quarter_rest = 0x1.1a62633145c06p-54;
  const uint64_t bits = (uint64_t)nf_bits1_d(x), digits = (bits & 0xfffffffffffffULL) | 0x10000000000000ULL;
  const uint32_t exponent = (uint32_t)(bits >> 52) & 2047U, from = exponent - 1013U;
  uint32_t turns[6] = {0, 0, 0, 0, 0, 0}; /* the least significant word first */
  uint64_t high, middle, low, nearest, scale = 1023 + 11 - 62;
  nf_turn_d t = {0.0, 0.0, 0};
  double first, second, product, rest;
  int below;
  if (exponent == 2047U) {
    t.rest = x - x;
    return t;
  }
  for (uint32_t place = 0; place < 2U; ++place) {
    uint64_t carry = 0;
    for (uint32_t i = 0; i + place < 6U; ++i) {
      const uint32_t* word = two_by_pi + (from / 32U + 5U - i);
      const uint64_t part = ((uint64_t)word[0] << 32 | word[1]) << (from % 32U) >> 32;
      carry += part * (digits >> (32U * place) & 0xffffffffU) + turns[i + place];
      turns[i + place] = (uint32_t)carry;
      carry >>= 32;
    }
  }
  high = (uint64_t)turns[5] << 32 | turns[4];
  middle = (uint64_t)turns[3] << 32 | turns[2];
  low = (uint64_t)turns[1] << 32 | turns[0];
  nearest = (high + ((uint64_t)1 << 61)) >> 62;
  high -= nearest << 62;
  below = high >> 63 != 0;
  if (below) {
    low = 0 - low;
    middle = ~middle + (low == 0);
    high = ~high + (low == 0 && middle == 0);
  }
  if (high == 0) {
    high = middle;
    middle = low;
    low = 0;
    scale -= 64;
  }
  while (high != 0 && high >> 63 == 0) {
    high = high << 1 | middle >> 63;
    middle = middle << 1 | low >> 63;
    low <<= 1;
    --scale;
  }
  first = (double)(high >> 11) * nf_from_bits1_d((int64_t)(scale << 52));
  second = (double)((high & 0x7ffU) << 42 | middle >> 22) * nf_from_bits1_d((int64_t)((scale - 53) << 52));
  if ((bits >> 63 != 0) != (below != 0)) {
    first = -first;
    second = -second;
  }
  product = first * quarter;
  rest = nf_fma1_d(first, quarter, -product) + nf_fma1_d(first, quarter_rest, second * quarter);
  t.rest = product + rest;
  t.over = (t.rest - product) - rest;
  t.quadrant = (int64_t)(bits >> 63 != 0 ? 0 - nearest : nearest);
  return t;
}
)";

std::string definition_of(const std::string& name, std::string_view part) {
  const bool narrow = name.back() == 'f', whole = part == "quadrant";
  const std::string s = narrow ? "f" : "d", n = narrow ? "NF_LANES_F" : "NF_LANES_D", T = narrow ? "float" : "double";
  const std::string i = narrow ? "i" : "l", I = narrow ? "int32_t" : "int64_t";
  const std::string v = whole ? i : s, V = whole ? I : T, many = narrow ? "100000.0f" : "0x1p30";
  return "static inline nf_" + v + " " + name + "(nf_" + s + " x, nf_" + v + " y) {\n  " + T + " angle[" + n +
         "];\n  " + V + " part[" + n + "];\n  if (nf_all_" + s + "(nf_is_less_" + s + "(nf_abs_" + s + "(x), nf_set_" +
         s + "(" + many + ")))) return y;\n  nf_store_" + s + "(angle, x);\n  nf_store_" + v +
         "(part, y);\n  for (int i = 0; i < " + n + "; ++i)\n    if (!(angle[i] < " + many + " && angle[i] > -" + many +
         ")) part[i] = nf_turn1_" + s + "(angle[i])." + std::string(part) + ";\n  return nf_load_" + v + "(part);\n}\n";
}

}  // namespace

CHelper turned_helper(const std::string& name) {
  if (name == "nf_turn1_f") return {kTurnOfFloat, {}, false, true};
  if (name == "nf_turn1_d") return {kTurnOfDouble, {}, false, false};
  const std::string part = name.substr(10, name.size() - 12);  // nf_turned_rest_f
  return {definition_of(name, part), {std::string("nf_turn1_") + name.back()}, false, name.back() == 'f'};
}

}  // namespace ferrite::exchange::detail
