#pragma once
/// A scan's body made ready to run: what runs once, for a chunk of steps, and in each step; and its sums, added term by
/// term in an order that does not depend on how many steps are computed at a time.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <variant>

#include "ferrite/compile/plan/body.h"
#include "ferrite/compile/scan_stages.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/profiled.h"

namespace ferrite::detail {

// ---- sums -------------------------------------------------------------------------------------------------

/// Sums over rows that are added a few at a time: total [A, B] = sum of a_i^T b_i over rows a_i [A], b_i [B]; without
/// a, total [B] = sum of b_i. Rows are added in order and in blocks of 256 (docs/numerics.md, rule 6), so the bits do
/// not depend on how many come at a time.
template <class T>
class RowSums {
 public:
  RowSums(std::int64_t a_width, std::int64_t b_width)
      : A_(a_width),
        B_(b_width),
        a_(kBlockK * a_width),
        b_(a_width ? kBlockK * b_width : 0),
        partial_(a_width ? 0 : b_width),
        total_(std::max<std::int64_t>(a_width, 1) * b_width) {}

  void add(const T* a, const T* b, std::int64_t rows) {
    while (rows > 0) {
      const std::int64_t n = std::min(rows, kBlockK - waiting_);
      if (A_) {
        std::copy_n(a, n * A_, a_.get() + waiting_ * A_);
        std::copy_n(b, n * B_, b_.get() + waiting_ * B_);
        a += n * A_;
      } else {
        for (std::int64_t i = 0; i < n; ++i) add_row(b + i * B_, waiting_ + i == 0);
      }
      b += n * B_;
      rows -= n;
      waiting_ += n;
      if (waiting_ == kBlockK) flush();
    }
  }

  /// Adds the total to `to`.
  void give(T* to) {
    if (waiting_) flush();
    if (!first_) add_to(to, total_.get(), std::max<std::int64_t>(A_, 1) * B_);
  }

 private:
  static void add_to(T* to, const T* more, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += more[i];
  }
  /// Adds a row; `begins` is set for the first row of a block.
  void add_row(const T* b, bool begins) {
    T* const block = first_ ? total_.get() : partial_.get();
    if (begins) {
      std::copy_n(b, B_, block);
    } else {
      add_to(block, b, B_);
    }
  }
  void flush() {
    if (A_) {
      gemm<T>(A_, B_, waiting_, {a_.get(), 1, A_}, {b_.get(), B_, 1}, total_.get(), B_, !first_);
    } else if (!first_) {
      add_to(total_.get(), partial_.get(), B_);
    }
    first_ = false;
    waiting_ = 0;
  }

  std::int64_t A_, B_;
  Room<T> a_, b_, partial_, total_;
  std::int64_t waiting_ = 0;
  bool first_ = true;
};

/// All sums of a scan.
class ScanSums {
 public:
  explicit ScanSums(const std::vector<ScanTerm>& terms) : terms_(terms) {
    for (const ScanTerm& t : terms) {
      if (t.dtype == Dtype::f32) {
        sums_.emplace_back(std::in_place_type<RowSums<float>>, t.a_width, t.b_width);
      } else {
        sums_.emplace_back(std::in_place_type<RowSums<double>>, t.a_width, t.b_width);
      }
    }
  }

  /// Adds rows of the k-th term.
  void add(std::size_t k, const std::byte* a, const std::byte* b, std::int64_t rows) {
    std::visit(
        [&]<class T>(RowSums<T>& s) { s.add(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), rows); },
        sums_[k]);
  }

  /// Ends the sums and writes them to the tensors `to`.
  void give(std::span<Tensor> to) {
    if (to.empty()) return;
    const ProfileEvent event("sums", Scope());
    for (Tensor& t : to) std::memset(Writer::raw(t), 0, static_cast<std::size_t>(t.numel() * size_of(t.dtype())));
    for (std::size_t k = 0; k < terms_.size(); ++k)
      std::visit([&]<class T>(RowSums<T>& s) { s.give(Writer::data<T>(to[terms_[k].sum])); }, sums_[k]);
  }

 private:
  const std::vector<ScanTerm>& terms_;
  InlineVector<std::variant<RowSums<float>, RowSums<double>>, 8> sums_;
};

// ---- running ----------------------------------------------------------------------------------------------

/// A product of a step with weights that are the same in all steps.
struct PackableProduct {
  std::size_t call;  ///< index in the step's plan
  ScanPlace weights;
  Shape shape, strides;
  std::int64_t offset;  ///< of the matrix in its tensor, in elements
  std::int64_t rows;
};
/// Returns the products of a step whose weights can be packed once for all steps.
std::vector<PackableProduct> packable_products(const PlanBody& step, const ScanStage& stage);

/// Returns a tensor whose elements change from step to step, so that nothing stored in it may be packed.
inline Tensor rewritten_tensor(const Spec& s) {
  Tensor t = Tensor::empty(s);
  t.impl()->storage->rewritten = true;
  return t;
}

/// Runs the stage that runs once and returns its results, by the indices of their places. `at` returns the tensor of a
/// place.
template <class At>
InlineVector<Tensor, 16> run_once(const PlanBody& plan, const ScanStage& stage, const At& at) {
  const Borrowed w(plan);
  for (std::size_t i = 0; i < stage.in.size(); ++i) w->arguments[i] = &at(stage.in[i]);
  w->run(false);
  InlineVector<Tensor, 16> computed(stage.out.size());
  for (std::size_t i = 0; i < stage.out.size(); ++i) computed[stage.out[i].index] = w->results[plan.ends.of[i]];
  return computed;
}

/// A scan's body made ready to run: planned once, then run step by step without shape rules, searches or allocations.
/// Immutable except for plans of further chunk lengths; several threads may run it at once.
class ScanProgram {
 public:
  explicit ScanProgram(const ScanBody& body);
  ~ScanProgram();

  /// Runs all steps. Outputs are fresh, row-major tensors.
  void run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse) const;
  /// Runs some of the steps: instead of filling outputs with the sums, adds their terms to `sums`.
  void run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse, ScanSums& sums) const;
  const ScanParts& parts() const { return parts_; }
  /// Returns the number of steps that `before` and `after` compute at once.
  std::int64_t chunk() const { return chunk_; }
  const PlanReport& step_report() const { return step_->report; }

 private:
  friend class ScanRun;
  struct ChunkPlans {
    std::unique_ptr<const PlanBody> before, after;
  };
  const ChunkPlans& plans(std::int64_t steps) const;

  const ScanBody& body_;
  std::int64_t chunk_;
  ScanParts parts_;
  std::unique_ptr<const PlanBody> once_, step_;
  std::vector<PackableProduct> packable_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, ChunkPlans> plans_;
};

}  // namespace ferrite::detail
