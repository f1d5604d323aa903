#pragma once
/// Which instruction set the library computes with.
#include <string_view>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// The instruction set whose kernels this process uses: "sse2", "avx2" (with FMA) or "avx512" (F, VL, DQ, BW, CD) on
/// x86-64, "neon" on AArch64, "generic" on other processors; "native" where the library was built for one machine alone
/// (FERRITE_ISA_LEVELS=native). The best that library and processor have, or what the environment variable FERRITE_ISA
/// names. Chosen when it is first needed, and the same from then on. Throws ValueError where FERRITE_ISA names one that
/// the library or the processor does not have, and where the processor has none of the library's; so does then every
/// operation that computes.
std::string_view instruction_set();

/// All that FERRITE_ISA may name here: those that the library has kernels for and that this processor has, the
/// narrowest first.
std::vector<std::string_view> instruction_sets();

}  // namespace ferrite
