#pragma once
/// Batches of a data set, epoch by epoch: shuffled, sampled by weights, bucketed by length, made by threads.
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

/// The options of a DataLoader: size and order of the batches, how examples are drawn, buckets, threads.
struct LoaderOptions {
  std::int64_t batch_size = 32;  ///< number of examples in a batch
  bool shuffle = true;           ///< whether every epoch has its own random order, drawn from `seed`
  std::uint64_t seed = 0;        ///< seed of the order, of samples and of augmentation
  bool drop_last = false;        ///< leaves out the last batch of an epoch (or of a bucket) if it is smaller
  /// Weights of the examples, f32 or f64 [N], at least 0: examples are drawn with replacement in proportion to them.
  /// Undefined: every example comes once. `balanced_weights` makes classes equally frequent.
  Tensor weights{};
  std::int64_t samples = 0;  ///< number of examples per epoch when drawn by weights; 0: the size of the set
  /// The largest length of each bucket, ascending. A batch holds sequences of one bucket, padded to its largest length,
  /// so that a compiled step sees few shapes. Sequences longer than the last bucket are refused.
  std::vector<std::int64_t> bucket_lengths{};
  /// Number of buckets of about equal size, with lengths chosen from the data, if `bucket_lengths` is empty. 0: no
  /// buckets; batches are padded to their longest sequence.
  int buckets = 0;
  int threads = 0;   ///< number of threads that make batches in the background; 0: batches are made on demand
  int prefetch = 2;  ///< number of batches that each thread may make ahead of the one that is read
};

/// Returns weights with which every class is drawn equally often: 1 / (number of examples with the same label).
/// labels i64 or i32 [N], at least 0 -> f64 [N]. Throws ShapeError for another rank, DtypeError for another dtype,
/// ValueError for a negative label.
Tensor balanced_weights(const Tensor& labels);

/// Makes the batches of epochs over a data set. A batch depends only on the set, the options, the epoch and its number:
/// it is the same for any number of threads, and an epoch may begin at any batch, as when training resumes.
///
///   const train::DataLoader loader(data, {.batch_size = 64, .threads = 2});
///   for (std::int64_t epoch = 0; epoch < 10; ++epoch)
///     for (const train::Batch& b : loader.epoch(epoch)) step(b.x(), b.y());
class DataLoader {
 public:
  /// Checks the options against the data. Throws ValueError for a batch size or prefetch below 1, other negative
  /// numbers, `samples` without weights, weights together with buckets, weights that are negative, not finite or all
  /// 0, and bucket lengths that do not ascend; DtypeError for weights that are not floats; ShapeError unless there is
  /// one weight per example, and for a sequence longer than the last bucket.
  explicit DataLoader(Dataset data, const LoaderOptions& options = {});

  const Dataset& data() const { return data_; }
  const LoaderOptions& options() const { return options_; }
  /// Returns the number of batches of every epoch.
  std::int64_t batches() const { return batches_; }
  /// Returns the number of examples of every epoch.
  std::int64_t samples() const { return samples_; }
  /// Returns the largest length of each bucket; empty without buckets.
  const std::vector<std::int64_t>& bucket_lengths() const { return bounds_; }
  /// Returns the numbers of the examples in batch `i` of an epoch. Throws ShapeError for a batch that does not exist,
  /// ValueError for an epoch below 0.
  std::vector<std::int64_t> examples(std::int64_t epoch, std::int64_t i) const;
  /// Makes batch `i` of an epoch on the calling thread. Throws what `examples` and the data set throw.
  Batch batch(std::int64_t epoch, std::int64_t i) const;

  class Epoch;
  /// Returns the batches of an epoch from `first` on, once and in order, made in the background if the options ask for
  /// threads. An exception of the data set is thrown when its batch is read. Throws ShapeError unless
  /// 0 <= first <= batches(), ValueError for an epoch below 0.
  Epoch epoch(std::int64_t epoch, std::int64_t first = 0) const;

 private:
  detail::EpochOrder order_of(std::int64_t epoch) const;
  void cut_buckets();
  void check_weights();

  Dataset data_;
  LoaderOptions options_;
  std::int64_t batches_ = 0, samples_ = 0;
  std::vector<double> cumulative_;                 ///< cumulative sums of the weights
  std::vector<std::int64_t> bounds_;               ///< largest length of each bucket
  std::vector<std::vector<std::int64_t>> bucket_;  ///< examples of each bucket; without buckets one with all
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
  /// Returns the number of the current batch in the epoch, counted from 0; after the last batch, batches().
  std::int64_t at() const;

 private:
  friend class DataLoader;
  explicit Epoch(std::unique_ptr<detail::BatchMaker> maker);
  std::unique_ptr<detail::BatchMaker> maker_;
};

}  // namespace ferrite::train
