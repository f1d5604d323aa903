#pragma once
/// Losses and gradients of one batch by all ranks: each computes its shards, and their sums are joined in one tree.
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

// ---- buckets of gradients ------------------------------------------------------------------------------

/// Parameters of one dtype whose gradients travel together.
struct Bucket {
  std::vector<std::size_t> parameters;
  std::int64_t numel = 0;
};

/// Buckets of about so many bytes, in the order of the list.
std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& order,
                               std::int64_t bytes);

/// The gradients of one step.
class Gradients {
 public:
  Gradients(const std::vector<Parameter>& parameters, const Route& route, const Tree& tree, const Leaves& own);

  /// Which gradients travel how, and which have been known to arrive (empty: not known yet); before the first arrives.
  void plan(const std::vector<Bucket>& buckets, const std::vector<char>& known);
  /// The gradient of a parameter in a shard of this process is final. Throws ValueError for one in no bucket, and for
  /// one that is known not to arrive.
  void arrived(int shard, std::size_t parameter, const Tensor& gradient);
  /// All that have not arrived of a shard are zeros.
  void fill(int shard);
  /// Which parameters had a gradient in a shard of this process.
  const std::vector<char>& reached() const { return reached_; }
  /// The joined gradients divided by the count (f64, rank 0); undefined for parameters that are not among the known
  /// ones.
  Tensors finish(const Tensor& count, const std::vector<char>& known);

  std::int64_t sent_early() const { return early_; }

 private:
  void give(int shard, std::size_t parameter, const Tensor& gradient);
  void send_complete();

  const std::vector<Parameter>& parameters_;
  Route route_;
  const std::vector<Bucket>* buckets_ = nullptr;
  const std::vector<char>* known_ = nullptr;
  std::vector<char> reached_;           ///< by parameter
  std::vector<LocalTree> trees_;        ///< by parameter
  std::vector<std::size_t> bucket_of_;  ///< by parameter; none: the number of buckets
  std::vector<std::size_t> missing_;    ///< by bucket: parameters that are not complete
  std::size_t missing_in_all_ = 0;
  std::vector<Sent> sent_;
  std::vector<Tensor> alone_;  ///< by parameter, where there is one rank
  std::int64_t early_ = 0;     ///< buckets that left before the last gradient was there
};

// ---- variables as one shard sees them ------------------------------------------------------------------

/// The variables of a model that its calls may write, and its parameters, each with its place.
struct KnownVariables {
  std::vector<Variable> written;  ///< buffers and states
  std::vector<char> counts;       ///< whether it is a counter: i64 states of rank 0
  std::unordered_map<const void*, std::size_t> place, parameter;

  void add(const Variable& v);
};

/// A recorder that gives one shard variables of its own: all shards begin with the values before the step, and counters
/// of draws are so far apart that no two shards see the same draws. A parameter that a tape watches passes a hook.
class ShardView final : public Recorder {
 public:
  using Arrived = std::function<void(std::size_t parameter, const Tensor& gradient)>;
  ShardView(const KnownVariables& known, const Tensors& start, Arrived arrived);

  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable& variable, const Tensor& value) override;

  /// Parameters in the order in which they were first read.
  const std::vector<std::size_t>& order() const { return order_; }
  const Tensors& values() const { return values_; }
  bool wrote(std::size_t i) const { return wrote_[i] != 0; }

 private:
  const KnownVariables& known_;
  Tensors values_;  ///< as `known.written`
  std::vector<char> wrote_;
  Arrived arrived_;
  std::unordered_map<std::size_t, Tensor> hooked_;
  std::vector<std::size_t> order_;
};

// ---- the step ------------------------------------------------------------------------------------------

struct JointOptions {
  const char* who = "";  ///< what errors call it
  int shards = 1;
  std::int64_t bucket_bytes = 1;
  std::vector<Variable> variables{};  ///< besides the model's, that shards write
};

class JointStep {
 public:
  /// Every rank then has rank 0's parameters, buffers and states. Throws ValueError for options out of range, ranks
  /// that do not divide the shards, and ranks with different models.
  JointStep(const World& world, const nn::Module& model, const std::vector<Parameter>& trained,
            const JointOptions& options);

  /// Of all shards.
  struct Joined {
    Tensor loss, count;        ///< sums, f64, rank 0
    Tensors gradients;         ///< of loss / count, by parameter; undefined where no shard's loss depends on it
    Dtype dtype = Dtype::f32;  ///< of the losses
  };
  struct Asked {
    bool gradients = true;
    double least_count = std::numeric_limits<double>::min();  ///< throws ValueError below; by default unless positive
  };
  /// The rows of this rank's shards of a batch of so many. Buffers and states afterwards are those behind the step.
  Joined run(const OwnRows& batch, const ShardFunction& f, const Asked& asked);
  /// Cuts out this rank's rows. Throws ShapeError for tensors of different numbers of rows.
  OwnRows cut(const Tensors& batch) const;
  Rows own_rows(std::int64_t rows) const;

  const World& world() const { return world_; }
  int shards() const { return options_.shards; }
  std::int64_t buckets() const { return static_cast<std::int64_t>(buckets_.size()); }
  std::int64_t sent_early() const { return sent_early_; }
  /// Whether the last run ended because of its count, which all ranks refuse together.
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
  const std::vector<Parameter> parameters_;  ///< those that are trained
  const JointOptions options_;
  Tree tree_;
  Leaves own_;
  KnownVariables known_;
  Route gradients_, sums_, maxima_;
  bool agreed_ = false;
  bool refused_count_ = false;
  std::vector<Bucket> buckets_;
  std::vector<char> reached_;  ///< by parameter, behind the first step: whether any shard's loss depends on it
  std::int64_t sent_early_ = 0;
};

}  // namespace ferrite::mpi::detail
