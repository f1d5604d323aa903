#pragma once
/// Losses and gradients of one batch by all ranks: each computes its shards, and their sums are joined in one tree.
#include <limits>
#include <memory>
#include <vector>

#include "ferrite/distributed/detail/buckets.h"
#include "ferrite/distributed/detail/shard_view.h"
#include "ferrite/distributed/shard_batch.h"
#include "ferrite/distributed/world.h"

namespace ferrite::mpi::detail {

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
