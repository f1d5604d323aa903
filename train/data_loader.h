#pragma once
/// Batches of a data set, epoch by epoch: in random order, sampled by weights, sorted by length, made by threads.
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

namespace detail {
struct EpochOrder;
class BatchMaker;
}  // namespace detail

struct LoaderOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true;     ///< another order in every epoch, from `seed`
  std::uint64_t seed = 0;  ///< of the order, of samples and of augmentation
  bool drop_last = false;  ///< leaves out the last batch of an epoch (of a bucket) where it is smaller
  /// Examples are drawn with replacement, each in proportion to its weight: f32 or f64 [N], at least 0. Undefined: each
  /// once. `balanced_weights` makes classes equally frequent.
  Tensor weights{};
  std::int64_t samples = 0;  ///< examples of an epoch drawn by weights; 0: as many as the set has
  /// Largest lengths of buckets, ascending: a batch holds sequences of one bucket, padded to its largest length. So a
  /// compiled step meets few shapes. Longer sequences than the last are refused.
  std::vector<std::int64_t> bucket_lengths{};
  /// The same with so many buckets of about equal size. 0: no buckets, batches are padded to their longest sequence.
  int buckets = 0;
  int threads = 0;   ///< that make batches in the background; 0: they are made when asked for
  int prefetch = 2;  ///< batches that each thread may be ahead
};

/// Weights of examples for which every class comes equally often: 1 / how many examples have the label of this one.
/// labels i64 or i32 [N], at least 0 -> f64 [N]. Throws ShapeError, DtypeError, ValueError.
Tensor balanced_weights(const Tensor& labels);

/// Where a loader stands.
struct LoaderPosition {
  std::int64_t epoch = 0;  ///< finished ones
  std::int64_t batch = 0;  ///< finished ones of the running epoch

  bool operator==(const LoaderPosition&) const = default;
};

/// The batches of epochs over a data set. What a batch holds depends on the set, the options, the epoch and its number
/// alone: it is the same for any number of threads, and an epoch may begin at any batch, as training that goes on does.
///
///   const train::DataLoader loader(data, {.batch_size = 64, .threads = 2});
///   for (std::int64_t epoch = 0; epoch < 10; ++epoch)
///     for (const train::Batch& b : loader.epoch(epoch)) step(b.x(), b.y());
class DataLoader {
 public:
  /// Throws ValueError for a batch size below 1, negative numbers, weights together with buckets, weights that are
  /// negative, not finite or all 0, and bucket lengths that do not ascend; ShapeError for another number of weights
  /// than examples and a sequence longer than the last bucket.
  explicit DataLoader(Dataset data, const LoaderOptions& options = {});

  const Dataset& data() const { return data_; }
  const LoaderOptions& options() const { return options_; }
  /// Batches and examples of every epoch.
  std::int64_t batches() const { return batches_; }
  std::int64_t samples() const { return samples_; }
  /// The largest lengths of its buckets; empty without.
  const std::vector<std::int64_t>& bucket_lengths() const { return bounds_; }
  /// The examples of batch `i` of an epoch. Throws ShapeError for one that there is not, ValueError for an epoch below
  /// 0.
  std::vector<std::int64_t> examples(std::int64_t epoch, std::int64_t i) const;
  /// Batch `i` of an epoch, made by the calling thread. Throws as `examples`, and what the data set throws.
  Batch batch(std::int64_t epoch, std::int64_t i) const;

  class Epoch;
  /// The batches of an epoch from `first` on, once, in order; made by threads in the background where the options ask
  /// for them. What the data set throws comes with the batch that it belongs to.
  Epoch epoch(std::int64_t epoch, std::int64_t first = 0) const;

 private:
  detail::EpochOrder order_of(std::int64_t epoch) const;
  void cut_buckets();
  void check_weights();

  Dataset data_;
  LoaderOptions options_;
  std::int64_t batches_ = 0, samples_ = 0;
  std::vector<double> cumulative_;                 ///< sums of weights
  std::vector<std::int64_t> bounds_;               ///< largest lengths of buckets
  std::vector<std::vector<std::int64_t>> bucket_;  ///< examples by bucket; one of all without buckets
};

/// The batches of one epoch: an input range.
class DataLoader::Epoch {
 public:
  Epoch(Epoch&&) noexcept;
  Epoch& operator=(Epoch&&) = delete;
  /// Waits for the batches that threads are making.
  ~Epoch();

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    explicit Iterator(Epoch* of) : of_(of) {}
    const Batch& operator*() const;
    const Batch* operator->() const { return &**this; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const;

   private:
    Epoch* of_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }
  /// The number of the batch that comes next.
  std::int64_t at() const;

 private:
  friend class DataLoader;
  explicit Epoch(std::unique_ptr<detail::BatchMaker> maker);
  std::unique_ptr<detail::BatchMaker> maker_;
};

}  // namespace ferrite::train
