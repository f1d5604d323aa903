#pragma once
/// Programs of several steps of a stream at once.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// The sizes of what is copied between a step and its programs.
struct Transfer {
  std::vector<std::int64_t> x{};  ///< bytes of an input in one step
  std::int64_t y = 0;             ///< and of the result
};

/// Runs a program of n steps on the caller's rows from step `first` on: x [n, B, D] of every input -> y [n, B, N].
inline void run_program(ferrite::detail::OpenScan& scan, std::int64_t n, Step::Inputs x, std::int64_t first, void* y,
                        const Transfer& bytes) {
  for (std::size_t k = 0; k < bytes.x.size(); ++k)
    std::copy_n(static_cast<const std::byte*>(x[k]) + first * bytes.x[k], n * bytes.x[k], scan.x(k));
  scan.run();
  std::copy_n(scan.y(0), n * bytes.y, static_cast<std::byte*>(y) + first * bytes.y);
}

/// An open scan that is copied with what holds it.
class HeldScan {
 public:
  HeldScan() = default;
  explicit HeldScan(std::unique_ptr<ferrite::detail::OpenScan> scan) : scan_(std::move(scan)) {}
  HeldScan(HeldScan&&) = default;
  HeldScan& operator=(HeldScan&&) = default;
  HeldScan(const HeldScan& o) : scan_(o.scan_ ? std::make_unique<ferrite::detail::OpenScan>(*o.scan_) : nullptr) {}
  HeldScan& operator=(const HeldScan&) = delete;
  ferrite::detail::OpenScan& operator*() const { return *scan_; }
  ferrite::detail::OpenScan* operator->() const { return scan_.get(); }

 private:
  std::unique_ptr<ferrite::detail::OpenScan> scan_;
};

/// Programs that compute several steps at once. Between blocks, the program of one step holds the states.
class BlockScans {
 public:
  /// Plans blocks of up to `most` steps with `open(n)`, the program of n steps; `carried` are the bytes of each state.
  void open(std::int64_t most, std::vector<std::int64_t> carried, const std::function<HeldScan(std::int64_t)>& open) {
    carried_ = std::move(carried);
    for (const std::int64_t steps : {64, 16})
      if (steps <= most) blocks_.push_back({steps, open(steps)});
  }
  bool empty() const { return blocks_.empty(); }
  void refresh() {
    for (const Block& b : blocks_) b.scan->refresh();
  }
  /// Runs n steps: by the longest blocks that fit, and the rest by `one`.
  void run(std::int64_t n, Step::Inputs x, void* y, const Transfer& bytes, ferrite::detail::OpenScan& one) {
    std::int64_t at = 0;
    for (const Block& b : blocks_)
      for (; n - at >= b.steps; at += b.steps) {
        move(one, *b.scan);
        run_program(*b.scan, b.steps, x, at, y, bytes);
        b.scan->commit();
        move(*b.scan, one);
      }
    for (; at < n; ++at) {
      run_program(one, 1, x, at, y, bytes);
      one.commit();
    }
  }

 private:
  struct Block {
    std::int64_t steps;
    HeldScan scan;
  };
  void move(const ferrite::detail::OpenScan& from, ferrite::detail::OpenScan& to) const {
    for (std::size_t k = 0; k < carried_.size(); ++k) std::copy_n(from.carry(k), carried_[k], to.carry(k));
  }

  std::vector<Block> blocks_;  ///< the longest first
  std::vector<std::int64_t> carried_;
};

}  // namespace ferrite::nn::detail
