/// The steps of a model as one step: they run in order in memory of the graph and are committed together.
#include "ferrite/nn/step_graph.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ferrite/nn/detail/stream_steps.h"

namespace ferrite::nn::detail {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

/// An allocator of places in one memory for values with different live ranges.
class Places {
 public:
  std::int64_t take(std::int64_t bytes) {
    std::size_t best = kNever;
    for (std::size_t i = 0; i < free_.size(); ++i)
      if (free_[i].bytes >= bytes && (best == kNever || free_[i].bytes < free_[best].bytes)) best = i;
    if (best == kNever) return take_for_good(bytes);
    const std::int64_t at = free_[best].at;
    free_[best] = {at + bytes, free_[best].bytes - bytes};
    if (free_[best].bytes == 0) free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(best));
    return at;
  }
  /// Returns a new place that is never shared.
  std::int64_t take_for_good(std::int64_t bytes) { return std::exchange(end_, end_ + bytes); }
  void give(std::int64_t at, std::int64_t bytes) { free_.push_back({at, bytes}); }
  std::int64_t end() const { return end_; }

 private:
  struct Hole {
    std::int64_t at, bytes;
  };
  std::vector<Hole> free_;
  std::int64_t end_ = 0;
};

/// Transposes a value between its two layouts, row by row and channel by channel.
template <class T>
void transpose(std::int64_t n, std::int64_t width, const T* from, std::int64_t from_pitch, T* to,
               std::int64_t to_pitch) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) to[j * to_pitch + i] = from[i * from_pitch + j];
}
void transpose(Dtype dtype, std::int64_t n, std::int64_t width, const void* from, std::int64_t from_pitch, void* to,
               std::int64_t to_pitch) {
  if (dtype == Dtype::f64)
    return transpose(n, width, static_cast<const double*>(from), from_pitch, static_cast<double*>(to), to_pitch);
  transpose(n, width, static_cast<const float*>(from), from_pitch, static_cast<float*>(to), to_pitch);
}

}  // namespace

/// Cuts the steps of a graph into parts that run channel by channel, if that is faster, and parts that do not. Values
/// of width 1 are the same in both layouts; others that pass between parts have a second place, for their channels.
class ChannelParts {
 public:
  struct Border {
    StepGraph::Value value;
    std::int64_t at;  ///< second place of the value
  };
  /// A range of nodes, [first, last).
  struct Part {
    std::size_t first, last;
    bool by_channel;
    std::int64_t fewest = 1;  ///< minimum number of steps; fewer would leave too many lanes idle
    std::vector<Border> in{}, out{};

    /// Returns the border that a value crosses, or null if it has only one place.
    const Border* border(StepGraph::Value v) const {
      for (const std::vector<Border>* const side : {&in, &out})
        for (const Border& b : *side)
          if (b.value == v) return &b;
      return nullptr;
    }
  };

  /// Cuts a graph that runs up to `at_once` steps at once.
  ChannelParts(std::span<const StepGraph::Rows> values, std::span<const StepGraph::Node> nodes, StepGraph::Value result,
               std::int64_t at_once) {
    const auto way = [&](std::size_t k) { return nodes[k].step->by_channel(); };
    const auto takes = [&](std::size_t k) { return way(k) != Step::Channels::no; };
    const std::int64_t lanes = channel_pitch(Dtype::f32, 1);
    const bool whole_packets = at_once % lanes == 0;
    for (std::size_t k = 0, end = 0; k < nodes.size(); k = end) {
      bool faster = false;
      for (end = k; end < nodes.size() && takes(end) == takes(k); ++end)
        faster = faster || way(end) == Step::Channels::faster;
      std::int64_t widest = 1;
      for (std::size_t i = k; i < end; ++i) widest = std::max(widest, values[nodes[i].y].rows.width);
      parts_.push_back({k, end, faster && whole_packets, widest <= lanes / 2 ? lanes / 2 : 3 * lanes / 4});
    }
    std::vector<std::size_t> maker(values.size(), kNever);
    for (std::size_t k = 0; k < nodes.size(); ++k) maker[nodes[k].y] = k;
    for (Part& part : parts_) {
      if (!part.by_channel) continue;
      const auto inside = [&](std::size_t k) { return k >= part.first && k < part.last; };
      const auto add = [&](StepGraph::Value v, std::vector<Border>& side) {
        if (values[v].rows.width > 1 && !part.border(v)) side.push_back({v, kNowhere});
      };
      for (std::size_t k = 0; k < nodes.size(); ++k)
        for (const StepGraph::Value v : nodes[k].x)
          if (inside(k) != inside(maker[v])) add(v, inside(k) ? part.in : part.out);
      if (inside(maker[result])) add(result, part.out);
    }
  }

  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }
  /// Returns all borders, whose second places the caller sets.
  std::vector<Border*> borders() {
    std::vector<Border*> all;
    for (Part& part : parts_)
      for (std::vector<Border>* const side : {&part.in, &part.out})
        for (Border& b : *side) all.push_back(&b);
    return all;
  }

 private:
  static constexpr std::int64_t kNowhere = -1;
  std::vector<Part> parts_;
};

/// The calls of a complete graph's steps. The places of values are decided once; the caller provides those of the input
/// and the result.
class StepCalls {
 public:
  struct Call {
    Step* step;
    const void** x;  ///< addresses of the inputs, in `addresses_`
    void* y;
    std::span<const StepGraph::Value> from;
    StepGraph::Value to;
    bool several;  ///< whether the step runs several steps at once
    /// Addresses of the inputs of `run_channels`; `channels_y` is that of its result.
    const void** channels_x;
    void* channels_y;
  };

  StepCalls(std::vector<StepGraph::Rows> values, std::vector<StepGraph::Node> nodes, StepGraph::Value result)
      : values_(std::move(values)), nodes_(std::move(nodes)), result_(result) {
    find_most_at_once();
    plan();
  }
  StepCalls(const StepCalls& o) : StepCalls(o.values_, copies(o.nodes_), o.result_) {}
  StepCalls& operator=(const StepCalls&) = delete;

  auto begin() const { return calls_.begin(); }
  auto end() const { return calls_.end(); }
  std::size_t size() const { return calls_.size(); }
  const Call& operator[](std::size_t k) const { return calls_[k]; }
  const StepGraph::Rows& result() const { return values_[result_]; }
  StepGraph::Value result_value() const { return result_; }
  std::size_t values() const { return values_.size(); }
  /// Returns the maximum number of steps that run at once.
  std::int64_t at_once() const { return at_once_; }
  std::size_t most_inputs() const { return moved_.size(); }

  [[gnu::always_inline]] void bind(const void* x, void* y) {
    if (x == x_ && y == y_) [[likely]]
      return;
    x_ = x, y_ = y;
    for (const std::size_t i : x_slots_) addresses_[i] = x;
    for (const std::size_t i : y_slots_) addresses_[i] = y;
    for (Call& c : calls_) {
      if (c.to != result_) continue;
      c.y = y;
      if (values_[result_].rows.width == 1) c.channels_y = y;
    }
  }
  /// Copies the input to the result if the graph's result is its input.
  void copy_through(std::int64_t n) const {
    if (result_ == 0) [[unlikely]]
      std::copy_n(static_cast<const std::byte*>(x_), n * bytes(0), static_cast<std::byte*>(y_));
  }
  /// Runs n steps through all calls.
  void run_several(std::int64_t n) {
    for (const ChannelParts::Part& part : *parts_) {
      if (part.by_channel && n >= part.fewest) {
        run_channels(n, part);
        continue;
      }
      for (std::size_t k = part.first; k < part.last; ++k) {
        const Call& c = calls_[k];
        if (c.several) {
          run_steps(*c.step, n, c.x, c.y);
        } else {
          one_by_one(n, c);
        }
      }
    }
    copy_through(n);
  }

 private:
  void run_channels(std::int64_t n, const ChannelParts::Part& part) const {
    for (const ChannelParts::Border& b : part.in) {
      const StepRows& rows = values_[b.value].rows;
      const void* const from = b.value == 0 ? x_ : places_[b.value];
      transpose(rows.dtype, n, rows.width, from, rows.width, memory() + b.at, channel_pitch(rows.dtype, n));
    }
    for (std::size_t k = part.first; k < part.last; ++k)
      run_channel_steps(*calls_[k].step, n, calls_[k].channels_x, calls_[k].channels_y);
    for (const ChannelParts::Border& b : part.out) {
      const StepRows& rows = values_[b.value].rows;
      void* const to = b.value == result_ ? y_ : places_[b.value];
      transpose(rows.dtype, rows.width, n, memory() + b.at, channel_pitch(rows.dtype, n), to, rows.width);
    }
  }
  void one_by_one(std::int64_t n, const Call& c) {
    auto* y = static_cast<std::byte*>(c.y);
    for (std::int64_t t = 0; t < n; ++t, y += bytes(c.to)) {
      for (std::size_t i = 0; i < c.from.size(); ++i)
        moved_[i] = static_cast<const std::byte*>(c.x[i]) + t * bytes(c.from[i]);
      c.step->advance(moved_.data(), y);
    }
  }
  static std::vector<StepGraph::Node> copies(const std::vector<StepGraph::Node>& nodes) {
    std::vector<StepGraph::Node> all;
    for (const StepGraph::Node& n : nodes) all.push_back({n.step->clone(), n.x, n.y});
    return all;
  }
  std::int64_t bytes(StepGraph::Value v) const { return bytes_of(values_[v].rows); }

  /// Finds how many steps may run at once: 1 if a step may throw after others have committed, or sometimes gives
  /// nothing.
  void find_most_at_once() {
    std::int64_t most = 0;
    for (StepGraph::Value v = 0; v < values_.size(); ++v) most = std::max(most, bytes(v));
    at_once_ = steps_at_once(most);
    for (const StepGraph::Node& n : nodes_) {
      const std::int64_t own = n.step->most_at_once();
      if (n.step->skips() || (own == 1 && !n.step->never_throws())) at_once_ = 1;
      if (own > 1) at_once_ = std::min(at_once_, own);
    }
    const std::int64_t lanes = channel_pitch(Dtype::f32, 1);
    if (at_once_ > lanes) at_once_ -= at_once_ % lanes;
  }
  void plan() {
    std::vector<std::size_t> last(values_.size(), kNever);  // the node that reads a value last
    for (std::size_t k = 0; k < nodes_.size(); ++k)
      for (const StepGraph::Value v : nodes_[k].x) last[v] = k;
    // A step may write up to 64 bytes past its rows.
    const auto room = [&](StepGraph::Value v) { return (at_once_ * bytes(v) + 127) / 64 * 64; };
    Places places;
    std::vector<std::int64_t> at(values_.size());
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      const StepGraph::Value y = nodes_[k].y;
      const std::size_t same = y == result_ ? kNever : in_place(nodes_[k], k, last);
      if (y != result_) at[y] = same < kNever ? at[same] : places.take(room(y));
      for (const StepGraph::Value v : nodes_[k].x)
        if (std::exchange(last[v], last[v] == k ? kNever : last[v]) == k && v != 0 && v != result_ && v != same)
          places.give(at[v], room(v));
    }
    parts_.emplace(values_, nodes_, result_, at_once_);
    for (ChannelParts::Border* const b : parts_->borders()) b->at = places.take_for_good(room(b->value));
    memory_.emplace(places.end() / 8 + 1);
    place(at);
  }
  /// Returns one of a step's first two inputs that no later step reads and that its result may overwrite, or kNever.
  std::size_t in_place(const StepGraph::Node& n, std::size_t k, const std::vector<std::size_t>& last) const {
    if (!dynamic_cast<const InPlace*>(n.step.get())) return kNever;
    for (std::size_t i = 0; i < std::min<std::size_t>(n.x.size(), 2); ++i) {
      const StepGraph::Value v = n.x[i];
      const bool read_again = n.x.size() > 2 && std::count(n.x.begin(), n.x.end(), v) > 1;
      if (v != 0 && v != result_ && last[v] == k && !read_again && bytes(v) == bytes(n.y)) return v;
    }
    return kNever;
  }
  std::byte* memory() const { return reinterpret_cast<std::byte*>(memory_->get()); }
  void place(const std::vector<std::int64_t>& at) {
    std::size_t inputs = 0, most = 0;
    for (const StepGraph::Node& n : nodes_) {
      inputs += n.x.size();
      most = std::max(most, n.x.size());
    }
    addresses_.reserve(2 * inputs);
    moved_.resize(most);
    for (const std::int64_t place : at) places_.push_back(memory() + place);
    for (const ChannelParts::Part& part : *parts_)
      for (std::size_t k = part.first; k < part.last; ++k) place(nodes_[k], part);
  }
  void place(const StepGraph::Node& n, const ChannelParts::Part& part) {
    const auto second = [&](StepGraph::Value v) {
      const ChannelParts::Border* const b = part.border(v);
      return b ? memory() + b->at : places_[v];
    };
    const void** const x = addresses_.data() + addresses_.size();
    for (const bool channels : {false, true})
      for (const StepGraph::Value v : n.x) {
        const bool own = channels && part.border(v);
        if (v == 0 && !own) x_slots_.push_back(addresses_.size());
        if (v == result_ && !own) y_slots_.push_back(addresses_.size());
        addresses_.push_back(channels ? second(v) : places_[v]);
      }
    calls_.push_back({n.step.get(),
                      x,
                      places_[n.y],
                      {n.x.data(), n.x.size()},
                      n.y,
                      n.step->most_at_once() > 1,
                      x + n.x.size(),
                      second(n.y)});
  }

  std::vector<StepGraph::Rows> values_;
  std::vector<StepGraph::Node> nodes_;
  StepGraph::Value result_;
  std::int64_t at_once_ = 1;
  std::optional<ChannelParts> parts_;
  std::optional<StepMemory<double>> memory_;
  std::vector<std::byte*> places_;              ///< place of each value in `memory_`
  std::vector<Call> calls_;                     ///< the call of each node
  std::vector<const void*> addresses_;          ///< addresses of the inputs of all nodes
  std::vector<std::size_t> x_slots_, y_slots_;  ///< positions in `addresses_` of the graph's input and result
  std::vector<const void*> moved_;              ///< addresses of the inputs of one step among several
  const void* x_ = nullptr;
  void* y_ = nullptr;
};

/// A complete graph as one step.
class GraphStep final : public Step {
 public:
  GraphStep(StepGraph graph, StepGraph::Value result)
      : calls_(std::move(graph.values_), std::move(graph.nodes_), result) {
    find_committing();
  }
  GraphStep(const GraphStep& o) : Step(o), calls_(o.calls_) { find_committing(); }

  StepRows result() const override { return calls_.result().rows; }
  Pace pace() const override { return calls_.result().pace; }
  void run(Inputs x, void* y) override {
    calls_.bind(x[0], y);
    for (const StepCalls::Call& c : calls_) run_step(*c.step, c.x, c.y);
    calls_.copy_through(1);
  }
  bool never_throws() const override {
    return std::all_of(calls_.begin(), calls_.end(), [](const auto& c) { return c.step->never_throws(); });
  }
  void advance(Inputs x, void* y) override {
    if (ferrite::detail::profiling()) [[unlikely]]
      return Step::advance(x, y);
    calls_.bind(x[0], y);
    for (const StepCalls::Call& c : calls_) c.step->advance(c.x, c.y);
    calls_.copy_through(1);
  }
  void commit() override {
    for (Step* const s : committing_) s->commit();
  }
  bool commits() const override { return !committing_.empty(); }

  std::int64_t most_at_once() const override { return calls_.at_once(); }
  std::int64_t sure(std::int64_t n, Inputs x) const override {
    for (const StepCalls::Call& c : calls_)
      n = std::min(n, c.step->sure(n, c.from.size() == 1 && c.from[0] == 0 ? x : nullptr));
    return n;
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    calls_.bind(x[0], y);
    calls_.run_several(n);
  }

  bool skips() const override {
    return std::any_of(calls_.begin(), calls_.end(), [](const auto& c) { return c.step->skips(); });
  }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    calls_.bind(x[0], y);
    have_[0] = rows[0];
    return onwards(0);
  }
  std::int64_t finishing() const override {
    std::int64_t n = 0;
    for (const StepCalls::Call& c : calls_) n += c.step->finishing();
    return n;
  }
  /// Ends the inputs of the first step that looks ahead, then of the second one, and so on.
  Rows finish(Rows rows, std::int64_t i, void* y) override {
    calls_.bind(nullptr, y);
    std::fill(have_.begin(), have_.end(), nullptr);
    std::fill(took_.begin(), took_.end(), nullptr);
    std::size_t k = 0;
    for (; i >= calls_[k].step->finishing(); ++k) i -= calls_[k].step->finishing();
    took_[k] = rows;
    have_[calls_[k].to] = finish_rows_of(*calls_[k].step, rows, i, calls_[k].y);
    return onwards(k + 1);
  }
  void commit_rows(Rows) override {
    for (std::size_t k = 0; k < calls_.size(); ++k)
      if (took_[k] && calls_[k].step->commits()) calls_[k].step->commit_rows(took_[k]);
  }

  void refresh() override {
    for (const StepCalls::Call& c : calls_) c.step->refresh();
  }
  void each(const StepVisitor& see) override {
    for (const StepCalls::Call& c : calls_) c.step->each(see);
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<GraphStep>(*this); }

 private:
  void find_committing() {
    for (const StepCalls::Call& c : calls_)
      if (c.step->commits()) committing_.push_back(c.step);
    have_.resize(calls_.values());
    took_.resize(calls_.size());
    rows_.resize(calls_.most_inputs());
  }
  /// Runs the steps from the k-th on for which some input has rows, and returns the rows of the result.
  Rows onwards(std::size_t k) {
    for (; k < calls_.size(); ++k) {
      const StepCalls::Call& c = calls_[k];
      const Rows* rows = &have_[c.from[0]];
      took_[k] = *rows;
      if (c.from.size() > 1) {
        for (std::size_t i = 0; i < c.from.size(); ++i)
          if ((rows_[i] = have_[c.from[i]])) took_[k] = rows_[i];
        rows = rows_.data();
      }
      have_[c.to] = took_[k] ? run_rows_of(*c.step, rows, c.x, c.y) : nullptr;
    }
    if (have_[calls_.result_value()]) calls_.copy_through(1);
    return have_[calls_.result_value()];
  }

  StepCalls calls_;
  std::vector<Step*> committing_;
  std::vector<Rows> have_, took_;  ///< rows of each value, and rows that each step took, in the last call
  std::vector<Rows> rows_;         ///< rows of each input of a step
};

}  // namespace ferrite::nn::detail

namespace ferrite::nn {

const LayerNames& StepGraph::names_of(const Layer& layer) {
  for (const auto& [known, names] : names_)
    if (known == &layer) return names;
  auto& [known, names] = names_[next_name_++ % names_.size()];
  known = &layer;
  return names = {layer.path(), layer.kind()};
}

StepGraph::Value StepGraph::add(const Layer& layer, std::unique_ptr<Step> step, std::span<const Value> x) {
  step->set_layer(names_of(layer));
  return add(std::move(step), x);
}

StepGraph::Value StepGraph::add(std::unique_ptr<Step> step, std::span<const Value> x) {
  Rows y = values_[x[0]];  // becomes the pace of the latest value
  std::int64_t earliest = y.pace.delay;
  bool together = true;
  std::vector<StepRows> rows;
  for (const Value v : x) {
    const Rows& r = values_[v];
    if (r.pace.stride != y.pace.stride || r.pace.delay - r.pace.after != y.pace.delay - y.pace.after)
      throw PaceError("stream: a step of " + std::string(step->kind()) + " takes values with other numbers of steps");
    together = together && std::equal(r.ahead.begin(), r.ahead.end(), y.ahead.begin(), y.ahead.end());
    earliest = std::min(earliest, r.pace.delay);
    if (r.pace.delay > y.pace.delay) y.pace = r.pace;
    rows.push_back(r.rows);
  }
  if (!together) {
    for (const Value v : x)
      for (const std::size_t k : values_[v].ahead)
        if (std::find(y.ahead.begin(), y.ahead.end(), k) == y.ahead.end()) y.ahead.push_back(k);
    std::sort(y.ahead.begin(), y.ahead.end());
    // An early value waits for the delay of the latest one, and at the end for the outputs after the last input.
    const std::int64_t most = (y.pace.delay - earliest + y.pace.after) / y.pace.stride + 2;
    step = detail::aligned_step(std::move(step), rows, most);
  }
  if (step->finishing() > 0) y.ahead.push_back(nodes_.size());
  values_.push_back({step->result(), y.pace.then(step->pace()), y.ahead});
  nodes_.push_back({std::move(step), {x.begin(), x.end()}, values_.size() - 1});
  return values_.size() - 1;
}

StepGraph::Value StepGraph::add(const Layer& layer, Value x) {
  const StepRows in = rows(x);
  const StepInput wanted = layer.step_input();
  if (wanted.width > 0 && (wanted.width != in.width || wanted.dtype != in.dtype))
    throw ShapeError("stream: " + layer.kind() + " takes " + std::to_string(wanted.width) + " values of " +
                     std::string(name_of(wanted.dtype)) + " a row, the layer before it gives " +
                     std::to_string(in.width) + " of " + std::string(name_of(in.dtype)));
  return layer.add_steps(*this, x);
}

void StepGraph::join_steps(Value& result) {
  std::vector<std::size_t> readers(values_.size());
  for (const Node& n : nodes_)
    for (const Value v : n.x) ++readers[v];
  ++readers[result];
  std::vector<Node> left;
  std::vector<Value> now(values_.size());
  std::vector<std::size_t> at(values_.size(), detail::kNever);  // the node of each value in `left`
  for (Value v = 0; v < now.size(); ++v) now[v] = v;
  const auto only_reads = [&](Value v) { return at[v] != detail::kNever && readers[v] == 1; };
  const auto joins_sum = [&](Value first, Value added) {
    if (!only_reads(first) || (at[added] != detail::kNever && at[added] > at[first])) return false;
    Node& node = left[at[first]];
    Node* const other = only_reads(added) ? &left[at[added]] : nullptr;
    if (!node.step->join_sum(other ? &other->step : nullptr)) return false;
    node.x.push_back(other && !other->step ? other->x[0] : added);
    return true;
  };
  for (Node& n : nodes_) {
    for (Value& v : n.x) v = now[v];
    Value joined = n.x[0];
    bool joins = false;
    if (const detail::ElementFunction* const f = n.step->elements()) {
      joins = only_reads(joined) && left[at[joined]].step->join(*f);
    } else if (n.step->adds_two()) {
      joins = joins_sum(n.x[0], n.x[1]);
      if (!joins && (joins = joins_sum(n.x[1], n.x[0]))) joined = n.x[1];
    } else if (n.step->single_output()) {
      joins = only_reads(joined) && left[at[joined]].step->join_output(n.step);
    }
    if (joins) {
      now[n.y] = joined;
      values_[joined].rows = values_[n.y].rows;
      readers[joined] = readers[n.y];
      continue;
    }
    if (n.step->adds_two() && only_reads(n.x[0]) && left[at[n.x[0]]].step->add_term()) {
      Node longer = std::move(left[at[n.x[0]]]);
      longer.x.push_back(n.x[1]);
      longer.y = n.y;
      n = std::move(longer);
    }
    at[n.y] = left.size();
    left.push_back(std::move(n));
  }
  std::erase_if(left, [](const Node& n) { return !n.step; });
  nodes_ = std::move(left);
  result = now[result];
}

std::unique_ptr<Step> StepGraph::step(const Layer& whole, Value result) && {
  if (nodes_.size() > 1) join_steps(result);
  const bool alone = nodes_.size() == 1 && nodes_[0].x.size() == 1;
  if (alone && nodes_[0].step->by_channel() != Step::Channels::faster) return std::move(nodes_[0].step);
  auto step = std::make_unique<detail::GraphStep>(std::move(*this), result);
  step->set_layer({whole.path(), whole.kind()});
  return step;
}

std::unique_ptr<Step> detail::step_of(const Layer& layer, const StepRows& in) {
  StepGraph graph(in);
  const StepGraph::Value y = graph.add(layer, 0);
  return std::move(graph).step(layer, y);
}

std::size_t Layer::add_steps(StepGraph& graph, std::size_t x) const {
  return graph.add(*this, detail::own_step_of(*this, graph.rows(x)), {x});
}

}  // namespace ferrite::nn
