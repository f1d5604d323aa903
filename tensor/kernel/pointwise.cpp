/// Evaluates pointwise operations of broadcast, strided operands.
#include <algorithm>
#include <array>
#include <cstring>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {
namespace detail {
namespace {

/// Returns the kernel of a pointwise operation.
Block block_of(const Primitive& op, Dtype operands) {
  const Blocks& blocks = op.own_blocks ? *op.own_blocks : op.blocks->get();
  return blocks.of[static_cast<int>(operands)];
}

constexpr std::size_t kMostOperands = Literals::kMost;
constexpr std::int64_t kTile = 1024;       ///< elements of a gathered run: stays in the first cache
constexpr std::int64_t kGatheredRow = 16;  ///< shorter rows are gathered whole, not row by row
constexpr std::int64_t kShare = 1 << 15;   ///< elements of one thread's share
constexpr std::int64_t kLine = 64;         ///< bytes of a packet, at most

/// A value repeated over one line of 64 bytes.
struct alignas(64) Repeated {
  std::byte bytes[kLine];
};

[[gnu::always_inline]] inline void repeat(Repeated& to, const std::byte* value, std::int64_t element_bytes) {
  for (std::int64_t at = 0; at < kLine; at += element_bytes)
    std::memcpy(to.bytes + at, value, static_cast<std::size_t>(element_bytes));
}

void repeat_literal(Repeated& to, const Scalar& s, Dtype dtype) {
  visit_computed(dtype, [&](auto zero) {
    const auto v = s.as<decltype(zero)>();
    std::byte bytes[sizeof v];
    std::memcpy(bytes, &v, sizeof v);
    repeat(to, bytes, sizeof v);
  });
}

/// One operand of an evaluation: a literal (no tensor) or a strided tensor.
struct Argument {
  const Tensor* tensor = nullptr;
  std::int64_t bytes = 0;  ///< size of an element
  Repeated repeated;
};

std::int64_t to_lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

/// Returns whether whole lines may be read from `from` up to n elements without leaving the storage.
bool padded(const Tensor& x, const std::byte* from, std::int64_t n, std::int64_t bytes) {
  Storage* s = x.impl()->storage;
  const std::int64_t at = from - s->data();
  return at + to_lines(n * bytes) <= static_cast<std::int64_t>(s->capacity);
}

class Evaluation {
 public:
  Evaluation(const Primitive& op, Inputs in, Tensor& out, const Attrs& attrs) : out_(out) {
    count_ = static_cast<std::size_t>(op.arity);
    std::size_t input = 0;
    Dtype key = out.dtype();
    if (key == Dtype::boolean && in.size()) key = in[0].dtype();
    block_ = block_of(op, key);
    const bool literals = in.size() < count_;
    for (std::size_t j = 0; j < count_; ++j) {
      Argument& a = arguments_[j];
      if (const Scalar* literal = literals ? literal_of(attrs, j) : nullptr) {
        a.bytes = size_of(key);
        repeat_literal(a.repeated, *literal, key);
        continue;
      }
      a.tensor = &in[input++];
      a.bytes = size_of(a.tensor->dtype());
      if (a.tensor->numel() == 1 && out.numel() != 1) {
        repeat(a.repeated, a.tensor->raw(), a.bytes);
        a.tensor = nullptr;
      }
    }
    out_bytes_ = size_of(out.dtype());
  }

  void run() {
    const std::int64_t n = out_.numel();
    if (n == 0) return;
    if (flat(n)) return run_flat(n);
    run_rows();
  }

 private:
  /// Returns whether every tensor has the elements of the result in the same order, padded to whole lines.
  bool flat(std::int64_t n) const {
    for (std::size_t j = 0; j < count_; ++j) {
      const Tensor* x = arguments_[j].tensor;
      if (!x) continue;
      if (!x->contiguous() || x->numel() != n || !padded(*x, x->raw(), n, arguments_[j].bytes)) return false;
    }
    return true;
  }

  void run_flat(std::int64_t n) {
    const void* in[kMostOperands];
    std::ptrdiff_t step[kMostOperands];
    for (std::size_t j = 0; j < count_; ++j) {
      const Argument& a = arguments_[j];
      in[j] = a.tensor ? static_cast<const void*>(a.tensor->raw()) : a.repeated.bytes;
      step[j] = a.tensor ? 1 : 0;
    }
    std::byte* out = Writer::raw(out_);
    if (n < 2 * kShare) return block_(in, step, out, n);
    parallel_for((n + kShare - 1) / kShare, [&](std::int64_t c) {
      const std::int64_t at = c * kShare;
      const void* part[kMostOperands];
      for (std::size_t j = 0; j < count_; ++j)
        part[j] = static_cast<const std::byte*>(in[j]) + at * step[j] * arguments_[j].bytes;
      block_(part, step, out + at * out_bytes_, std::min(kShare, n - at));
    });
  }

  void run_rows() {
    Walk<kMostOperands + 1> walk = merged();
    const int rank = walk.shape.rank();
    if (rank && walk.shape[rank - 1] < kGatheredRow && walk.shape.numel() > kGatheredRow) {
      materialize();
      walk = merged();
    }
    walk.rows([&](const std::int64_t* at, std::int64_t n, const std::int64_t* step) { run_row(at, n, step); });
  }

  Walk<kMostOperands + 1> merged() const {
    Walk<kMostOperands + 1> walk;
    const Shape& shape = out_.shape();
    Shape strides[kMostOperands];
    for (std::size_t j = 0; j < count_; ++j)
      if (const Tensor* x = arguments_[j].tensor) strides[j] = broadcast_strides(x->shape(), x->strides(), shape);
    for (int i = 0; i < shape.rank(); ++i) {
      std::int64_t step[kMostOperands + 1] = {out_.strides()[i]};
      for (std::size_t j = 0; j < count_; ++j) step[j + 1] = arguments_[j].tensor ? strides[j][i] : 0;
      walk.push(shape[i], step);
    }
    return walk;
  }

  /// Copies every tensor to the shape and order of the result, for rows too short to be worth a call each.
  void materialize() {
    const Shape& shape = out_.shape();
    for (std::size_t j = 0; j < count_; ++j) {
      Argument& a = arguments_[j];
      if (!a.tensor) continue;
      Tensor copy = Tensor::empty({shape, a.tensor->dtype()});
      copy_strided(Writer::raw(copy), copy.strides(), a.tensor->raw(),
                   broadcast_strides(a.tensor->shape(), a.tensor->strides(), shape), shape, a.bytes);
      copies_[j] = std::move(copy);
      a.tensor = &copies_[j];
    }
  }

  void run_row(const std::int64_t* at, std::int64_t n, const std::int64_t* step) {
    for (std::int64_t c = 0; c < n; c += kTile) {
      const std::int64_t m = std::min(kTile, n - c);
      run_tile(at, step, c, m);
    }
  }

  void run_tile(const std::int64_t* at, const std::int64_t* step, std::int64_t c, std::int64_t m) {
    alignas(64) std::byte gathered[kMostOperands][kTile * 8];
    Repeated repeated[kMostOperands];
    const void* in[kMostOperands];
    std::ptrdiff_t packet_step[kMostOperands];
    for (std::size_t j = 0; j < count_; ++j) {
      const Argument& a = arguments_[j];
      packet_step[j] = 0;
      in[j] = a.repeated.bytes;
      if (!a.tensor) continue;
      const std::byte* from = a.tensor->raw() + (at[j + 1] + c * step[j + 1]) * a.bytes;
      if (step[j + 1] == 0) {
        repeat(repeated[j], from, a.bytes);
        in[j] = repeated[j].bytes;
        continue;
      }
      packet_step[j] = 1;
      in[j] = from;
      if (step[j + 1] == 1 && padded(*a.tensor, from, m, a.bytes)) continue;
      copy_strided(gathered[j], {1}, from, {step[j + 1]}, {m}, a.bytes);
      in[j] = gathered[j];
    }
    // Whole packets may extend beyond the end of the row: what they overwrite is written afterwards, or is padding.
    block_(in, packet_step, Writer::raw(out_) + (at[0] + c) * out_bytes_, m);
  }

  Tensor& out_;
  Block block_ = nullptr;
  std::int64_t out_bytes_ = 0;
  std::size_t count_ = 0;
  Argument arguments_[kMostOperands];
  Tensor copies_[kMostOperands];
};

/// Evaluates the common case with little overhead: few elements, no literals, every operand in the order of the result.
bool eval_small(const Primitive& op, Inputs in, Tensor& out) {
  const TensorImpl& to = *out.impl();
  if (static_cast<int>(in.size()) != op.arity) return false;
  const std::int64_t n = to.shape.numel();
  if (n >= 2 * kShare || n == 0) return false;
  const void* from[kMostOperands];
  const std::ptrdiff_t step[kMostOperands] = {1, 1, 1};
  for (std::size_t j = 0; j < in.size(); ++j) {
    const Tensor& x = in[j];
    if (!x.impl()->contiguous || x.impl()->shape.numel() != n) return false;
    const std::byte* p = x.raw();
    if (!padded(x, p, n, size_of(x.dtype()))) return false;
    from[j] = p;
  }
  const Dtype key = to.dtype == Dtype::boolean ? in[0].dtype() : to.dtype;
  block_of(op, key)(from, step, Writer::raw(out), n);
  return true;
}

}  // namespace

void eval_pointwise(const Primitive& op, Inputs in, Tensor& out, const Attrs& attrs) {
  if (!eval_small(op, in, out)) Evaluation(op, in, out, attrs).run();
}

}  // namespace detail

detail::Block Primitive::block(Dtype operands) const {
  return is_pointwise() ? detail::block_of(*this, operands) : nullptr;
}

}  // namespace ferrite
