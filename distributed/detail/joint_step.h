#pragma once
/// Loss and gradients of one batch on all ranks: each computes its shards, and their sums are joined in one tree.
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ferrite/distributed/data_parallel.h"
#include "ferrite/distributed/detail/link.h"
#include "ferrite/distributed/detail/tree.h"
#include "ferrite/distributed/world.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

// ---- nodes of this rank --------------------------------------------------------------------------------

namespace ferrite::mpi::detail {

/// Joins the tensors of consecutive leaves as soon as it can, so that it holds about as many as the tree is deep.
class LocalTree {
 public:
  using JoinTensors = Tensor (*)(const Tensor&, const Tensor&);
  LocalTree(const Tree& tree, const Leaves& own, JoinTensors join)
      : tree_(tree), own_(own), join_(join), held_(static_cast<std::size_t>(own.size())) {}

  /// Adds the tensor of leaf own.begin + i, once for each leaf.
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
  /// Removes and returns the tensors of the largest nodes, from left to right, when all leaves were added.
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
  std::vector<Tensor> held_;  ///< tensors that arrived before one of a leaf to their left
  std::size_t next_ = 0;      ///< first leaf that is not in a node
  std::vector<std::pair<Leaves, Tensor>> nodes_;
};

// ---- buckets of gradients ------------------------------------------------------------------------------

/// Parameters of one dtype whose gradients travel together.
struct Bucket {
  std::vector<std::size_t> parameters;
  std::int64_t numel = 0;
};

/// Returns buckets of about `bytes` bytes for the parameters listed in `order`.
std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& order,
                               std::int64_t bytes);

/// Collects, joins and sends the gradients of one step.
class Gradients {
 public:
  Gradients(const std::vector<Parameter>& parameters, const Route& route, const Tree& tree, const Leaves& own);

  /// Sets the buckets and, for each parameter, whether its gradient is known to arrive (empty: not known yet). Called
  /// before the first gradient arrives.
  void plan(const std::vector<Bucket>& buckets, const std::vector<char>& known);
  /// Takes the final gradient of a parameter in a shard of this process. Throws ValueError for a parameter that is in
  /// no bucket or known to have no gradient.
  void arrived(int shard, std::size_t parameter, const Tensor& gradient);
  /// Takes zeros for all gradients of a shard that have not arrived.
  void fill(int shard);
  /// Returns, for each parameter, whether it had a gradient in a shard of this process.
  const std::vector<char>& reached() const { return reached_; }
  /// Returns the joined gradients divided by the count (f64, rank 0); undefined for parameters that are not `known`.
  Tensors finish(const Tensor& count, const std::vector<char>& known);

  std::int64_t sent_early() const { return early_; }

 private:
  void give(int shard, std::size_t parameter, const Tensor& gradient);
  void send_complete();

  const std::vector<Parameter>& parameters_;
  Route route_;
  const std::vector<Bucket>* buckets_ = nullptr;
  const std::vector<char>* known_ = nullptr;
  std::vector<char> reached_;           ///< for each parameter, whether a gradient arrived
  std::vector<LocalTree> trees_;        ///< tree of each parameter
  std::vector<std::size_t> bucket_of_;  ///< bucket of each parameter; the number of buckets if it has none
  std::vector<std::size_t> missing_;    ///< number of parameters of each bucket that are not complete
  std::size_t missing_in_all_ = 0;
  std::vector<Sent> sent_;
  std::vector<Tensor> alone_;  ///< joined gradient of each parameter, with one rank
  std::int64_t early_ = 0;     ///< number of buckets sent before the last gradient arrived
};

// ---- variables as one shard sees them ------------------------------------------------------------------

/// The variables of a model that its calls may write, and its parameters, each with its place in its list.
struct KnownVariables {
  std::vector<Variable> written;  ///< buffers and states of the model, and variables of the options
  std::vector<char> counts;       ///< for each of `written`, whether it is a counter: an i64 state of rank 0
  std::unordered_map<const void*, std::size_t> place, parameter;

  void add(const Variable& v);
};

/// A recorder that gives one shard its own variables. All shards begin with the values before the step, and counters of
/// draws are so far apart that no two shards see the same draws. A parameter that a tape watches passes through a hook.
class ShardView final : public Recorder {
 public:
  using Arrived = std::function<void(std::size_t parameter, const Tensor& gradient)>;
  ShardView(const KnownVariables& known, const Tensors& start, Arrived arrived);

  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable& variable, const Tensor& value) override;

  /// Returns the parameters in the order in which they were first read.
  const std::vector<std::size_t>& order() const { return order_; }
  const Tensors& values() const { return values_; }
  bool wrote(std::size_t i) const { return wrote_[i] != 0; }

 private:
  const KnownVariables& known_;
  Tensors values_;  ///< value of each of `known.written`
  std::vector<char> wrote_;
  Arrived arrived_;
  std::unordered_map<std::size_t, Tensor> hooked_;
  std::vector<std::size_t> order_;
};

// ---- the step ------------------------------------------------------------------------------------------

struct JointOptions {
  const char* who = "";  ///< name of the caller in errors
  int shards = 1;
  std::int64_t bucket_bytes = 1;
  std::vector<Variable> variables{};  ///< variables outside the model that shards write
};

class JointStep {
 public:
  /// Copies rank 0's parameters, buffers and states to every rank. Throws ValueError for options out of range, ranks
  /// that do not divide the shards, and ranks with different models.
  JointStep(const World& world, const nn::Module& model, const std::vector<Parameter>& trained,
            const JointOptions& options);

  /// The joined results of all shards.
  struct Joined {
    Tensor loss, count;        ///< sums over all shards, f64, rank 0
    Tensors gradients;         ///< gradients of loss / count; undefined for parameters on which no loss depends
    Dtype dtype = Dtype::f32;  ///< dtype of the losses
  };
  struct Asked {
    bool gradients = true;
    double least_count = std::numeric_limits<double>::min();  ///< least count without ValueError; default: positive
  };
  /// Computes this rank's shards of a batch and joins them with the others'. Buffers and states afterwards have their
  /// values after the step.
  Joined run(const OwnRows& batch, const ShardFunction& f, const Asked& asked);
  /// Returns this rank's rows of a whole batch. Throws ShapeError for tensors of different numbers of rows.
  OwnRows cut(const Tensors& batch) const;
  Rows own_rows(std::int64_t rows) const;

  const World& world() const { return world_; }
  int shards() const { return options_.shards; }
  std::int64_t buckets() const { return static_cast<std::int64_t>(buckets_.size()); }
  std::int64_t sent_early() const { return sent_early_; }
  /// Returns whether the last run threw because of its count, which all ranks do together.
  bool refused_count() const { return refused_count_; }

 private:
  class Shards;
  void agree_on_buckets(const std::vector<std::size_t>& order);
  void agree_on_reached(const Gradients& collected);
  void assign_variables(const std::vector<std::size_t>& written, const Tensor& sum, const Tensor& most,
                        std::int64_t shards);
  Tensors start_of(const Tensors& values, int shard) const;
  Tensor tail_of(const Tensors& values, const std::vector<std::size_t>& written, bool floats, int shard) const;

  const World& world_;
  const std::vector<Parameter> parameters_;  ///< parameters that are trained
  const JointOptions options_;
  Tree tree_;
  Leaves own_;
  KnownVariables known_;
  Route gradients_, sums_, maxima_;
  bool agreed_ = false;
  bool refused_count_ = false;
  std::vector<Bucket> buckets_;
  std::vector<char> reached_;  ///< for each parameter, after the first step, whether any shard's loss depends on it
  std::int64_t sent_early_ = 0;
};

}  // namespace ferrite::mpi::detail
