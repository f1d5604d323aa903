#pragma once
/// Gradients on their way: joined over the shards of this process, put into buckets, and sent while others are
/// computed.
#include <optional>
#include <vector>

#include "ferrite/distributed/detail/local_tree.h"
#include "ferrite/distributed/detail/rank_operations.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::mpi::detail {

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

}  // namespace ferrite::mpi::detail
