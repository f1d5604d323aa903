#pragma once
/// Parallel layers: the sum of their outputs, or their outputs joined.
#include <string>
#include <unordered_set>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// The base class of Parallel and Concat: layers, the branches, that all read the same input; the variables of a branch
/// are named "<its name>.<variable>". Causal if all branches are. In a stream, the output of a branch waits for those
/// that look further ahead; PaceError if branches have different strides or give different numbers of steps. Throws
/// ValueError for a context with an initial state: it would be the state of every recurrent layer.
class Branches : public Layer {
 public:
  /// Appends a branch under a name. Throws ValueError for a null layer or an empty or taken name.
  void add(std::string name, std::unique_ptr<Layer> layer);

  /// Returns the number of branches.
  std::size_t size() const { return branches_.size(); }
  /// Returns the i-th branch.
  const Layer& operator[](std::size_t i) const& { return *branches_[i].layer; }
  const Layer& operator[](std::size_t i) const&& = delete;

  bool causal() const override;
  bool streams() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  StepInput step_input() const override;
  /// Returns the pace of the branch that looks ahead furthest.
  Pace pace() const override;
  Tensor lengths_after(const Tensor& lengths) const override;
  /// Returns the states of all branches, named "<branch>.<state>".
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 protected:
  /// Stores `init`. If it has a seed, `add` draws branches that have no seed themselves.
  explicit Branches(Init init = {}) : Layer(std::move(init)) {}
  void clone_into(Branches& to) const;
  /// Combines the outputs of all branches. Throws ShapeError if they do not fit together.
  virtual Tensor together(const Tensors& outputs) const = 0;
  /// Returns the step that combines the outputs of one step; by default a program of `together`.
  virtual std::unique_ptr<Step> joined(std::span<const StepRows> rows) const;

 private:
  struct Branch {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  bool only_chains() const override { return true; }
  void check_any() const;

  std::vector<Branch> branches_;
  std::unordered_set<std::string> names_;
};

/// A layer that gives the sum of all branches, f(x) + g(x) + ..., added from the first branch on. Throws ShapeError if
/// branches give different shapes.
class Parallel final : public Branches {
 public:
  explicit Parallel(Init init = {}) : Branches(std::move(init)) {}
  std::string kind() const override { return "parallel"; }
  std::unique_ptr<Layer> clone() const override;

 private:
  Tensor together(const Tensors& outputs) const override;
  std::unique_ptr<Step> joined(std::span<const StepRows> rows) const override;
};

/// A layer that joins the outputs of all branches in order, along the features of sequences [B, T, D] and vectors [B,
/// D], or the channels of images [B, C, ...]. Throws ShapeError for branches whose other extents differ.
class Concat final : public Branches {
 public:
  explicit Concat(Init init = {}) : Branches(std::move(init)) {}
  std::string kind() const override { return "concat"; }
  StepInput step_input() const override;
  std::unique_ptr<Layer> clone() const override;

 private:
  Tensor together(const Tensors& outputs) const override;
  std::unique_ptr<Step> joined(std::span<const StepRows> rows) const override;
};

}  // namespace ferrite::nn
