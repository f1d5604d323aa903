/// The table of GGUF's types: blocks, bytes and names.
#include "ferrite/io/gguf/gguf_format.h"

#include <algorithm>
#include <array>

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

}  // namespace ferrite::io::detail::gguf
