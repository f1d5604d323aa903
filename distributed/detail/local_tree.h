#pragma once
/// The part of the tree that one process holds: leaves arrive in any order, sums are taken in the tree's.
#include <functional>
#include <utility>
#include <vector>

#include "ferrite/distributed/detail/tree.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::mpi::detail {

/// Joins the tensors of consecutive leaves as soon as it can: it holds as many as the tree is deep.
class LocalTree {
 public:
  using JoinTensors = Tensor (*)(const Tensor&, const Tensor&);
  LocalTree(const Tree& tree, const Leaves& own, JoinTensors join)
      : tree_(tree), own_(own), join_(join), held_(static_cast<std::size_t>(own.size())) {}

  /// The tensor of leaf own.begin + i; each is given once.
  void give(int i, Tensor x) {
    held_[static_cast<std::size_t>(i)] = std::move(x);
    while (next_ < held_.size() && held_[next_].defined()) {
      const int leaf = own_.begin + static_cast<int>(next_);
      nodes_.emplace_back(Leaves{leaf, leaf + 1}, std::exchange(held_[next_++], Tensor()));
      while (nodes_.size() > 1 && tree_.are_halves(nodes_[nodes_.size() - 2].first, nodes_.back().first)) {
        const auto right = std::move(nodes_.back());
        nodes_.pop_back();
        auto& [leaves, left] = nodes_.back();
        leaves.end = right.first.end;
        left = join_(left, right.second);
      }
    }
  }
  bool has(int i) const { return static_cast<std::size_t>(i) < next_ || held_[static_cast<std::size_t>(i)].defined(); }
  bool complete() const { return next_ == held_.size(); }
  /// The largest nodes, from left to right; complete.
  Tensors take() {
    Tensors all;
    for (auto& [leaves, x] : nodes_) all.push_back(std::move(x));
    nodes_.clear();
    return all;
  }

 private:
  Tree tree_;
  Leaves own_;
  JoinTensors join_;
  std::vector<Tensor> held_;  ///< arrived before a leaf to its left
  std::size_t next_ = 0;      ///< the first leaf that is not in a node
  std::vector<std::pair<Leaves, Tensor>> nodes_;
};

}  // namespace ferrite::mpi::detail
