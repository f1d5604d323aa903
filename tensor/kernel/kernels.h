#pragma once
/// The tables through which the library reaches the kernels of an instruction set (level.h): of conversions, chains,
/// reductions, draws and products. Each pointwise operation has its own table (tensor/ops/define.h), and so do families
/// with headers next to this one.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/block.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/kernel/philox.h"

namespace ferrite::detail {

/// Number of elements whose words are drawn at once.
inline constexpr std::size_t kDrawn = 64;
/// The words of the elements of one draw: word w of element n is at words[w][n].
struct Drawn {
  alignas(64) std::uint32_t words[4][kDrawn];
};
/// The uniform distribution that words are mapped to: low + width u, u in [0, 1) from 24 bits (f32) or 53 (f64),
/// computed in f64; results that rounding brings to `end` or beyond become `last`.
template <class T>
struct UniformNumbers {
  double low, width;
  T end, last;
};

/// The kernels of draws that a level (level.h) has.
struct DrawKernels {
  /// Computes the words of kDrawn elements, equal to those of `words_of` for each (tensor/ops/detail/draws.h).
  void (*words)(const DrawFrom& from, Drawn& to);
  /// Computes uniform numbers for the first n elements.
  void (*uniform_f32)(const Drawn& drawn, const UniformNumbers<float>& u, float* to, std::int64_t n);
  void (*uniform_f64)(const Drawn& drawn, const UniformNumbers<double>& u, double* to, std::int64_t n);
};

/// The kernels that convert any dtype to any other, including storage types: no other kernel takes these.
struct Conversions {
  struct Row {
    Block to[kDtypes.size()];
  };
  Row between[kDtypes.size()];  ///< by the position of the operands' dtype in kDtypes, and then of the results'
};

/// The code of a link of a chain (chain.h), for blocks of several sizes. Its contents are known only to its level.
struct LinkKernel {};

/// One link of a chain. The first one says where the values come from; the last one where they go.
struct Link {
  const LinkKernel* kernel;
  const float* at;      ///< element 0 of row 0, or one line of a repeated value
  std::ptrdiff_t skip;  ///< distance from the end of a row to the next one
  /// Element 0 and distance of the second factor, where the other operand is a product.
  const float* at2;
  std::ptrdiff_t skip2;
};

/// The rows that a chain runs over.
struct ChainRows {
  std::int64_t first, count, columns;
  bool far = false;  ///< several operands come from memory, where runs read together are prefetched
};

/// The code of the links of chains.
struct ChainKernels {
  static constexpr std::size_t kCheap = 6;     ///< add, sub, mul, neg, square, relu
  static constexpr std::size_t kProducts = 3;  ///< the first of these, which also take a product as the other operand
  const LinkKernel* from[2];                   ///< by whether a value is repeated
  const LinkKernel* through[kCheap][2][2];     ///< by operation, place of the chain's value, repeated
  const LinkKernel* product[kProducts][2][2][2];
  const LinkKernel* to[2];  ///< by whether results bypass the caches
  void (*run)(const Link* links, const ChainRows& rows);
};

inline constexpr std::int64_t kReductionBlock = 1024;  ///< elements (docs/numerics.md, rule 3)
/// Lanes that sums are dealt out to: a property of the dtype, not of the machine, whose packets hold all of them or a
/// part.
template <class T>
inline constexpr std::int64_t kReductionLanes = sizeof(T) == 8 ? 8 : 16;
inline constexpr std::int64_t kReductionColumns = 64;  ///< most columns that are reduced together

/// Consecutive rows of a block; each joins the lane of its number.
struct DealtRows {
  const void* rows;  ///< dense
  std::int64_t count;
  std::int64_t width;
  std::int64_t first;  ///< number of the first row in its block
  std::byte* lanes;
  std::int64_t lane_bytes;  ///< distance from lane to lane
};
/// Functions for kernels that reduce what they compute: `join` joins n floats into n others, `deal` deals rows out to
/// lanes, `clear` fills n elements with the identity.
struct JoinRuns {
  void (*join)(void* to, const void* x, std::int64_t n);
  void (*deal)(const DealtRows& rows);
  void (*clear)(void* to, std::int64_t n);
  std::int64_t lanes;  ///< lanes that a block is dealt out to
};
/// The kernels of one reduction for one dtype.
struct ReductionKernels {
  RowReduction rows;
  /// Reduces n rows of `width` columns, at most kReductionColumns, `stride` elements apart, along the rows.
  void (*columns)(const void* x, std::int64_t n, std::int64_t stride, std::int64_t width, void* out);
  JoinRuns joins;
};
/// The kernels of one reduction that a level has.
struct ReductionTable {
  bool widens;                ///< whether integers and bool are reduced as i64, so that totals fit
  ReductionKernels dtype[4];  ///< f32, f64, i32, i64
};

/// The kernels of products of f32 or f64.
template <class T>
struct ProductKernels {
  bool rounds_once;              ///< whether multiply-adds are fused: rounded once (docs/numerics.md, rule 2)
  std::int64_t lanes;            ///< lanes of a packet
  std::int64_t product_columns;  ///< columns of a thread's share of a product
  /// Computes gemm on one thread; K is not 0.
  void (*product)(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c,
                  std::int64_t ldc, bool add);
  /// Copies B [K, N], K at most kBlockK, for product_of_panels; the copy has K times the whole lines of a row of N
  /// elements. Both are null for f64.
  void (*pack_panels)(std::int64_t N, std::int64_t K, MatrixView<T> b, T* to);
  /// Computes C = A . B from the packed B of N columns, for at least the first `columns` of them. Rows of A are
  /// contiguous; rows of C have room for whole lines.
  void (*product_of_panels)(std::int64_t M, std::int64_t N, std::int64_t columns, std::int64_t K, const T* a,
                            std::int64_t a_row, const T* panels, T* c, std::int64_t ldc);
  void (*pack_gates)(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                     std::int64_t gate_step, T* to);
  void (*pack_transposed)(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                          std::int64_t block_rows);
  /// Computes c [rows, units] = a . w, plus `bias` where there is one, for one gate.
  void (*packed_product)(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias,
                         T* c);
};

/// The operand of a product that is packed in a thread's memory. product_memory returns `bytes` of it, aligned to 64
/// bytes, valid until the next call for the same operand.
enum class PackedSide : std::uint8_t { rows, panels };
std::byte* product_memory(PackedSide side, std::size_t bytes);

/// The tables of the level in use. Each throws ValueError where there is none (tensor/instruction_set.h).
extern const TableInUse<Conversions> conversions_in_use;
extern const TableInUse<ChainKernels> chains_in_use;
using Reduction = TableInUse<ReductionTable>;
extern const Reduction sum_in_use, prod_in_use, max_in_use, min_in_use;
extern const TableInUse<DrawKernels> draws_in_use;
extern const FloatTablesInUse<ProductKernels> products_in_use;

// ---- definitions in the sources of a level ----------------------------------------------------------------

namespace FERRITE_LEVEL {

extern const Conversions conversions;
extern const ChainKernels chain_kernels;
extern const DrawKernels draw_kernels;

// The functions that ProductKernels names.
template <class T>
void product(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
             bool add);
template <class T>
void pack_gates(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                std::int64_t gate_step, T* to);
template <class T>
void pack_transposed(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                     std::int64_t block_rows);
template <class T>
void packed_product(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c);

}  // namespace FERRITE_LEVEL
}  // namespace ferrite::detail
