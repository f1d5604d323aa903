#pragma once
/// The tables through which the library reaches the kernels of an instruction set (level.h): of conversions, chains,
/// reductions, draws and products. A pointwise operation has a table of its own (tensor/ops/define.h), as have families
/// with headers beside this one.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/block.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/kernel/philox.h"

namespace ferrite::detail {

/// Elements whose words are drawn at once.
inline constexpr std::size_t kDrawn = 64;
/// Word w of element n at words[w][n].
struct Drawn {
  alignas(64) std::uint32_t words[4][kDrawn];
};
/// What makes words uniform: low + width u, u in [0, 1) from 24 bits (f32) or 53 (f64), computed in f64; what rounding
/// brings to `end` or beyond becomes `last`.
template <class T>
struct UniformNumbers {
  double low, width;
  T end, last;
};

/// What a level has of it (level.h).
struct DrawKernels {
  /// As `words_of` gives them one by one (tensor/ops/detail/draws.h).
  void (*words)(const DrawFrom& from, Drawn& to);
  /// The first n elements.
  void (*uniform_f32)(const Drawn& drawn, const UniformNumbers<float>& u, float* to, std::int64_t n);
  void (*uniform_f64)(const Drawn& drawn, const UniformNumbers<double>& u, double* to, std::int64_t n);
};

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

/// The rows that a chain runs over.
struct ChainRows {
  std::int64_t first, count, columns;
  bool far = false;  ///< several operands come from memory, which foresees runs that are read together
};

/// The code of chains.
struct ChainKernels {
  static constexpr std::size_t kCheap = 6;     ///< add, sub, mul, neg, square, relu
  static constexpr std::size_t kProducts = 3;  ///< the first of them, also with a product for the other operand
  const LinkKernel* from[2];                   ///< by whether a value is repeated
  const LinkKernel* through[kCheap][2][2];     ///< by operation, place of the chain's value, repeated
  const LinkKernel* product[kProducts][2][2][2];
  const LinkKernel* to[2];  ///< by whether results go past the caches
  void (*run)(const Link* links, const ChainRows& rows);
};

inline constexpr std::int64_t kReductionBlock = 1024;  ///< elements (docs/numerics.md, rule 3)
inline constexpr std::int64_t kReductionColumns = 64;  ///< that are reduced together, at most

/// Rows of a block of which each joins the lane of its number, and these lanes.
struct DealtRows {
  const void* rows;  ///< dense
  std::int64_t count;
  std::int64_t width;
  std::int64_t first;  ///< number of the first in its block
  std::byte* lanes;
  std::int64_t lane_bytes;  ///< from lane to lane
};
/// For kernels that reduce what they compute: n floats are joined into as many others, rows are dealt out, and an
/// identity fills n.
struct JoinRuns {
  void (*join)(void* to, const void* x, std::int64_t n);
  void (*deal)(const DealtRows& rows);
  void (*clear)(void* to, std::int64_t n);
  std::int64_t lanes;  ///< that a block is dealt out to
};
/// One reduction of one dtype.
struct ReductionKernels {
  RowReduction rows;
  /// n rows of `width` columns, at most kReductionColumns, `stride` elements apart, reduced along the rows.
  void (*columns)(const void* x, std::int64_t n, std::int64_t stride, std::int64_t width, void* out);
  JoinRuns joins;
};
/// A reduction of a level.
struct ReductionTable {
  bool widens;                ///< whether integers and bool are reduced as i64, so that a total has room
  ReductionKernels dtype[4];  ///< f32, f64, i32, i64
};

/// Products of f32 or f64.
template <class T>
struct ProductKernels {
  bool rounds_once;              ///< whether multiply-adds are fused: rounded once (docs/numerics.md, rule 2)
  std::int64_t lanes;            ///< of a packet
  std::int64_t product_columns;  ///< of a thread's share of a product
  /// gemm on one thread; K is not 0.
  void (*product)(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c,
                  std::int64_t ldc, bool add);
  /// Copies B [K, N], K at most kBlockK, for product_of_panels: to K times the whole lines of a row of N elements. Both
  /// are null for f64.
  void (*pack_panels)(std::int64_t N, std::int64_t K, MatrixView<T> b, T* to);
  /// C = A . B for the B of N columns that was packed, at least the first `columns` of them. Rows of A are contiguous;
  /// rows of C have room for whole lines.
  void (*product_of_panels)(std::int64_t M, std::int64_t N, std::int64_t columns, std::int64_t K, const T* a,
                            std::int64_t a_row, const T* panels, T* c, std::int64_t ldc);
  void (*pack_gates)(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                     std::int64_t gate_step, T* to);
  void (*pack_transposed)(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                          std::int64_t block_rows);
  /// c [rows, units] = a . w, plus `bias` where there is one; one gate.
  void (*packed_product)(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias,
                         T* c);
};

/// Memory of a thread for what a product packs: `bytes` that are aligned to 64 bytes, until the next call for the same.
enum class PackedSide : std::uint8_t { rows, panels };
std::byte* product_memory(PackedSide side, std::size_t bytes);

/// The tables of the level in use. Each throws ValueError where there is none (tensor/instruction_set.h).
extern const TableInUse<Conversions> conversions_in_use;
extern const TableInUse<ChainKernels> chains_in_use;
using Reduction = TableInUse<ReductionTable>;
extern const Reduction sum_in_use, prod_in_use, max_in_use, min_in_use;
extern const TableInUse<DrawKernels> draws_in_use;
extern const FloatTablesInUse<ProductKernels> products_in_use;

// ---- what a source of a level defines of them -------------------------------------------------------------

namespace FERRITE_LEVEL {

extern const Conversions conversions;
extern const ChainKernels chain_kernels;
extern const DrawKernels draw_kernels;

// What ProductKernels names.
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
