#pragma once
/// The order of an epoch, and who makes its batches.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// The examples of an epoch, and which of them are a batch.
struct EpochOrder {
  struct Part {
    std::int64_t begin = 0, end = 0;  ///< in `examples`
    std::int64_t length = 0;          ///< sequences are padded to it at least
  };
  std::vector<std::int64_t> examples;
  std::vector<Part> parts;

  /// Batches of the examples from `begin` to `end`.
  void cut(std::int64_t begin, std::int64_t end, std::int64_t size, bool drop_last, std::int64_t length);
  /// Throws ShapeError for a batch that there is not.
  const Part& part(std::int64_t i) const;
  std::span<const std::int64_t> examples_of(std::int64_t i) const;
};

/// Batch `i`; `key` is that of the first example of the epoch.
Batch make_batch(const Dataset& data, const EpochOrder& order, const ExampleKey& key, std::int64_t i);

/// Makes the batches of an epoch from `first` on, in order; with threads, some ahead of the one that is asked for.
class BatchMaker {
 public:
  BatchMaker(Dataset data, EpochOrder order, const ExampleKey& key, std::int64_t first, int threads, int prefetch);
  ~BatchMaker();
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;

  std::int64_t at() const { return at_; }
  bool done() const { return at_ == count(); }
  /// The batch of this place. Throws what making it threw.
  const Batch& current();
  void advance();

 private:
  /// A batch that a thread makes, or has made.
  struct Slot {
    Batch batch{};
    std::exception_ptr error{};
    bool ready = false;
  };
  std::int64_t count() const { return static_cast<std::int64_t>(order_.parts.size()); }
  Slot& slot(std::int64_t i) { return slots_[static_cast<std::size_t>(i) % slots_.size()]; }
  void work();

  Dataset data_;
  EpochOrder order_;
  ExampleKey key_;
  std::int64_t at_;
  bool made_ = false;  ///< without threads: whether `own_` is the batch of this place
  Batch own_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::int64_t next_;  ///< that no thread has taken
  bool stop_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace ferrite::train::detail
