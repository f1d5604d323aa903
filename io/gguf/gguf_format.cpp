/// The table of GGUF's types, and their quantised blocks, with products and sums in the order of the package gguf so
/// that all bits agree.
#include "ferrite/io/gguf/gguf_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

// ---- types ---------------------------------------------------------------------------------------------

namespace ferrite::io::detail::gguf {
namespace {

constexpr std::array kTypes = {
    TensorType{0, "F32", 1, 4, Packing::plain, FileDtype::f32},
    TensorType{1, "F16", 1, 2, Packing::plain, FileDtype::f16},
    TensorType{2, "Q4_0", 32, 18, Packing::q4_0},
    TensorType{3, "Q4_1", 32, 20, Packing::q4_1},
    TensorType{6, "Q5_0", 32, 22, Packing::q5_0},
    TensorType{7, "Q5_1", 32, 24, Packing::q5_1},
    TensorType{8, "Q8_0", 32, 34, Packing::q8_0},
    TensorType{9, "Q8_1", 32, 36},
    TensorType{10, "Q2_K", 256, 84},
    TensorType{11, "Q3_K", 256, 110},
    TensorType{12, "Q4_K", 256, 144, Packing::q4_k},
    TensorType{13, "Q5_K", 256, 176, Packing::q5_k},
    TensorType{14, "Q6_K", 256, 210, Packing::q6_k},
    TensorType{15, "Q8_K", 256, 292},
    TensorType{16, "IQ2_XXS", 256, 66},
    TensorType{17, "IQ2_XS", 256, 74},
    TensorType{18, "IQ3_XXS", 256, 98},
    TensorType{19, "IQ1_S", 256, 50},
    TensorType{20, "IQ4_NL", 32, 18},
    TensorType{21, "IQ3_S", 256, 110},
    TensorType{22, "IQ2_S", 256, 82},
    TensorType{23, "IQ4_XS", 256, 136},
    TensorType{24, "I8", 1, 1, Packing::plain, FileDtype::i8},
    TensorType{25, "I16", 1, 2, Packing::plain, FileDtype::i16},
    TensorType{26, "I32", 1, 4, Packing::plain, FileDtype::i32},
    TensorType{27, "I64", 1, 8, Packing::plain, FileDtype::i64},
    TensorType{28, "F64", 1, 8, Packing::plain, FileDtype::f64},
    TensorType{29, "IQ1_M", 256, 56},
    TensorType{30, "BF16", 1, 2, Packing::plain, FileDtype::bf16},
    TensorType{34, "TQ1_0", 256, 54},
    TensorType{35, "TQ2_0", 256, 66},
    TensorType{39, "MXFP4", 32, 17},
};

}  // namespace

std::uint64_t size_of(ValueType type) {
  constexpr std::array<std::uint64_t, kValueTypes> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

const TensorType* tensor_type(std::uint32_t id) {
  const auto at = std::ranges::find(kTypes, id, &TensorType::id);
  return at == kTypes.end() ? nullptr : &*at;
}

const TensorType& tensor_type(Packing packing) { return *std::ranges::find(kTypes, packing, &TensorType::packing); }

const TensorType* tensor_type_of(FileDtype plain) {
  const auto at = std::ranges::find_if(
      kTypes, [plain](const TensorType& t) { return t.packing == Packing::plain && t.plain == plain; });
  return at == kTypes.end() ? nullptr : &*at;
}

// ---- blocks --------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kSmall = 32, kSuper = 256;  // number of elements in a block
constexpr std::size_t kPart = 32;                 // number of elements of a super-block that share a scale and minimum

using Bytes = const std::uint8_t*;

float half_at(Bytes at) {
  float16 h{};
  std::memcpy(&h, at, sizeof(h));
  return static_cast<float>(h);
}

std::uint32_t word_at(Bytes at) {
  std::uint32_t w = 0;
  std::memcpy(&w, at, sizeof(w));
  return w;
}

/// Returns the 4 bits of element i of 32, which are the low halves of 16 bytes, then the high ones.
int nibble(Bytes at, std::size_t i) { return i < kSmall / 2 ? at[i] & 15 : at[i - kSmall / 2] >> 4; }

/// Converts a block of Q4_0: d [f16], 32 x 4 bits; the numbers are d (q - 8).
void q4_0(Bytes b, float* out) {
  const float d = half_at(b);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(nibble(b + 2, i) - 8);
}

/// Converts a block of Q4_1: d, m [f16], 32 x 4 bits; the numbers are d q + m.
void q4_1(Bytes b, float* out) {
  const float d = half_at(b), m = half_at(b + 2);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
}

/// Returns five bits of element i: the fifth from the word `high`, above the four others.
int five_bits(std::uint32_t high, Bytes low, std::size_t i) {
  return nibble(low, i) | static_cast<int>((high >> i & 1U) << 4);
}

/// Converts a block of Q5_0: d [f16], 32 high bits, 32 x 4 bits; the numbers are d (q - 16).
void q5_0(Bytes b, float* out) {
  const float d = half_at(b);
  const std::uint32_t high = word_at(b + 2);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(five_bits(high, b + 6, i) - 16);
}

/// Converts a block of Q5_1: d, m [f16], 32 high bits, 32 x 4 bits; the numbers are d q + m.
void q5_1(Bytes b, float* out) {
  const float d = half_at(b), m = half_at(b + 2);
  const std::uint32_t high = word_at(b + 4);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(five_bits(high, b + 8, i)) + m;
}

/// Converts a block of Q8_0: d [f16], 32 x i8; the numbers are d q.
void q8_0(Bytes b, float* out) {
  const float d = half_at(b);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(b[2 + i])) * d;
}

struct ScaleAndMinimum {
  int scale, minimum;
};

/// Returns one of eight scales and minima of 6 bits each in 12 bytes. The first four are the low bits of bytes 0 to 7;
/// the others have 4 bits in bytes 8 to 11 and their 2 upper ones in the upper bits of bytes 0 to 7.
ScaleAndMinimum scale_of(Bytes at, std::size_t part) {
  if (part < 4) return {at[part] & 63, at[part + 4] & 63};
  return {(at[part + 4] & 15) | (at[part - 4] >> 2 & 48), (at[part + 4] >> 4) | (at[part] >> 2 & 48)};
}

/// Converts a block of Q4_K: d, dmin [f16], scales and minima, 256 x 4 bits; the numbers of each part are
/// d sc q - dmin m. Two parts share 32 bytes.
void q4_k(Bytes b, float* out) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const Bytes low = b + 16;
  for (std::size_t part = 0; part < kSuper / kPart; ++part) {
    const auto [scale, minimum] = scale_of(b + 4, part);
    const float ds = d * static_cast<float>(scale), dm = dmin * static_cast<float>(minimum);
    for (std::size_t i = 0; i < kPart; ++i) {
      const int q = low[part / 2 * kPart + i] >> (part % 2 * 4) & 15;
      *out++ = ds * static_cast<float>(q) - dm;
    }
  }
}

/// Converts a block of Q5_K, which is Q4_K with a fifth bit: for part p it is bit p of 32 bytes.
void q5_k(Bytes b, float* out) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const Bytes high = b + 16, low = b + 48;
  for (std::size_t part = 0; part < kSuper / kPart; ++part) {
    const auto [scale, minimum] = scale_of(b + 4, part);
    const float ds = d * static_cast<float>(scale), dm = dmin * static_cast<float>(minimum);
    for (std::size_t i = 0; i < kPart; ++i) {
      const int q = (low[part / 2 * kPart + i] >> (part % 2 * 4) & 15) | (high[i] >> part & 1) << 4;
      *out++ = ds * static_cast<float>(q) - dm;
    }
  }
}

/// Converts a block of Q6_K: 256 x 4 low bits, 256 x 2 high bits, 16 scales [i8], d [f16]; the numbers are
/// d sc (q - 32), with a scale for 16 elements. For each half, 64 bytes hold the low bits and 32 the high ones.
void q6_k(Bytes b, float* out) {
  const float d = half_at(b + 208);
  for (std::size_t i = 0; i < kSuper; ++i) {
    const std::size_t half = i / 128, part = i % 128 / kPart, in = i % kPart;
    const int low = b[half * 64 + part % 2 * kPart + in] >> (part / 2 * 4) & 15;
    const int high = b[128 + half * kPart + in] >> (part * 2) & 3;
    const float ds = d * static_cast<float>(static_cast<std::int8_t>(b[192 + i / 16]));
    out[i] = ds * static_cast<float>((low | high << 4) - 32);
  }
}

template <class F>
void each_block(std::size_t elements, std::size_t bytes, std::span<const std::byte> blocks, std::span<float> out,
                F&& f) {
  const auto* at = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < out.size(); i += elements, at += bytes) f(at, out.data() + i);
}

bool put_scale(float d, std::byte* to) {
  const auto h = static_cast<float16>(d);
  std::memcpy(to, &h, sizeof(h));
  return std::isfinite(static_cast<float>(h));
}

/// Returns 1 / d, or 0 where that is not finite: for zeros, and numbers whose scale is 0 in f16 anyway.
float inverse(float d) {
  const float id = 1 / d;
  return d == 0 || !std::isfinite(id) ? 0 : id;
}

/// Converts 32 numbers to a block of Q8_0 with scale max|x| / 127; halves are rounded away from zero.
bool quantize_q8_0(const float* x, std::byte* to) {
  float most = 0;
  for (std::size_t i = 0; i < kSmall; ++i) most = std::max(most, std::abs(x[i]));
  const float d = most / 127, id = inverse(d);
  for (std::size_t i = 0; i < kSmall; ++i)
    to[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::round(x[i] * id)));
  return put_scale(d, to);
}

/// Converts 32 numbers to a block of Q4_0. The number of the largest magnitude, the first of several, becomes -8: the
/// scale is that number / -8.
bool quantize_q4_0(const float* x, std::byte* to) {
  float extreme = x[0];
  for (std::size_t i = 1; i < kSmall; ++i)
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  const float d = extreme / -8, id = inverse(d);
  const auto q = [&](std::size_t i) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(x[i] * id + 8.5F), 0, 15));
  };
  for (std::size_t i = 0; i < kSmall / 2; ++i) to[2 + i] = static_cast<std::byte>(q(i) | q(i + kSmall / 2) << 4);
  return put_scale(d, to);
}

}  // namespace

void dequantize(Packing packing, std::span<const std::byte> blocks, std::span<float> out) {
  const TensorType& type = tensor_type(packing);
  const auto each = [&](auto f) { each_block(type.block_elements, type.block_bytes, blocks, out, f); };
  switch (packing) {
    case Packing::q4_0: return each(q4_0);
    case Packing::q4_1: return each(q4_1);
    case Packing::q5_0: return each(q5_0);
    case Packing::q5_1: return each(q5_1);
    case Packing::q8_0: return each(q8_0);
    case Packing::q4_k: return each(q4_k);
    case Packing::q5_k: return each(q5_k);
    case Packing::q6_k: return each(q6_k);
    case Packing::none:
    case Packing::plain: break;
  }
}

bool quantize(Packing packing, std::span<const float> elements, std::span<std::byte> blocks) {
  const std::size_t bytes = tensor_type(packing).block_bytes;
  bool fits = true;
  for (std::size_t i = 0; i < elements.size() / kSmall; ++i) {
    const float* x = elements.data() + i * kSmall;
    std::byte* to = blocks.data() + i * bytes;
    fits &= packing == Packing::q8_0 ? quantize_q8_0(x, to) : quantize_q4_0(x, to);
  }
  return fits;
}

}  // namespace ferrite::io::detail::gguf
