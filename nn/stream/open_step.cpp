/// The steps of layers that are written in operations: traced and planned once, for one step and for several at once,
/// and bound to their buffers for the life of a stream.
#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {
namespace {

/// The sizes of the rows that are copied between a step and its programs.
struct Transfer {
  std::vector<std::int64_t> x{};  ///< size of each input in one step, in bytes
  std::int64_t y = 0;             ///< size of the result of one step, in bytes
};

/// Runs a program of n steps on the caller's rows from step `first` on: x [n, B, D] of every input -> y [n, B, N].
inline void run_program(ferrite::detail::OpenScan& scan, std::int64_t n, Step::Inputs x, std::int64_t first, void* y,
                        const Transfer& bytes) {
  for (std::size_t k = 0; k < bytes.x.size(); ++k)
    std::copy_n(static_cast<const std::byte*>(x[k]) + first * bytes.x[k], n * bytes.x[k], scan.x(k));
  scan.run();
  std::copy_n(scan.y(0), n * bytes.y, static_cast<std::byte*>(y) + first * bytes.y);
}

/// An open scan that is copied together with its holder.
class HeldScan {
 public:
  HeldScan() = default;
  explicit HeldScan(std::unique_ptr<ferrite::detail::OpenScan> scan) : scan_(std::move(scan)) {}
  HeldScan(HeldScan&&) = default;
  HeldScan& operator=(HeldScan&&) = default;
  HeldScan(const HeldScan& o) : scan_(o.scan_ ? std::make_unique<ferrite::detail::OpenScan>(*o.scan_) : nullptr) {}
  HeldScan& operator=(const HeldScan&) = delete;
  ferrite::detail::OpenScan& operator*() const { return *scan_; }
  ferrite::detail::OpenScan* operator->() const { return scan_.get(); }

 private:
  std::unique_ptr<ferrite::detail::OpenScan> scan_;
};

/// Programs that compute several steps at once. Between blocks, the program of one step holds the states.
class BlockScans {
 public:
  /// Plans blocks of up to `most` steps with `open(n)`, the program of n steps; `carried` are the bytes of each state.
  void open(std::int64_t most, std::vector<std::int64_t> carried, const std::function<HeldScan(std::int64_t)>& open) {
    carried_ = std::move(carried);
    for (const std::int64_t steps : {64, 16})
      if (steps <= most) blocks_.push_back({steps, open(steps)});
  }
  bool empty() const { return blocks_.empty(); }
  void refresh() {
    for (const Block& b : blocks_) b.scan->refresh();
  }
  /// Runs n steps: by the longest blocks that fit, and the rest by `one`.
  void run(std::int64_t n, Step::Inputs x, void* y, const Transfer& bytes, ferrite::detail::OpenScan& one) {
    std::int64_t at = 0;
    for (const Block& b : blocks_)
      for (; n - at >= b.steps; at += b.steps) {
        move(one, *b.scan);
        run_program(*b.scan, b.steps, x, at, y, bytes);
        b.scan->commit();
        move(*b.scan, one);
      }
    for (; at < n; ++at) {
      run_program(one, 1, x, at, y, bytes);
      one.commit();
    }
  }

 private:
  struct Block {
    std::int64_t steps;
    HeldScan scan;
  };
  void move(const ferrite::detail::OpenScan& from, ferrite::detail::OpenScan& to) const {
    for (std::size_t k = 0; k < carried_.size(); ++k) std::copy_n(from.carry(k), carried_[k], to.carry(k));
  }

  std::vector<Block> blocks_;  ///< ordered from the longest to the shortest
  std::vector<std::int64_t> carried_;
};

using ferrite::detail::OpenScan;

/// Maps the variables of a copy, which is traced, to those of the layer, which the stream follows.
class Originals {
 public:
  Originals(const Layer& layer, const Layer& copy) {
    pair(layer.named_parameters(), copy.named_parameters());
    pair(layer.named_buffers(), copy.named_buffers());
    pair(layer.named_states(), copy.named_states());
  }
  Variable operator()(const Variable& of_copy) const {
    const auto at = of_.find(of_copy.identity());
    return at == of_.end() ? of_copy : at->second;
  }

 private:
  template <class C>
  void pair(const std::vector<Named<C>>& originals, const std::vector<Named<C>>& copies) {
    for (std::size_t i = 0; i < std::min(originals.size(), copies.size()); ++i)
      of_.emplace(copies[i].variable.identity(), originals[i].variable);
  }
  std::unordered_map<const void*, Variable> of_;
};

/// Calls f(first byte, number of bytes) for every contiguous part of a row.
template <class F>
void each_part(const StepState& s, std::int64_t row, const F& f) {
  const Spec spec = s.spec();
  std::int64_t outer = 1, inner = size_of(s.dtype);
  for (int k = 0; k < spec.shape.rank(); ++k) (k < s.rows ? outer : inner) *= k == s.rows ? 1 : spec.shape[k];
  for (std::int64_t o = 0; o < outer; ++o) f((o * spec.shape[s.rows] + row) * inner, inner);
}
void clear(const StepState& s, std::byte* memory, std::int64_t row) {
  each_part(s, row, [&](std::int64_t at, std::int64_t n) { std::fill_n(memory + at, n, std::byte{0}); });
}

void check_rows(const std::string& kind, std::int64_t batch, const StepState& s) {
  const bool has_rows = s.rows >= 0 && s.rows < s.shape.rank() && s.shape[s.rows] == batch;
  if (s.capacity < 0 || !has_rows || (s.capacity > 0 && s.rows != 0))
    throw ShapeError("stream: the state '" + s.name + "' of " + kind + " must have " + std::to_string(batch) +
                     " rows on axis " + std::to_string(s.capacity > 0 ? 0 : s.rows) + ", got " +
                     Spec{s.shape, s.dtype}.str() + " with capacity " + std::to_string(s.capacity));
}
void check_initial(const std::string& kind, const StepState& s, const Tensor& initial) {
  Spec wanted = s.spec();
  wanted.shape.erase(s.rows);
  if (initial.spec() != wanted)
    throw ShapeError("stream: the state '" + s.name + "' of " + kind + " must begin with " + wanted.str() + ", got " +
                     initial.spec().str());
}
[[noreturn]] void throw_full(const std::string& kind, const StepState& s, std::size_t row) {
  throw CapacityError("stream: '" + s.name + "' of " + kind + " is full: row " + std::to_string(row) + " has made " +
                      std::to_string(s.capacity) + " steps; reset it, or declare a larger capacity");
}

std::int64_t least_capacity(const std::vector<StepState>& states, const std::vector<std::size_t>& growing) {
  std::int64_t least = states[growing[0]].capacity;
  for (const std::size_t i : growing) least = std::min(least, states[i].capacity);
  return least;
}

/// Appends the entry [B, ...] that a step gave to a state that grows.
void append(const StepState& s, const std::byte* entries, const std::vector<std::int64_t>& steps, Step::Rows rows,
            std::byte* to) {
  const auto batch = static_cast<std::int64_t>(steps.size()), entry = bytes_of({s.shape, s.dtype}) / batch;
  for (std::int64_t row = 0; row < batch; ++row)
    if (!rows || rows[row])
      std::copy_n(entries + row * entry, entry, to + (row * s.capacity + steps[static_cast<std::size_t>(row)]) * entry);
}

/// A layer's step as an open scan. States that grow are xs of the scan, after the inputs and followed by the number of
/// steps of each row, and their entries are ys, so that appending one copies only that entry.
class OpenStep final : public Step {
 public:
  explicit OpenStep(const StepSource& source)
      : kind_(source.kind),
        batch_(source.inputs[0].batch),
        states_(source.states),
        begin_(source.begin),
        inputs_(source.inputs.size()),
        steps_(static_cast<std::size_t>(batch_)) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      check_rows(kind_, batch_, states_[i]);
      (states_[i].capacity ? growing_ : carried_).push_back(i);
    }
    std::int64_t bytes = 0;
    for (const std::size_t i : carried_) bytes += bytes_of(states_[i].spec());
    spare_.resize(static_cast<std::size_t>(bytes));
    scan_ = opened(source, 1);
    take_initial(source.initial);
    if (!scan_->may_fail()) at_once_ = kAnyNumber;
    begin_states(*this);
    const Spec& y = scan_->y_spec(0);
    out_ = {batch_, y.shape.numel() / batch_, y.dtype};
    for (const StepRows& x : source.inputs) bytes_.x.push_back(bytes_of(x));
    bytes_.y = bytes_of(out_);
    open_blocks(source);
  }
  StepRows result() const override { return out_; }
  Runs runs() const override { return Runs::program; }

  void run(Inputs x, void* y) override {
    check_room(nullptr);
    run_program(*scan_, 1, x, 0, y, bytes_);
  }
  bool never_throws() const override { return growing_.empty() && at_once_ > 1; }
  std::int64_t most_at_once() const override { return growing_.empty() && blocks_.empty() ? 1 : at_once_; }
  std::int64_t sure(std::int64_t n, Inputs) const override {
    if (growing_.empty()) return n;
    return std::min(n, least_capacity(states_, growing_) - *std::max_element(steps_.begin(), steps_.end()));
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    if (growing_.empty()) return blocks_.run(n, x, y, bytes_, *scan_);
    for (std::int64_t t = 0; t < n; ++t, OpenStep::commit()) run_program(*scan_, 1, x, t, y, bytes_);
  }
  /// Runs a step; rows without an x run on zero states, on which nothing fails.
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    check_room(rows[0]);
    put_aside(rows[0]);
    try {
      run_program(*scan_, 1, x, 0, y, bytes_);
    } catch (...) {
      put_back(rows[0]);
      throw;
    }
    put_back(rows[0]);
    return rows[0];
  }
  void commit() override {
    for (std::size_t g = 0; g < growing_.size(); ++g)
      append(states_[growing_[g]], scan_->y(1 + g), steps_, nullptr,
             scan_->x(inputs_ + g));  // an entry may be a state before the step
    scan_->commit();
    count(nullptr);
  }
  void commit_rows(Rows rows) override {
    for (std::size_t g = 0; g < growing_.size(); ++g)
      append(states_[growing_[g]], scan_->y(1 + g), steps_, rows, scan_->x(inputs_ + g));
    scan_->commit();
    put_back(rows);
    count(rows);
  }
  bool commits() const override { return !states_.empty(); }
  void refresh() override {
    if (begin_) take_initial(begin_());  // may refuse the new weights
    scan_->refresh();
    blocks_.refresh();
  }

  void states(const StateVisitor& see) override {
    for (std::size_t i = 0; i < states_.size(); ++i)
      see({.name = states_[i].name,
           .spec = states_[i].spec(),
           .rows = states_[i].rows,
           .first = memory(i),
           .initial = initial_[i]});
    if (!growing_.empty())
      see({.name = "steps",
           .spec = {{batch_}, Dtype::i64},
           .first = reinterpret_cast<std::byte*>(steps_.data()),
           .most = least_capacity(states_, growing_)});
  }
  void states_changed() override { put_steps(); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<OpenStep>(*this); }

 private:
  /// Returns the program of n steps.
  HeldScan opened(const StepSource& source, std::int64_t n) const {
    std::vector<Spec> carries, xs;
    for (const std::size_t i : carried_) carries.push_back(states_[i].spec());
    for (const StepRows& x : source.inputs) xs.push_back(spec_of({n * x.batch, x.width, x.dtype}));
    for (const std::size_t i : growing_) xs.push_back(states_[i].spec());
    if (!growing_.empty()) xs.push_back({{batch_}, Dtype::i64});
    const auto body = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      Tensors given(states_.size());
      for (std::size_t k = 0; k < carried_.size(); ++k) given[carried_[k]] = carry[k];
      for (std::size_t k = 0; k < growing_.size(); ++k) given[growing_[k]] = x[inputs_ + k];
      if (!growing_.empty()) given.push_back(x[x.size() - 1]);
      const StepResult r = source.steps(Tensors(x.begin(), x.begin() + inputs_), given, n);
      ScanStep step{{}, {r.y}};
      for (const std::size_t i : carried_) step.carry.push_back(r.states[i]);
      for (const std::size_t i : growing_) step.y.push_back(r.states[i]);
      return step;
    };
    return HeldScan(std::make_unique<OpenScan>(body, carries, xs, source.originals));
  }
  void open_blocks(const StepSource& source) {
    if (source.single || !OpenStep::never_throws()) return;
    std::int64_t most = bytes_.y;
    for (const std::int64_t x : bytes_.x) most = std::max(most, x);
    std::vector<std::int64_t> carried;
    for (const std::size_t i : carried_) carried.push_back(bytes_of(states_[i].spec()));
    blocks_.open(steps_at_once(most), std::move(carried), [&](std::int64_t n) { return opened(source, n); });
  }

  // ---- states --------------------------------------------------------------------------------------------

  void take_initial(std::vector<Tensor> initial) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (initial[i].defined()) check_initial(kind_, states_[i], initial[i]);
    initial_ = std::move(initial);
  }

  /// Returns the memory of a state from which the next step reads it.
  std::byte* memory(std::size_t i) {
    const auto at = std::find(carried_.begin(), carried_.end(), i);
    if (at != carried_.end()) return scan_->carry(static_cast<std::size_t>(at - carried_.begin()));
    return scan_->x(inputs_ +
                    static_cast<std::size_t>(std::find(growing_.begin(), growing_.end(), i) - growing_.begin()));
  }

  /// Calls f(state, its memory, its spare memory, row) for the carried states of rows other than these.
  template <class F>
  void each_other(Rows rows, const F& f) {
    std::byte* spare = spare_.data();
    for (const std::size_t i : carried_) {
      for (std::int64_t row = 0; row < batch_; ++row)
        if (!rows[row]) f(states_[i], memory(i), spare, row);
      spare += bytes_of(states_[i].spec());
    }
  }
  void put_aside(Rows rows) {
    each_other(rows, [](const StepState& s, std::byte* memory, std::byte* spare, std::int64_t row) {
      each_part(s, row, [&](std::int64_t at, std::int64_t n) { std::copy_n(memory + at, n, spare + at); });
      clear(s, memory, row);
    });
    if (growing_.empty()) return;
    auto* const steps = reinterpret_cast<std::int64_t*>(scan_->x(inputs_ + growing_.size()));
    for (std::int64_t row = 0; row < batch_; ++row)
      if (!rows[row]) steps[row] = 0;
  }
  void put_back(Rows rows) {
    each_other(rows, [](const StepState& s, std::byte* memory, const std::byte* spare, std::int64_t row) {
      each_part(s, row, [&](std::int64_t at, std::int64_t n) { std::copy_n(spare + at, n, memory + at); });
    });
    put_steps();
  }

  // ---- what grows ----------------------------------------------------------------------------------------

  void check_room(Rows rows) const {
    for (const std::size_t i : growing_)
      for (std::size_t row = 0; row < steps_.size(); ++row)
        if ((!rows || rows[row]) && steps_[row] >= states_[i].capacity) throw_full(kind_, states_[i], row);
  }
  void count(Rows rows) {
    if (growing_.empty()) return;
    for (std::size_t row = 0; row < steps_.size(); ++row) steps_[row] += !rows || rows[row] ? 1 : 0;
    put_steps();
  }
  void put_steps() {
    if (!growing_.empty())
      std::copy_n(reinterpret_cast<const std::byte*>(steps_.data()), batch_ * size_of(Dtype::i64),
                  scan_->x(inputs_ + growing_.size()));
  }

  std::string kind_;
  std::int64_t batch_;
  StepRows out_;
  Transfer bytes_;
  std::vector<StepState> states_;
  std::function<std::vector<Tensor>()> begin_;
  std::vector<Tensor> initial_;                 ///< the first value of each state; undefined for zeros
  std::vector<std::size_t> carried_, growing_;  ///< positions of the states that do not grow, and of those that do
  std::size_t inputs_;
  std::vector<std::int64_t> steps_;  ///< by row, the number of steps since it began
  std::vector<std::byte> spare_;     ///< the carried states of rows without an x, while the scan runs
  std::int64_t at_once_ = 1;         ///< kAnyNumber if nothing in the program may fail
  HeldScan scan_;
  BlockScans blocks_;
};

}  // namespace

std::function<Variable(const Variable&)> originals_of(const Layer& layer, const Layer& copy) {
  return Originals(layer, copy);
}

StepSource source_of(const Layer& layer, const StepRows& in) {
  const std::shared_ptr<Layer> copy = evaluating_copy(layer);
  const std::vector<StepState> states = layer.states(in);
  const auto begin = [states] {
    std::vector<Tensor> values;
    for (const StepState& s : states) values.push_back(s.initial.defined() ? contiguous(s.initial.peek()) : Tensor());
    return values;
  };
  return {.kind = layer.kind(),
          .inputs = {in},
          .states = states,
          .steps = [copy](const Tensors& x, const Tensors& given, std::int64_t) { return copy->advance(x[0], given); },
          .initial = begin(),
          .begin = begin,
          .originals = originals_of(layer, *copy)};
}

std::unique_ptr<Step> open_step(const StepSource& source) { return std::make_unique<OpenStep>(source); }

std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together) {
  return open_step(
      {.kind = "values",
       .inputs = {rows.begin(), rows.end()},
       .states = {},
       .steps = [&](const Tensors& x, const Tensors&, std::int64_t) -> StepResult { return {together(x)}; }});
}

std::unique_ptr<Step> traced_step(const Layer& layer, const StepRows& in, std::string& why) {
  const bool says = layer.streams();
  if (says && !layer.states(in).empty()) return open_step(source_of(layer, in));
  try {
    return found_step(layer, in);
  } catch (const ShapeError& e) {
    if (!says) throw;
    why = e.what();           // the layer takes other numbers of steps than were tried
  } catch (const Error& e) {  // the layer is not causal, or looks at values
    why = e.what();
  }
  if (!says || !layer.carried_states().empty()) return nullptr;
  try {
    return open_step(source_of(layer, in));
  } catch (const TraceError& e) {  // the layer may look at values
    why = e.what();
    return nullptr;
  }
}

}  // namespace ferrite::nn::detail
