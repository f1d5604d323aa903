/// Functions of C that printed functions call and few files need: roots, doubles next to floats, calls of the C
/// library.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "ferrite/exchange/freeze/c_functions.h"

namespace ferrite::exchange::detail {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- doubles next to floats --------------------------------------------------------------------------------

constexpr const char* kWide = R"(/* As many doubles as a vector has floats. */
#if NF_VECTOR_BYTES == 0
typedef double nf_w;
typedef int64_t nf_v;
typedef int64_t nf_mask_w;
static inline nf_w nf_widen_f(nf_f x) { return (double)x; }
static inline nf_f nf_narrow_w(nf_w x) { return (float)x; }
#else
typedef struct {
  nf_d at[2];
} nf_w;
typedef struct {
  nf_l at[2];
} nf_v;
typedef struct {
  nf_mask_d at[2];
} nf_mask_w;
typedef float nf_half_f __attribute__((vector_size(NF_VECTOR_BYTES / 2)));
static inline nf_w nf_widen_f(nf_f x) {
  nf_half_f part[2];
  nf_w wide;
  __builtin_memcpy(part, &x, sizeof x);
  for (int i = 0; i < 2; ++i) {
#if NF_VECTOR_BYTES == 64
    wide.at[i] = _mm512_maskz_cvtps_pd((__mmask8)-1, (__m256)part[i]);
#elif defined(__AVX__) && NF_VECTOR_BYTES == 32
    wide.at[i] = _mm256_cvtps_pd((__m128)part[i]);
#else
    wide.at[i] = __builtin_convertvector(part[i], nf_d);
#endif
  }
  return wide;
}
static inline nf_f nf_narrow_w(nf_w x) {
  nf_half_f part[2];
  nf_f narrow;
  for (int i = 0; i < 2; ++i) part[i] = __builtin_convertvector(x.at[i], nf_half_f);
  __builtin_memcpy(&narrow, part, sizeof narrow);
  return narrow;
}
#endif
)";

/// The types of a function of wide vectors, the result first: w numbers, v integers, m masks, n a number of places, s a
/// number, l an integer.
std::string_view types_of_wide(std::string_view base, char suffix) {
  static const std::map<std::string_view, std::string_view> of_numbers = {{"add", "www"},
                                                                          {"sub", "www"},
                                                                          {"mul", "www"},
                                                                          {"div", "www"},
                                                                          {"neg", "ww"},
                                                                          {"fma", "wwww"},
                                                                          {"first_min", "www"},
                                                                          {"first_max", "www"},
                                                                          {"sqrt", "ww"},
                                                                          {"nearest", "ww"},
                                                                          {"and", "www"},
                                                                          {"or", "www"},
                                                                          {"without", "www"},
                                                                          {"abs", "ww"},
                                                                          {"sign_bit", "ww"},
                                                                          {"bits", "vw"},
                                                                          {"from_bits", "wv"},
                                                                          {"is_less", "mww"},
                                                                          {"is_equal", "mww"},
                                                                          {"is_less_equal", "mww"},
                                                                          {"is_nan", "mw"},
                                                                          {"both", "mmm"},
                                                                          {"either", "mmm"},
                                                                          {"select", "wmww"},
                                                                          {"or_zero", "wmw"},
                                                                          {"set", "ws"},
                                                                          {"is_greater_or_nan", "mww"}};
  static const std::map<std::string_view, std::string_view> of_integers = {
      {"add", "vvv"}, {"sub", "vvv"}, {"and", "vvv"}, {"or", "vvv"},
      {"xor", "vvv"}, {"shl", "vvn"}, {"shr", "vvn"}, {"set", "vl"}};
  const auto& all = suffix == 'w' ? of_numbers : of_integers;
  const auto at = all.find(base);
  return at == all.end() ? std::string_view() : at->second;
}

std::string c_type(char letter) {
  switch (letter) {
    case 'w': return "nf_w";
    case 'v': return "nf_v";
    case 'm': return "nf_mask_w";
    case 'n': return "int";
    case 's': return "double";
    default: return "int64_t";
  }
}

/// Returns the definition of a function of wide vectors by that of their halves.
std::string wide_definition(const std::string& name, std::string_view base, std::string_view types) {
  static const std::map<std::string_view, char> infix = {
      {"add", '+'}, {"sub", '-'}, {"mul", '*'}, {"div", '/'}, {"neg", '-'}};
  std::string parameters, whole, half;
  const auto sign = types[0] == 'w' ? infix.find(base) : infix.end();
  for (std::size_t i = 1; i < types.size(); ++i) {
    const char letter = static_cast<char>('a' + i - 1);
    const bool is_vector = types[i] == 'w' || types[i] == 'v' || types[i] == 'm';
    const std::string between = i == 1                ? ""
                                : sign != infix.end() ? std::string(" ") + sign->second + " "
                                                      : std::string(", ");
    parameters += (i == 1 ? "" : ", ") + c_type(types[i]) + " " + letter;
    whole += between + letter;
    half += between + letter + (is_vector ? ".at[i]" : "");
  }
  if (sign != infix.end()) {
    const std::string prefix = types.size() == 2 ? "-" : "";
    whole = prefix + whole, half = prefix + half;
  } else {
    const std::string narrow = "nf_" + std::string(base) + (name.back() == 'w' ? "_d(" : "_l(");
    whole = narrow + whole + ")", half = narrow + half + ")";
  }
  const std::string type = c_type(types[0]);
  return "static inline " + type + " " + name + "(" + parameters + ") {\n#if NF_VECTOR_BYTES == 0\n  return " + whole +
         ";\n#else\n  " + type + " y;\n  for (int i = 0; i < 2; ++i) y.at[i] = " + half + ";\n  return y;\n#endif\n}\n";
}

// ---- roots ------------------------------------------------------------------------------------------------

constexpr const char* kSqrt = R"(static inline nf_@s nf_sqrt_@s(nf_@s x) {
#if NF_VECTOR_BYTES == 0
  return @c(x);
#elif NF_VECTOR_BYTES == 64
  return _mm512_maskz_sqrt_@p((@K)-1, x);
#elif defined(__SSE2__)
  return NF_X86(sqrt_@p)(x);
#elif defined(__aarch64__)
  return vsqrtq_@a(x);
#else
  for (int i = 0; i < NF_LANES_@N; ++i) x[i] = @c(x[i]);
  return x;
#endif
}
)";

// ---- powers of two ------------------------------------------------------------------------------------------

/// x 2^n for whole n, the counterpart of `scale` in tensor/kernel/packet_exp.h: AVX-512 has an instruction for it.
constexpr const char* kScaleOfFloats =
    R"(/* x 2^n for whole n from -252 to 254, rounded once: in two factors, so that results reach the denormal numbers */
static inline nf_f nf_scale_f(nf_f x, nf_f n) {
#if NF_VECTOR_BYTES == 64
  return _mm512_maskz_scalef_ps((__mmask16)-1, x, n);
#else
  const nf_i whole = nf_to_int_f(n), half = nf_shr_i(whole, 1), other = nf_sub_i(whole, half), one = nf_set_i(127);
  return x * nf_from_bits_f(nf_shl_i(nf_add_i(half, one), 23)) * nf_from_bits_f(nf_shl_i(nf_add_i(other, one), 23));
#endif
}
)";
constexpr const char* kScaleOfDoubles =
    R"(/* x 2^n for whole n from -2046 to 2049, rounded once: in two factors, so that results reach the denormal numbers */
static inline nf_d nf_scale_d(nf_d x, nf_d n) {
#if NF_VECTOR_BYTES == 64
  return _mm512_maskz_scalef_pd((__mmask8)-1, x, n);
#else
  const nf_l whole = nf_bits_d(n + nf_set_d(0x1.8p52 + 2046.0)); /* in the last bits */
  const nf_l half = nf_and_l(nf_shl_l(whole, 51), nf_set_l(0x7ff0000000000000LL));
  return x * nf_from_bits_d(half) * nf_from_bits_d(nf_sub_l(nf_shl_l(whole, 52), half));
#endif
}
)";

// ---- functions applied lane by lane ------------------------------------------------------------------------

constexpr const char* kGelu = R"(/* x Phi(x); far below 0 by the asymptotic series of Phi */
static inline double nf_gelu1_d(double x) {
  const double root = 0x1.6a09e667f3bcdp-1, root_rest = -0x1.bdd3413b26456p-55;
  const double z = x * -root;
  double tail;
  if (x < -40.0) return -0.0;
  if (x < -36.0) {
    const double square = x * x, lost = nf_fma1_d(x, x, -square), r = 1.0 / square;
    double series = 0.0, density;
    for (int odd = 13; odd > 0; odd -= 2) series = -r * odd * (1.0 + series);
    density = exp(-square / 2.0) * (1.0 - lost / 2.0);
    return -(density * (0x1.9884533d43650p-2) * (1.0 + series));
  }
  tail = erfc(z);
  if (z > 1.0) tail -= 0x1.20dd750429b6dp+0 * exp(-z * z) * (nf_fma1_d(-x, root, -z) - x * root_rest);
  return x * (0.5 * tail);
}
)";

/// Returns the call in C of a function of one lane.
std::string lane_call(std::string_view lane, bool narrow, std::string_view a, std::string_view b) {
  const std::string first(a), both = b.empty() ? first : first + ", " + std::string(b);
  if (lane == "gelu") return "nf_gelu1_d(" + both + ")";
  if (lane == "lgamma") return narrow ? "(float)lgamma((double)" + first + ")" : "lgamma(" + first + ")";
  return std::string(lane) + (narrow ? "f(" : "(") + both + ")";
}

/// Returns the definition of the function that applies `lane` to every lane, or to those where the mask is false.
std::string lanes_definition(const std::string& name, std::string_view lane, std::size_t operands, bool mended) {
  const bool narrow = name.back() == 'f', two = operands == (mended ? 4U : 2U);
  const std::string s = narrow ? "f" : "d", i = narrow ? "i" : "l", n = narrow ? "NF_LANES_F" : "NF_LANES_D";
  const std::string T = narrow ? "float" : "double", I = narrow ? "int32_t" : "int64_t";
  std::string text = mended ? "/* y where the mask holds, else the function of a */\n" : "";
  text += "static inline nf_" + s + " " + name + "(" + (mended ? "nf_mask_" + s + " usual, nf_" + s + " y, " : "") +
          "nf_" + s + " a" + (two ? ", nf_" + s + " b" : "") + ") {\n";
  if (mended) text += "  " + I + " keep[" + n + "];\n  " + T + " z[" + n + "];\n";
  text += "  " + T + " v[" + n + "]" + (two ? ", w[" + n + "]" : "") + ";\n";
  if (mended) {
    text += "  if (nf_all_" + s + "(usual)) return y;\n";
    text += "  nf_store_" + i + "(keep, nf_truth_" + s + "(usual));\n  nf_store_" + s + "(z, y);\n";
  }
  text += "  nf_store_" + s + "(v, a);\n" + (two ? "  nf_store_" + s + "(w, b);\n" : "");
  const std::string to = mended ? "z" : "v";
  text += "  for (int i = 0; i < " + n + "; ++i)" + (mended ? "\n    if (!keep[i]) " : " ") + to +
          "[i] = " + lane_call(lane, narrow, "v[i]", two ? "w[i]" : "") + ";\n  return nf_load_" + s + "(" + to +
          ");\n}\n";
  return text;
}

}  // namespace

CHelper c_helper(const std::string& name, const char* lane, std::size_t operands) {
  const std::string base = name.size() > 5 ? name.substr(3, name.size() - 5) : "";
  const char suffix = name.back();
  CHelper helper;
  if (name == "nf_w") return {kWide, {}, false, true};
  if (name == "nf_widen_f" || name == "nf_narrow_w") return {"", {"nf_w"}, false, true};
  if (name == "nf_scale_f") return {kScaleOfFloats, {}, false, false};
  if (name == "nf_scale_d") return {kScaleOfDoubles, {}, false, false};
  if (name == "nf_gelu1_d") return {kGelu, {}, true, false};
  if (base.starts_with("turn")) return turned_helper(name);
  if (lane != nullptr && (base.starts_with("by_lane_") || base.starts_with("mended_"))) {
    helper.definition = lanes_definition(name, lane, operands, base.starts_with("mended_"));
    helper.calls_library = true;
    if (std::string_view(lane) == "gelu") helper.needs.emplace_back("nf_gelu1_d");
  } else if (name == "nf_sqrt_f" || name == "nf_sqrt_d") {
    const bool narrow = suffix == 'f';
    helper.definition = replaced(kSqrt, "@s", narrow ? "f" : "d");
    helper.definition = replaced(helper.definition, "@c", narrow ? "sqrtf" : "sqrt");
    helper.definition = replaced(helper.definition, "@K", narrow ? "__mmask16" : "__mmask8");
    helper.definition = replaced(helper.definition, "@p", narrow ? "ps" : "pd");
    helper.definition = replaced(helper.definition, "@a", narrow ? "f32" : "f64");
    helper.definition = replaced(helper.definition, "@N", narrow ? "F" : "D");
    helper.calls_library = true;
  } else if (suffix == 'w' || suffix == 'v') {
    const std::string_view types = types_of_wide(base, suffix);
    helper.definition = wide_definition(name, base, types);
    helper.uses_doubles = true;
    helper.needs.emplace_back("nf_w");
    if (base == "sqrt" || base == "scale") helper.needs.push_back("nf_" + base + "_d");
  }
  return helper;
}

}  // namespace ferrite::exchange::detail
