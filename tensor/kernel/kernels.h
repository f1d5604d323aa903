#pragma once
/// The table through which the library reaches the kernels of an instruction set. Each level (level.h) exports one.
#include "ferrite/tensor/block.h"

namespace ferrite::detail {

/// From any dtype to any other, those included that are only stored: no other kernel takes these.
struct Conversions {
  struct Row {
    Block to[kDtypes.size()];
  };
  Row between[kDtypes.size()];  ///< by the place of the operands' dtype in kDtypes, and then of the results'
};

/// The code of a link of a chain (chain.h), for blocks of several sizes: more of it only its level knows.
struct LinkKernel {};

/// One link: of the first, where the values come from; of the last, where they go.
struct Link {
  const LinkKernel* kernel;
  const float* at;      ///< element 0 of row 0, or one line of a repeated value
  std::ptrdiff_t skip;  ///< from the end of a row to the next one
  /// The same of the second factor, where the other operand is a product.
  const float* at2;
  std::ptrdiff_t skip2;
};

/// The code of chains.
struct ChainKernels {
  static constexpr std::size_t kCheap = 6;     ///< add, sub, mul, neg, square, relu
  static constexpr std::size_t kProducts = 3;  ///< the first of them, also with a product for the other operand
  const LinkKernel* from[2];                   ///< by whether a value is repeated
  const LinkKernel* through[kCheap][2][2];     ///< by operation, place of the chain's value, repeated
  const LinkKernel* product[kProducts][2][2][2];
  const LinkKernel* to;
  void (*run)(const Link* links, std::int64_t rows, std::int64_t columns);
};

struct Kernels {
  const Blocks* pointwise[3];  ///< by the families of functors.h: arithmetic, functions, logic
  const Conversions* conversions;
  const ChainKernels* chains;
};

/// The table of the level in use.
extern const Kernels* const kernels_in_use;
inline const Kernels& kernels() { return *kernels_in_use; }

}  // namespace ferrite::detail
