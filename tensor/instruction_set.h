#pragma once
/// The instruction set that the library computes with.
#include <string_view>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// Returns the instruction set whose kernels this process uses: "sse2", "avx2" (with FMA) or "avx512"
/// (F, VL, DQ, BW, CD) on x86-64, "neon" on AArch64, "generic" on other processors; "native" where the library was
/// built for one machine only (FERRITE_ISA_LEVELS=native). It is the best that library and processor support, or the
/// one that the environment variable FERRITE_ISA names. Chosen on first use, and the same from then on. Throws
/// ValueError where FERRITE_ISA names one that the library or the processor does not have, and where the processor
/// supports none of the library's; every operation that computes then throws too.
std::string_view instruction_set();

/// Returns the values that FERRITE_ISA may have here: the sets that the library has kernels for and this processor
/// supports, the narrowest first.
std::vector<std::string_view> instruction_sets();

}  // namespace ferrite
