/// Steps that make one value of several values or of a part of one; rows of early branches wait for the others.
#include "ferrite/nn/detail/stream_steps.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/stream_sums.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::nn::detail {
namespace {

/// Queues in rings, one for each row of a batch. What a step adds and removes counts once it is committed.
class WaitingRows {
 public:
  /// Creates queues in which at most `most` entries wait.
  WaitingRows(const StepRows& rows, std::int64_t most)
      : bytes_(rows.width * size_of(rows.dtype)),
        places_(most + 1),
        width_(rows.width),
        dtype_(rows.dtype),
        ring_((rows.batch * places_ * bytes_ + 7) / 8),
        first_(static_cast<std::size_t>(rows.batch)),
        waiting_(static_cast<std::size_t>(rows.batch)),
        added_(static_cast<std::size_t>(rows.batch)) {}

  /// Adds the result of a step, [B, N], for the rows that have one; null: none. Throws ValueError if too many wait,
  /// which only restored states of another stream can cause.
  void add(Step::Rows given, const void* y) {
    for (std::size_t b = 0; b < added_.size(); ++b) {
      added_[b] = given && given[b];
      if (!added_[b]) continue;
      if (waiting_[b] == places_)
        throw ValueError(
            "stream: a branch is further ahead of the others than it can be; restore states of this model");
      std::copy_n(static_cast<const std::byte*>(y) + static_cast<std::int64_t>(b) * bytes_, bytes_,
                  place(b, first_[b] + waiting_[b] * bytes_));
    }
  }
  bool any(std::size_t row) const { return waiting_[row] + added_[row] > 0; }
  const std::byte* front(std::size_t row) const { return place(row, first_[row]); }
  std::int64_t bytes() const { return bytes_; }

  /// Keeps what was added, and removes the front entry of the rows in `gone`.
  void commit(Step::Rows gone) {
    for (std::size_t b = 0; b < added_.size(); ++b) {
      waiting_[b] += added_[b] - (gone[b] ? 1 : 0);
      if (gone[b]) first_[b] = (first_[b] + bytes_) % (places_ * bytes_);
    }
  }
  /// Visits the states: the entries [B, places, N], those that wait first, and their numbers [B].
  void states(const Step::StateVisitor& see) {
    see({.name = "waiting",
         .spec = {{batch(), places_, width_}, dtype_},
         .first = place(0, 0),
         .entries = 1,
         .made = waiting_.data(),
         .at = first_.data(),
         .ring = places_ * bytes_});
    see({.name = "waiting rows",
         .spec = {{batch()}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(waiting_.data()),
         .most = places_});
  }

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(waiting_.size()); }
  /// Returns the address `at` bytes into a row's ring.
  std::byte* place(std::size_t row, std::int64_t at) const {
    return reinterpret_cast<std::byte*>(ring_.get()) + static_cast<std::int64_t>(row) * places_ * bytes_ +
           at % (places_ * bytes_);
  }

  std::int64_t bytes_;   ///< size of a row, in bytes
  std::int64_t places_;  ///< number of rows that a ring holds
  std::int64_t width_;
  Dtype dtype_;
  StepMemory<double> ring_;
  std::vector<std::int64_t> first_;    ///< by row of the batch: offset of the front in its ring, in bytes
  std::vector<std::int64_t> waiting_;  ///< by row of the batch: number of entries that wait
  std::vector<std::uint8_t> added_;
};

/// The base of steps without states that work on any number of rows: `Self` defines rows(n, x, y).
template <class Self>
class Stateless : public Step {
 public:
  explicit Stateless(const StepRows& given) : given_(given) {}

  StepRows result() const override { return given_; }
  bool commits() const override { return false; }
  bool never_throws() const override { return true; }
  void run(Inputs x, void* y) override { self().rows(given_.batch, x, y); }
  void advance(Inputs x, void* y) override { self().rows(given_.batch, x, y); }
  std::int64_t most_at_once() const override { return kAnyNumber; }
  void run_several(std::int64_t n, Inputs x, void* y) override { self().rows(n * given_.batch, x, y); }
  Channels by_channel() const override { return channels_of(given_); }
  void run_channels(std::int64_t n, Inputs x, void* y) override {
    self().channels(channel_pitch(given_.dtype, n), x, y);
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Self>(static_cast<const Self&>(*this)); }

 protected:
  std::int64_t width() const { return given_.width; }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }

  StepRows given_;
};

template <class T>
class Sum final : public Stateless<Sum<T>>, public InPlace {
 public:
  Sum(const StepRows& rows, std::size_t terms)
      : Stateless<Sum>(rows),
        terms_(static_cast<std::int64_t>(terms)),
        sum_(ferrite::detail::stream_sums_in_use.of<T>().sum) {}
  bool adds_two() const override { return terms_ == 2; }
  /// Adds a term to a narrow sum; a wide sum would keep all its terms in memory until the last one is computed.
  bool add_term() override {
    constexpr std::int64_t kNarrow = 32;
    if (this->width() > kNarrow) return false;
    ++terms_;
    return true;
  }
  void rows(std::int64_t n, Step::Inputs x, void* y) const { sum_(x, terms_, n * this->width(), static_cast<T*>(y)); }
  void channels(std::int64_t pitch, Step::Inputs x, void* y) const { rows(pitch, x, y); }

 private:
  std::int64_t terms_;
  decltype(ferrite::detail::StreamSums<T>::sum) sum_;
};

class Product final : public Stateless<Product>, public InPlace {
 public:
  explicit Product(const StepRows& rows) : Stateless(rows), block_(ferrite::detail::ops::mul->block(rows.dtype)) {}
  void rows(std::int64_t n, Inputs x, void* y) const {
    constexpr std::array<std::ptrdiff_t, 2> run{1, 1};
    block_(x, run.data(), y, n * width());
  }
  void channels(std::int64_t pitch, Inputs x, void* y) const { rows(pitch, x, y); }

 private:
  ferrite::detail::Block block_;
};

class Columns final : public Stateless<Columns> {
 public:
  Columns(const StepRows& given, std::int64_t row, std::int64_t first) : Stateless(given), row_(row), first_(first) {}
  void rows(std::int64_t n, Step::Inputs x, void* y) const {
    const std::int64_t size = size_of(result().dtype), bytes = width() * size;
    const std::byte* from = static_cast<const std::byte*>(x[0]) + first_ * size;
    auto* to = static_cast<std::byte*>(y);
    for (std::int64_t r = 0; r < n; ++r, from += row_ * size, to += bytes) std::copy_n(from, bytes, to);
  }
  void channels(std::int64_t pitch, Inputs x, void* y) const {
    const std::int64_t bytes = pitch * size_of(result().dtype);
    std::copy_n(static_cast<const std::byte*>(x[0]) + first_ * bytes, width() * bytes, static_cast<std::byte*>(y));
  }

 private:
  std::int64_t row_, first_;  ///< width of the input, and the first column that is taken
};

class Concatenation final : public Stateless<Concatenation> {
 public:
  explicit Concatenation(const StepRows& given, std::vector<std::int64_t> bytes)
      : Stateless(given), bytes_(std::move(bytes)) {}
  void rows(std::int64_t n, Step::Inputs x, void* y) const {
    auto* to = static_cast<std::byte*>(y);
    for (std::int64_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < bytes_.size(); to += bytes_[i++])
        std::copy_n(static_cast<const std::byte*>(x[i]) + r * bytes_[i], bytes_[i], to);
  }
  void channels(std::int64_t pitch, Inputs x, void* y) const {
    auto* to = static_cast<std::byte*>(y);
    for (std::size_t i = 0; i < bytes_.size(); to += pitch * bytes_[i++])
      std::copy_n(static_cast<const std::byte*>(x[i]), pitch * bytes_[i], to);
  }

 private:
  std::vector<std::int64_t> bytes_;  ///< size of a row of each value, in bytes
};

/// A step whose values may come at different times: rows wait until each value has one.
class Aligned final : public Step {
 public:
  Aligned(std::unique_ptr<Step> step, std::span<const StepRows> rows, std::int64_t most)
      : Step(*step), step_(std::move(step)), ready_(static_cast<std::size_t>(rows[0].batch)) {  // with its names
    for (const StepRows& r : rows) {
      waiting_.emplace_back(r, most);
      rooms_.emplace_back((bytes_of(r) + 127) / 8);
    }
    find_rooms();
  }
  Aligned& operator=(const Aligned&) = delete;
  Aligned(const Aligned& o)
      : Step(o), step_(o.step_->clone()), waiting_(o.waiting_), rooms_(o.rooms_), ready_(o.ready_), any_(o.any_) {
    find_rooms();
  }

  StepRows result() const override { return step_->result(); }
  Runs runs() const override { return step_->runs(); }
  Pace pace() const override { return step_->pace(); }
  bool skips() const override { return true; }
  /// Runs a step in which all values have their rows, so that none waits.
  void run(Inputs x, void* y) override { (void)Aligned::run_rows(every_.data(), x, y); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    for (std::size_t k = 0; k < waiting_.size(); ++k) waiting_[k].add(rows[k], x[k]);
    any_ = false;
    for (std::size_t b = 0; b < ready_.size(); ++b) {
      ready_[b] = std::all_of(waiting_.begin(), waiting_.end(), [b](const WaitingRows& w) { return w.any(b); });
      if (!ready_[b]) continue;
      any_ = true;
      for (std::size_t k = 0; k < waiting_.size(); ++k)
        std::copy_n(waiting_[k].front(b), waiting_[k].bytes(),
                    reinterpret_cast<std::byte*>(rooms_[k].get()) + static_cast<std::int64_t>(b) * waiting_[k].bytes());
    }
    return any_ ? step_->run_rows(together_.data(), x_.data(), y) : nullptr;
  }
  void commit() override { Aligned::commit_rows(nullptr); }
  void commit_rows(Rows) override {
    for (WaitingRows& w : waiting_) w.commit(ready_.data());
    if (any_ && step_->commits()) step_->commit_rows(ready_.data());
  }
  void refresh() override { step_->refresh(); }
  void states(const StateVisitor& see) override {
    for (WaitingRows& w : waiting_) w.states(see);
    step_->states(see);
  }
  void states_changed() override { step_->states_changed(); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Aligned>(*this); }

 private:
  void find_rooms() {
    for (const StepMemory<double>& r : rooms_) x_.push_back(r.get());
    all_.assign(ready_.size(), 1);
    every_.assign(waiting_.size(), all_.data());
    together_.assign(waiting_.size(), ready_.data());
  }

  std::unique_ptr<Step> step_;
  std::vector<WaitingRows> waiting_;
  std::vector<StepMemory<double>> rooms_;
  std::vector<const void*> x_;
  std::vector<std::uint8_t> ready_;     ///< by row: whether it has an entry of every value
  std::vector<std::uint8_t> all_;       ///< a 1 for every row
  std::vector<Rows> every_, together_;  ///< by value: all rows, and those that are ready
  bool any_ = false;                    ///< whether any row is ready
};

}  // namespace

std::unique_ptr<Step> sum_step(const StepRows& rows, std::size_t terms) {
  if (rows.dtype == Dtype::f64) return std::make_unique<Sum<double>>(rows, terms);
  return std::make_unique<Sum<float>>(rows, terms);
}
std::unique_ptr<Step> product_step(const StepRows& rows) { return std::make_unique<Product>(rows); }
std::unique_ptr<Step> scale_step(const StepRows& rows, double factor) {
  return elements_step({*ferrite::detail::ops::mul, rows.dtype, ferrite::detail::Literals{.b = factor}}, rows);
}

std::unique_ptr<Step> columns_step(const StepRows& rows, std::int64_t first, std::int64_t width) {
  return std::make_unique<Columns>(StepRows{rows.batch, width, rows.dtype}, rows.width, first);
}

std::unique_ptr<Step> concat_step(std::span<const StepRows> rows) {
  StepRows given{rows[0].batch, 0, rows[0].dtype};
  std::vector<std::int64_t> bytes;
  for (const StepRows& r : rows) {
    given.width += r.width;
    bytes.push_back(r.width * size_of(r.dtype));
  }
  return std::make_unique<Concatenation>(given, std::move(bytes));
}

std::unique_ptr<Step> aligned_step(std::unique_ptr<Step> step, std::span<const StepRows> rows, std::int64_t most) {
  return std::make_unique<Aligned>(std::move(step), rows, most);
}

}  // namespace ferrite::nn::detail
