/// The order of epochs: shuffled, sampled by weights or cut into buckets; and batches made on demand, or ahead by
/// threads.
#include "ferrite/train/data_loader.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "ferrite/tensor/denormals.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// The examples of an epoch in order, and their division into batches.
struct EpochOrder {
  struct Part {
    std::int64_t begin = 0, end = 0;  ///< range of its places in `examples`
    std::int64_t length = 0;          ///< least length to which sequences are padded
  };
  std::vector<std::int64_t> examples;
  std::vector<Part> parts;

  /// Cuts the examples from `begin` to `end` into batches.
  void cut(std::int64_t begin, std::int64_t end, std::int64_t size, bool drop_last, std::int64_t length);
  /// Returns the range of batch i. Throws ShapeError for a batch that does not exist.
  const Part& part(std::int64_t i) const;
  std::span<const std::int64_t> examples_of(std::int64_t i) const;
};

/// Makes the batches of an epoch from `first` on, in order; threads make some of them ahead.
class BatchMaker {
 public:
  BatchMaker(Dataset data, EpochOrder order, const ExampleKey& key, std::int64_t first, int threads, int prefetch);
  ~BatchMaker();
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;

  std::int64_t at() const { return at_; }
  bool done() const { return at_ == count(); }
  /// Returns the current batch. Throws what making it threw.
  const Batch& current();
  void advance();

 private:
  /// A batch that a thread is making or has made.
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
  bool made_ = false;  ///< without threads: whether `own_` is the current batch
  Batch own_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::int64_t next_;  ///< next batch for a thread to make
  bool stop_ = false;
  std::vector<std::jthread> threads_;  // declared last: joined before the other members are destroyed
};

// ---- batches -------------------------------------------------------------------------------------------

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

namespace {

/// Makes batch `i`; `key` has the seed and the epoch, and the batch's first example sets its place.
Batch make_batch(const Dataset& data, const EpochOrder& order, const ExampleKey& key, std::int64_t i) {
  const EpochOrder::Part& p = order.part(i);
  const KeepDenormals keep;  // so that the batch is the same whatever the mode of the thread
  return data.batch(order.examples_of(i), {key.seed, key.epoch, static_cast<std::uint64_t>(p.begin)}, p.length);
}

}  // namespace

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

// ---- the order of epochs -------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

constexpr const char* kWho = "data loader: ";

[[noreturn]] void refuse(const std::string& what) { throw ValueError(kWho + what); }

void check_not_negative(const char* name, std::int64_t value) {
  if (value < 0) refuse(std::string(name) + " must be at least 0, got " + std::to_string(value));
}

/// Returns the numbers of `from` in the random order of a key.
std::vector<std::int64_t> shuffled(const std::vector<std::int64_t>& from, const RandomKey& key) {
  std::vector<std::int64_t> out;
  out.reserve(from.size());
  for (const std::int64_t i : permutation(static_cast<std::int64_t>(from.size()), key).to_vector<std::int64_t>())
    out.push_back(from[static_cast<std::size_t>(i)]);
  return out;
}

std::int64_t batches_in(std::int64_t examples, std::int64_t size, bool drop_last) {
  return examples / size + (examples % size != 0 && !drop_last);
}

}  // namespace

Tensor balanced_weights(const Tensor& labels) {
  if (labels.rank() != 1) throw ShapeError("balanced_weights: labels must be [N], got " + labels.shape().str());
  if (!is_integer(labels.dtype()))
    throw DtypeError("balanced_weights: labels must be i64 or i32, got " + labels.spec().str());
  const std::vector<std::int64_t> of = cast(labels, Dtype::i64).to_vector<std::int64_t>();
  std::vector<std::int64_t> sorted = of;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.front() < 0)
    throw ValueError("balanced_weights: a label of " + std::to_string(sorted.front()) + "; labels count from 0");
  std::vector<double> weights;
  for (const std::int64_t label : of) {
    const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), label);
    weights.push_back(1 / static_cast<double>(end - begin));
  }
  return Tensor::from(weights, {labels.shape()[0]});
}

DataLoader::DataLoader(Dataset data, const LoaderOptions& options) : data_(std::move(data)), options_(options) {
  if (options.batch_size < 1) refuse("the batch size must be positive, got " + std::to_string(options.batch_size));
  check_not_negative("samples", options.samples);
  check_not_negative("buckets", options.buckets);
  check_not_negative("threads", options.threads);
  if (options.prefetch < 1) refuse("prefetch must be positive, got " + std::to_string(options.prefetch));
  const std::int64_t size = options_.batch_size;
  if (options.weights.defined()) {
    check_weights();
    samples_ = options.samples > 0 ? options.samples : data_.size();
    batches_ = batches_in(samples_, size, options.drop_last);
  } else {
    if (options.samples > 0) refuse("samples are for weights");
    cut_buckets();
    for (const auto& bucket : bucket_) {
      const auto n = static_cast<std::int64_t>(bucket.size());
      batches_ += batches_in(n, size, options.drop_last);
      samples_ += options.drop_last ? n / size * size : n;
    }
    return;
  }
  if (options.drop_last) samples_ = batches_ * size;
}

void DataLoader::check_weights() {
  const Tensor& weights = options_.weights;
  if (options_.buckets > 0 || !options_.bucket_lengths.empty()) refuse("weights and buckets exclude each other");
  if (!is_float(weights.dtype())) throw DtypeError(kWho + ("weights must be floats, got " + weights.spec().str()));
  if (weights.rank() != 1 || weights.shape()[0] != data_.size())
    throw ShapeError(kWho + ("weights must be [" + std::to_string(data_.size()) + "], one for each example, got ") +
                     weights.shape().str());
  double sum = 0;
  for (const double w : cast(weights, Dtype::f64).to_vector<double>()) {
    if (!(w >= 0) || !std::isfinite(w)) refuse("a weight of " + Scalar(w).str() + "; weights are at least 0");
    cumulative_.push_back(sum += w);
  }
  if (!(sum > 0) || !std::isfinite(sum)) refuse("the weights add up to " + Scalar(sum).str());
}

/// Computes the largest length and the examples of each bucket.
void DataLoader::cut_buckets() {
  const std::int64_t N = data_.size();
  std::vector<std::int64_t> all(static_cast<std::size_t>(N));
  std::iota(all.begin(), all.end(), 0);
  bounds_ = options_.bucket_lengths;
  if (bounds_.empty() && options_.buckets == 0) {
    bucket_ = {std::move(all)};
    return;
  }
  std::vector<std::int64_t> lengths;
  for (const std::int64_t i : all) lengths.push_back(data_.length(i));
  if (bounds_.empty() && N > 0) {
    std::vector<std::int64_t> sorted = lengths;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t b = 1; b <= options_.buckets; ++b)
      bounds_.push_back(sorted[static_cast<std::size_t>(std::max<std::int64_t>(1, N * b / options_.buckets) - 1)]);
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }
  if (std::adjacent_find(bounds_.begin(), bounds_.end(), std::greater_equal<>()) != bounds_.end())
    refuse("bucket lengths must ascend");
  bucket_.resize(bounds_.size());
  for (const std::int64_t i : all) {
    const std::int64_t length = lengths[static_cast<std::size_t>(i)];
    const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), length);
    if (bound == bounds_.end())
      throw ShapeError(kWho + ("example " + std::to_string(i) + " has " + std::to_string(length) +
                               " steps, the last bucket holds " + std::to_string(bounds_.back())));
    bucket_[static_cast<std::size_t>(bound - bounds_.begin())].push_back(i);
  }
}

detail::EpochOrder DataLoader::order_of(std::int64_t epoch) const {
  if (epoch < 0) refuse("the epoch must be at least 0, got " + std::to_string(epoch));
  const auto key = [&](const std::string& stream) {
    return RandomKey{options_.seed, stream_of(stream), static_cast<std::uint64_t>(epoch)};
  };
  detail::EpochOrder order;
  if (!cumulative_.empty()) {
    const Tensor at = uniform({samples_}, key("samples"), 0, 1, Dtype::f64);
    for (const double u : at.values<double>()) {
      const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), u * cumulative_.back());
      const auto last = std::lower_bound(cumulative_.begin(), cumulative_.end(), cumulative_.back());
      order.examples.push_back(std::min(found, last) - cumulative_.begin());
    }
    order.cut(0, samples_, options_.batch_size, options_.drop_last, 0);
    return order;
  }
  for (std::size_t b = 0; b < bucket_.size(); ++b) {
    const auto begin = static_cast<std::int64_t>(order.examples.size());
    const std::string name = bounds_.empty() ? "batches" : "batches/bucket " + std::to_string(b);
    const std::vector<std::int64_t> of = options_.shuffle ? shuffled(bucket_[b], key(name)) : bucket_[b];
    order.examples.insert(order.examples.end(), of.begin(), of.end());
    order.cut(begin, begin + static_cast<std::int64_t>(of.size()), options_.batch_size, options_.drop_last,
              bounds_.empty() ? 0 : bounds_[b]);
  }
  if (!bounds_.empty() && options_.shuffle) {
    std::vector<detail::EpochOrder::Part> parts;
    const auto n = static_cast<std::int64_t>(order.parts.size());
    for (const std::int64_t i : permutation(n, key("batches/order")).to_vector<std::int64_t>())
      parts.push_back(order.parts[static_cast<std::size_t>(i)]);
    order.parts = std::move(parts);
  }
  return order;
}

std::vector<std::int64_t> DataLoader::examples(std::int64_t epoch, std::int64_t i) const {
  const detail::EpochOrder order = order_of(epoch);
  const std::span<const std::int64_t> of = order.examples_of(i);
  return {of.begin(), of.end()};
}

Batch DataLoader::batch(std::int64_t epoch, std::int64_t i) const {
  return detail::make_batch(data_, order_of(epoch), {.seed = options_.seed, .epoch = static_cast<std::uint64_t>(epoch)},
                            i);
}

DataLoader::Epoch DataLoader::epoch(std::int64_t epoch, std::int64_t first) const {
  const ExampleKey key{.seed = options_.seed, .epoch = static_cast<std::uint64_t>(epoch)};
  detail::EpochOrder order = order_of(epoch);
  if (first < 0 || first > batches_)
    throw ShapeError(kWho + ("an epoch of " + std::to_string(batches_) + " batches cannot begin at batch ") +
                     std::to_string(first));
  return Epoch(
      std::make_unique<detail::BatchMaker>(data_, std::move(order), key, first, options_.threads, options_.prefetch));
}

DataLoader::Epoch::Epoch(std::unique_ptr<detail::BatchMaker> maker) : maker_(std::move(maker)) {}
DataLoader::Epoch::Epoch(Epoch&&) noexcept = default;
DataLoader::Epoch::~Epoch() = default;
std::int64_t DataLoader::Epoch::at() const { return maker_->at(); }
const Batch& DataLoader::Epoch::Iterator::operator*() const { return of_->maker_->current(); }
DataLoader::Epoch::Iterator& DataLoader::Epoch::Iterator::operator++() {
  of_->maker_->advance();
  return *this;
}
bool DataLoader::Epoch::Iterator::operator==(std::default_sentinel_t) const { return of_->maker_->done(); }

}  // namespace ferrite::train
