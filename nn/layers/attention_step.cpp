/// One step of causal attention for streams: keys and values in place, of which a step reads those of the steps made.
#include <algorithm>
#include <cmath>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/detail/alibi.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

using detail::StepMemory;

std::int64_t groups_of(const MultiheadAttentionOptions& o) { return o.kv_heads ? o.kv_heads : o.num_heads; }

/// The keys and values of the steps that each row has made. Of each row and head the keys lie by columns, so that a
/// query meets many at once, the values by rows; learned ones and zeros come first.
template <class T>
class Cache {
 public:
  Cache(const MultiheadAttentionOptions& o, std::int64_t batch)
      : batch_(batch),
        capacity_(o.capacity),
        groups_(groups_of(o)),
        W_(o.embed_dim / o.num_heads),
        first_((o.add_bias_kv ? 1 : 0) + (o.add_zero_attn ? 1 : 0)),
        places_(((first_ + capacity_ + kLine - 1) / kLine | 1) * kLine),
        steps_(static_cast<std::size_t>(batch)),
        keys_(batch * groups_ * W_ * places_),
        values_(batch * groups_ * W_ * places_) {}

  std::int64_t first() const { return first_; }
  std::int64_t places() const { return places_; }
  /// How many steps a row has made.
  std::int64_t steps(std::int64_t row) const { return steps_[static_cast<std::size_t>(row)]; }
  /// Keys [W, places] and values [places, W] of a row and a head.
  T* keys(std::int64_t row, std::int64_t group) const { return keys_.get() + (row * groups_ + group) * W_ * places_; }
  T* values(std::int64_t row, std::int64_t group) const {
    return values_.get() + (row * groups_ + group) * W_ * places_;
  }

  /// Throws CapacityError where a row is full.
  void check_room(Step::Rows rows) const {
    for (std::int64_t row = 0; row < batch_; ++row)
      if ((!rows || rows[row]) && steps(row) >= capacity_)
        throw CapacityError("stream: 'keys' of " + std::string(MultiheadAttention::name) + " is full: row " +
                            std::to_string(row) + " has made " + std::to_string(capacity_) +
                            " steps; reset it, or declare a larger capacity");
  }
  /// For how many steps there is room in all rows.
  std::int64_t room() const { return capacity_ - *std::max_element(steps_.begin(), steps_.end()); }
  /// Writes the entry of a head, [W] each, at a place.
  void put(std::int64_t row, std::int64_t group, std::int64_t place, const T* k, const T* v) {
    for (std::int64_t i = 0; i < W_; ++i) keys(row, group)[i * places_ + place] = k[i];
    std::copy_n(v, W_, values(row, group) + place * W_);
  }
  /// The learned key and value, if any, and zeros before those of the steps.
  void put_first(const Parameter& bias_k, const Parameter& bias_v) {
    const auto of = [&](const Parameter& p, std::int64_t n) {
      return n == 0 && p.defined() ? contiguous(p.peek()) : zeros({groups_ * W_}, dtype_of<T>);
    };
    for (std::int64_t n = 0; n < first_; ++n) {
      const Tensor k = of(bias_k, n), v = of(bias_v, n);
      for (std::int64_t row = 0; row < batch_; ++row)
        for (std::int64_t g = 0; g < groups_; ++g) put(row, g, n, k.data<T>() + g * W_, v.data<T>() + g * W_);
    }
  }

  void advance(Step::Rows rows) {
    for (std::size_t row = 0; row < steps_.size(); ++row) steps_[row] += !rows || rows[row] ? 1 : 0;
  }
  /// As the states that the layer declares: [B, C, heads W], and the steps that each row has made.
  void states(const Step::StateVisitor& see) {
    const std::int64_t size = size_of(dtype_of<T>);
    const auto of = [&](const char* name, T* first, std::int64_t entry, std::int64_t element) -> StateMemory {
      return {.name = name,
              .spec = {{batch_, capacity_, groups_ * W_}, dtype_of<T>},
              .first = reinterpret_cast<std::byte*>(first + first_ * entry),
              .parts = {batch_, capacity_, groups_, W_},
              .strides = {groups_ * W_ * places_ * size, entry * size, W_ * places_ * size, element * size},
              .entries = 1,
              .made = steps_.data()};
    };
    see(of("keys", keys_.get(), 1, places_));
    see(of("values", values_.get(), W_, 1));
    see({.name = "steps",
         .spec = {{batch_}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(steps_.data()),
         .most = capacity_});
  }

 private:
  /// Rows of keys are an odd number of cache lines apart, so that those of a column do not meet in one set of the
  /// cache.
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));

  std::int64_t batch_, capacity_, groups_, W_, first_, places_;
  std::vector<std::int64_t> steps_;
  StepMemory<T> keys_, values_;
};

/// Its bits are those of the whole sequence: there hidden keys add zeros to the ends of the same chains of sums
/// (docs/numerics.md, rules 2 and 3). An entry is written before its step is committed, where no step reads yet.
template <class T>
class AttentionStep final : public Step {
 public:
  AttentionStep(const MultiheadAttention& layer, std::int64_t batch)
      : o_(layer.options()),
        bias_k_(layer.bias_k),
        bias_v_(layer.bias_v),
        batch_(batch),
        groups_(groups_of(o_)),
        W_(o_.embed_dim / o_.num_heads),
        in_(detail::linear_step(layer.in_proj_weight, layer.in_proj_bias, batch)),
        out_(detail::linear_step(layer.out_proj_weight, layer.out_proj_bias, batch)),
        cache_(o_, batch),
        at_once_(detail::steps_at_once(batch * in_->result().width * size_of(dtype_of<T>))),
        projected_(at_once_ * batch * in_->result().width),
        heads_(at_once_ * batch * o_.embed_dim),
        scores_(o_.num_heads * cache_.places()) {
    if (o_.positions == Positions::alibi)
      for (const double s : detail::alibi_slopes(o_.num_heads)) slopes_.push_back(static_cast<T>(s));
    if (o_.positions == Positions::rotary) tabulate_turns();
    cache_.put_first(bias_k_, bias_v_);
  }
  AttentionStep(const AttentionStep& o)
      : Step(o),
        o_(o.o_),
        bias_k_(o.bias_k_),
        bias_v_(o.bias_v_),
        batch_(o.batch_),
        groups_(o.groups_),
        W_(o.W_),
        slopes_(o.slopes_),
        turns_(o.turns_),
        in_(o.in_->clone()),
        out_(o.out_->clone()),
        cache_(o.cache_),
        at_once_(o.at_once_),
        projected_(o.projected_),
        heads_(o.heads_),
        scores_(o.scores_) {}

  StepRows result() const override { return {batch_, o_.embed_dim, dtype_of<T>}; }

  void run(Inputs x, void* y) override { attend_of(nullptr, x, y); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    attend_of(rows[0], x, y);
    return rows[0];
  }
  std::int64_t most_at_once() const override { return at_once_; }
  std::int64_t sure(std::int64_t n, Inputs) const override { return std::min(n, cache_.room()); }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    in_->run_several(n, x, projected_.get());
    for (std::int64_t t = 0; t < n; ++t, cache_.advance(nullptr))
      for (std::int64_t row = 0; row < batch_; ++row) attend(row, t * batch_ + row);
    const void* const heads = heads_.get();
    out_->run_several(n, &heads, y);
  }
  void commit() override { cache_.advance(nullptr); }
  void commit_rows(Rows rows) override { cache_.advance(rows); }
  void refresh() override {
    in_->refresh(), out_->refresh();
    cache_.put_first(bias_k_, bias_v_);
  }
  void states(const StateVisitor& see) override { cache_.states(see); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<AttentionStep>(*this); }

 private:
  /// Asks rotary_embedding itself how it turns the pair (1, 0) at every position: to (cos, sin).
  void tabulate_turns() {
    const NewFrame frame;
    const Tensor one = ones({o_.capacity, W_ / 2}, dtype_of<T>), zero = zeros(one.shape(), dtype_of<T>);
    const Tensor pairs =
        o_.rotary.interleaved ? reshape(stack({one, zero}, -1), {o_.capacity, W_}) : concat({one, zero}, 1);
    turns_ = contiguous(rotary_embedding(pairs, arange(o_.capacity), o_.rotary));
  }
  /// Turns the pairs of `heads` heads in place, as rotary_embedding does.
  void turn(T* x, std::int64_t heads, std::int64_t position) const {
    const std::int64_t half = W_ / 2, apart = o_.rotary.interleaved ? 1 : half, step = o_.rotary.interleaved ? 2 : 1;
    const T* const turns = turns_.data<T>() + position * W_;
    for (std::int64_t i = 0; i < half; ++i) {
      const T c = turns[i * step], s = turns[i * step + apart];
      for (std::int64_t h = 0; h < heads; ++h) {
        T* const pair = x + h * W_ + i * step;
        const T a = pair[0], b = pair[apart];
        pair[0] = a * c - b * s;
        pair[apart] = b * c + a * s;
      }
    }
  }

  /// ALiBi: scores fall with the distance from a key to this step.
  void fall(T* scores, std::int64_t seen, std::int64_t own) const {
    for (std::int64_t h = 0; h < o_.num_heads; ++h)
      for (std::int64_t j = cache_.first(); j < seen; ++j) {
        const T less = slopes_[static_cast<std::size_t>(h)] * static_cast<T>(own - (j - cache_.first()));
        scores[h * seen + j] = scores[h * seen + j] + -less;
      }
  }

  void attend_of(Rows rows, Inputs x, void* y) {
    cache_.check_room(rows);
    in_->run(x, projected_.get());
    for (std::int64_t row = 0; row < batch_; ++row)
      if (!rows || rows[row]) attend(row, row);
    const void* const heads = heads_.get();
    out_->run(&heads, y);
  }
  /// The step of a row whose projections, and heads, are the n-th ones.
  void attend(std::int64_t row, std::int64_t n) {
    const std::int64_t E = o_.embed_dim, K = groups_ * W_, share = o_.num_heads / groups_, made = cache_.steps(row);
    const std::int64_t at = cache_.first() + made;
    const std::int64_t seen = at + 1;
    T* const q = projected_.get() + n * (E + 2 * K);
    T *const k = q + E, *const v = k + K, *const scores = scores_.get();
    if (turns_.defined()) turn(q, o_.num_heads, made), turn(k, groups_, made);
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(W_)));
    for (std::int64_t i = 0; i < E; ++i) q[i] = q[i] * scale;
    const auto& kernels = ferrite::detail::products_in_use.of<T>();
    for (std::int64_t g = 0; g < groups_; ++g) {
      cache_.put(row, g, at, k + g * W_, v + g * W_);
      kernels.product(share, seen, W_, {q + g * share * W_, W_, 1}, {cache_.keys(row, g), cache_.places(), 1},
                      scores + g * share * seen, seen, false);
    }
    if (!slopes_.empty()) fall(scores, seen, made);
    ferrite::detail::rows_in_use.of<T>().softmax(scores, scores, {o_.num_heads, seen});
    for (std::int64_t g = 0; g < groups_; ++g)
      kernels.product(share, W_, seen, {scores + g * share * seen, seen, 1}, {cache_.values(row, g), W_, 1},
                      heads_.get() + n * E + g * share * W_, W_, false);
  }

  MultiheadAttentionOptions o_;
  Parameter bias_k_, bias_v_;
  std::int64_t batch_, groups_, W_;
  std::vector<T> slopes_;
  Tensor turns_;  ///< [capacity, W] of rotary positions: (cos, sin) where a head has a pair
  std::unique_ptr<Step> in_, out_;
  Cache<T> cache_;
  std::int64_t at_once_;
  StepMemory<T> projected_, heads_, scores_;
};

}  // namespace

std::size_t MultiheadAttention::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const StepRows in = graph.rows(x);
  if (in.dtype == Dtype::f64) return graph.add(*this, std::make_unique<AttentionStep<double>>(*this, in.batch), {x});
  return graph.add(*this, std::make_unique<AttentionStep<float>>(*this, in.batch), {x});
}

}  // namespace ferrite::nn
