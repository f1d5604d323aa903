/// Batches made when asked for, or ahead by threads.
#include "ferrite/train/detail/batch_maker.h"

#include <algorithm>

#include "ferrite/tensor/denormals.h"

namespace ferrite::train::detail {

void EpochOrder::cut(std::int64_t begin, std::int64_t end, std::int64_t size, bool drop_last, std::int64_t length) {
  for (std::int64_t at = begin; at < end; at += std::min(size, end - at))
    if (end - at >= size || !drop_last) parts.push_back({at, at + std::min(size, end - at), length});
}

const EpochOrder::Part& EpochOrder::part(std::int64_t i) const {
  if (i < 0 || i >= static_cast<std::int64_t>(parts.size()))
    throw ShapeError("data loader: there is no batch " + std::to_string(i) + ", an epoch has " +
                     std::to_string(parts.size()));
  return parts[static_cast<std::size_t>(i)];
}

std::span<const std::int64_t> EpochOrder::examples_of(std::int64_t i) const {
  const Part& p = part(i);
  return std::span(examples).subspan(static_cast<std::size_t>(p.begin), static_cast<std::size_t>(p.end - p.begin));
}

Batch make_batch(const Dataset& data, const EpochOrder& order, const ExampleKey& key, std::int64_t i) {
  const EpochOrder::Part& p = order.part(i);
  const KeepDenormals keep;  // the same batch, whatever the mode of the thread
  return data.batch(order.examples_of(i), {key.seed, key.epoch, static_cast<std::uint64_t>(p.begin)}, p.length);
}

BatchMaker::BatchMaker(Dataset data, EpochOrder order, const ExampleKey& key, std::int64_t first, int threads,
                       int prefetch)
    : data_(std::move(data)),
      order_(std::move(order)),
      key_(key),
      at_(first),
      slots_(static_cast<std::size_t>(threads) * static_cast<std::size_t>(prefetch)),
      next_(first) {
  for (int t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
}

BatchMaker::~BatchMaker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

void BatchMaker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock,
                  [&] { return stop_ || next_ == count() || next_ < at_ + static_cast<std::int64_t>(slots_.size()); });
    if (stop_ || next_ == count()) return;
    const std::int64_t i = next_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_batch(data_, order_, key_, i);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    slot(i) = std::move(made);
    changed_.notify_all();
  }
}

const Batch& BatchMaker::current() {
  if (slots_.empty()) {
    if (!made_) own_ = make_batch(data_, order_, key_, at_);
    made_ = true;
    return own_;
  }
  (void)order_.part(at_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot(at_).ready; });
  if (slot(at_).error) std::rethrow_exception(slot(at_).error);
  return slot(at_).batch;
}

void BatchMaker::advance() {
  if (done()) return;
  made_ = false;
  if (slots_.empty()) {
    ++at_;
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot(at_).ready; });
  slot(at_) = {};
  ++at_;
  changed_.notify_all();
}

}  // namespace ferrite::train::detail
