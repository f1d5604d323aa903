/// Lowers If, Loop and Scan, whose attributes are graphs.
#include <algorithm>
#include <functional>
#include <optional>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::onnx::detail {
namespace {

// Makes a known i64 [] without operations, which a trace would record.
Value known_number(std::int64_t n) { return {Tensor::from<std::int64_t>({n}, {}), ElementType::i64, true}; }
Value known_truth() { return {Tensor::from<bool>({true}, {}), ElementType::boolean, true}; }

/// Returns whether a known condition is true, and reports it where extents are open, as the program depends on it.
bool holds(const Call& call, const Value& condition) {
  const bool yes = condition.numbers().to_vector<bool>()[0];
  if (condition.known.defined()) call.tell({yes});
  return yes;
}

/// Refuses the node unless a condition is one bool.
void check_condition(const Call& call, const Value& v) {
  if (v.type != ElementType::boolean || !v.tensor.defined() || v.tensor.numel() != 1)
    call.refuse("its condition must be one bool");
}

Values either(const Call& call) {
  const Value& condition = call.value(0);
  check_condition(call, condition);
  if (call.known(0)) {
    const bool yes = holds(call, condition);
    call.without_effect(yes ? "else_branch" : "then_branch");  // it is not taken
    call.lowered_as(yes ? "then_branch alone: the condition is known" : "else_branch alone: the condition is known");
    return call.run(yes ? "then_branch" : "else_branch", {});
  }
  const Values yes = call.run("then_branch", {});
  const Values no = call.run("else_branch", {});
  if (yes.size() != no.size()) call.refuse("its branches give different numbers of results");
  Values out;
  for (std::size_t i = 0; i < yes.size(); ++i) {
    if (!yes[i].tensor.defined() || !no[i].tensor.defined() || yes[i].type != no[i].type ||
        yes[i].tensor.shape() != no[i].tensor.shape())
      call.refuse("its condition depends on data, and its branches give results of different types or shapes");
    out.push_back({where(reshape(condition.tensor, {}), yes[i].tensor, no[i].tensor), yes[i].type});
  }
  call.lowered_as("both branches and a choice: the condition depends on data");
  return out;
}

Tensor stacked(const std::vector<Tensor>& parts) { return stack(parts, 0); }

/// The results of a loop whose body runs as a scan.
struct Rolled {
  Values states{};
  Values stacks{};
};

/// Runs `body`, on states and one step of the xs, as one scan; returns nothing where the body does not allow that.
std::optional<Rolled> rolled(const std::function<Values(const Values&, const Tensors&)>& body, const Values& states,
                             const Tensors& xs, std::int64_t steps) {
  Tensors init;
  for (const Value& v : states) {
    if (!v.tensor.defined()) return {};
    init.push_back(v.tensor);
  }
  std::vector<ElementType> types;
  bool same = true;
  const auto step = [&](const Tensors& carry, const Tensors& x) {
    Values in;
    for (std::size_t i = 0; i < states.size(); ++i) in.push_back({carry[i], states[i].type});
    const Values out = body(in, x);
    ScanStep result;
    types.clear();
    for (std::size_t i = 0; i < out.size(); ++i) {
      (i < states.size() ? result.carry : result.y).push_back(out[i].tensor);
      same &= i >= states.size() || out[i].type == states[i].type;
      types.push_back(out[i].type);
    }
    return result;
  };
  try {
    const ScanResult result = scan(step, init, xs, {.steps = steps});
    if (!same) return {};
    Rolled out;
    for (std::size_t i = 0; i < result.carry.size(); ++i) out.states.push_back({result.carry[i], types[i]});
    for (std::size_t i = 0; i < result.y.size(); ++i) out.stacks.push_back({result.y[i], types[states.size() + i]});
    return out;
  } catch (const Error&) {
    return {};  // shapes change from trip to trip, or depend on the number of the trip: the loop is unrolled
  }
}

/// A Loop node with its operands.
class Loop {
 public:
  explicit Loop(const Call& call) : call_(call) {
    if (call.inputs() < 2 && !call.has(0) && !call.has(1)) call.refuse("it has neither a count nor a condition");
    if (call.has(0)) {
      if (!call.known(0)) call.refuse("its number of trips depends on data");
      trips_ = call.known_int(0);
    }
    if (call.has(1)) {
      condition_ = call.value(1);
      check_condition(call, condition_);
    } else {
      condition_ = known_truth();
    }
    for (std::size_t i = 2; i < call.inputs(); ++i) states_.push_back(call.value(i));
    const std::size_t results = call.graph_outputs("body");
    if (call.graph_inputs("body") != states_.size() + 2 || results < states_.size() + 1)
      call.refuse("its body does not fit its states");
    stacks_.resize(results - 1 - states_.size());
  }

  Values run() {
    if (auto out = as_scan()) return *out;
    std::int64_t trip = 0;
    for (; !trips_ || trip < *trips_; ++trip) {
      if (condition_.numbers().is_abstract()) break;
      if (!holds(call_, condition_)) return finish(trip);
      if (trip >= call_.most_trips())
        call_.refuse("it makes more than " + std::to_string(call_.most_trips()) + " trips (ReadOptions::most_trips)");
      step(trip);
    }
    if (trips_ && trip >= *trips_) return finish(trip);
    return capped(trip);
  }

 private:
  Values apply(const Value& trip, const Values& states) const {
    Values in{trip, condition_};
    in.insert(in.end(), states.begin(), states.end());
    return call_.run("body", in);
  }

  void step(std::int64_t trip) {
    Values out = apply(known_number(trip), states_);
    condition_ = out[0];
    check_condition(call_, condition_);
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i] = out[1 + i];
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      const Value& part = out[1 + states_.size() + i];
      if (!part.tensor.defined()) call_.refuse("it stacks what is no tensor");
      stacks_[i].parts.push_back(part.tensor);
      stacks_[i].type = part.type;
    }
  }

  /// Runs many trips whose condition stays true as one scan.
  std::optional<Values> as_scan() const {
    constexpr std::int64_t kFewTrips = 8;
    if (!trips_ || *trips_ <= kFewTrips || condition_.numbers().is_abstract() || !holds(call_, condition_)) return {};
    const bool constants = std::any_of(states_.begin(), states_.end(), [](const Value& v) {
      return v.constant && !is_floating(v.type);  // counts that the body may compute shapes from
    });
    if (constants) return {};
    Loop always(*this);
    always.condition_ = known_truth();
    const auto body = [&](const Values& states, const Tensors& x) {
      Values out = always.apply({x[0], ElementType::i64}, states);
      if (out[0].numbers().is_abstract() || !holds(call_, out[0])) throw OnnxError("onnx: the condition changes");
      out.erase(out.begin());
      return out;
    };
    auto out = rolled(body, states_, {arange(*trips_)}, *trips_);
    if (!out) return {};
    call_.lowered_as("scan of " + std::to_string(*trips_) + " trips");
    Values all = std::move(out->states);
    all.insert(all.end(), out->stacks.begin(), out->stacks.end());
    return all;
  }

  /// Runs the remaining trips where the condition depends on data and is traced: all of them, and results of trips
  /// after the end are discarded.
  Values capped(std::int64_t trip) {
    if (!trips_ || *trips_ > call_.most_trips())
      call_.refuse("the number of its trips depends on data, and it has no count that bounds it");
    if (!stacks_.empty()) call_.refuse("it stacks results, and the number of its trips depends on data");
    Tensor alive = reshape(condition_.tensor, {});
    for (; trip < *trips_; ++trip) {
      const Values before = states_;
      step(trip);
      for (std::size_t i = 0; i < states_.size(); ++i) {
        if (!states_[i].tensor.defined() || states_[i].tensor.spec() != before[i].tensor.spec())
          call_.refuse("its states change their types, and the number of its trips depends on data");
        states_[i] = {where(alive, states_[i].tensor, before[i].tensor), states_[i].type};
      }
      alive = alive && reshape(condition_.tensor, {});
    }
    call_.lowered_as("all " + std::to_string(*trips_) + " trips, those behind the end undone");
    return states_;
  }

  Values finish(std::int64_t trips) {
    Values out = states_;
    const Values none = trips == 0 && !stacks_.empty() ? empty_stacks() : Values();
    for (std::size_t i = 0; i < stacks_.size(); ++i)
      out.push_back(trips == 0 ? none[i] : Value{stacked(stacks_[i].parts), stacks_[i].type});
    call_.lowered_as(std::to_string(trips) + " trips, unrolled");
    return out;
  }

  /// Returns the stacks of a loop without trips, [0, ...]; a trip that is traced and discarded gives the other extents.
  Values empty_stacks() const {
    Loop always(*this);
    always.condition_ = known_truth();
    const auto body = [&](const Values& states, const Tensors& x) {
      Values out = always.apply({x[0], ElementType::i64}, states);
      out.erase(out.begin());
      return out;
    };
    auto out = rolled(body, states_, {zeros({0}, Dtype::i64)}, 0);
    if (!out) call_.refuse("it makes no trip, and the shape of what it stacks is not known");
    return std::move(out->stacks);
  }

  struct Stack {
    std::vector<Tensor> parts{};
    ElementType type = ElementType::undefined;
  };
  const Call& call_;
  std::optional<std::int64_t> trips_{};
  Value condition_{};
  Values states_{};
  std::vector<Stack> stacks_{};
};

Values loop(const Call& call) { return Loop(call).run(); }

/// The axis and direction of the steps of one input or output of a Scan.
struct Way {
  std::int64_t axis = 0;
  bool backwards = false;
};

std::vector<Way> ways(const Call& call, const char* axes, const char* directions, std::size_t n) {
  const auto axis = call.version() >= 9 ? call.integers(axes) : std::vector<std::int64_t>{};
  const auto backwards = call.integers(directions);
  if ((!axis.empty() && axis.size() != n) || (!backwards.empty() && backwards.size() != n))
    call.refuse(std::string(axes) + " and " + directions + " must have " + std::to_string(n) + " elements");
  std::vector<Way> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!axis.empty()) all[i].axis = axis[i];
    if (!backwards.empty() && backwards[i] != 0 && backwards[i] != 1)
      call.refuse(std::string(directions) + " must be 0 or 1");
    all[i].backwards = !backwards.empty() && backwards[i] == 1;
  }
  return all;
}

/// Runs one scan: returns states, then stacks. Step t of `xs` and of the stacks is at t on the first axis.
Values scanned(const Call& call, const Values& states, const Values& xs) {
  Tensors stacks;
  const std::int64_t T = xs[0].tensor.size(0);
  for (const Value& x : xs) {
    if (x.tensor.size(0) != T) call.refuse("its inputs have different numbers of steps");
    stacks.push_back(x.tensor);
  }
  const auto body = [&](const Values& carry, const Tensors& x) {
    Values in = carry;
    for (std::size_t i = 0; i < xs.size(); ++i) in.push_back({x[i], xs[i].type});
    return call.run("body", in);
  };
  if (auto out = rolled(body, states, stacks, T)) {
    call.lowered_as("scan");
    Values all = std::move(out->states);
    all.insert(all.end(), out->stacks.begin(), out->stacks.end());
    return all;
  }
  call.lowered_as("unrolled: its states change their types");
  if (T > call.most_trips()) call.refuse("it has more than " + std::to_string(call.most_trips()) + " steps, unrolled");
  if (T == 0) call.refuse("it has no steps");
  Values now = states;
  std::vector<std::vector<Tensor>> parts;
  Values out;
  for (std::int64_t t = 0; t < T; ++t) {
    Tensors x;
    for (const Tensor& s : stacks) x.push_back(select(s, 0, t));
    out = body(now, x);
    parts.resize(out.size() - states.size());
    for (std::size_t i = 0; i < states.size(); ++i) now[i] = out[i];
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].push_back(out[states.size() + i].tensor);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) now.push_back({stacked(parts[i]), out[states.size() + i].type});
  return now;
}

struct ScanOperands {
  Values states{};
  Values xs{};
};

/// Returns the operands of a Scan from input `first` on, with checked sizes.
ScanOperands operands_of(const Call& call, std::size_t first) {
  const std::int64_t n = call.integer("num_scan_inputs");
  const auto given = static_cast<std::int64_t>(call.inputs()) - static_cast<std::int64_t>(first);
  if (n < 1 || n > given) call.refuse("num_scan_inputs does not fit: " + std::to_string(n));
  ScanOperands all;
  const std::size_t states = call.inputs() - first - static_cast<std::size_t>(n);
  for (std::size_t i = first; i < call.inputs(); ++i) {
    (void)call.tensor(i);
    (i - first < states ? all.states : all.xs).push_back(call.value(i));
  }
  if (call.graph_inputs("body") != call.inputs() - first || call.graph_outputs("body") < states)
    call.refuse("its body does not fit its inputs");
  return all;
}

Tensor steps_first(const Tensor& x, const Way& way) {
  const Tensor moved = movedim(x, {way.axis}, {0});
  return way.backwards ? flip(moved, {0}) : moved;
}

Values scan_node(const Call& call) {
  auto [states, xs] = operands_of(call, 0);
  const std::vector<Way> in = ways(call, "scan_input_axes", "scan_input_directions", xs.size());
  const std::vector<Way> out =
      ways(call, "scan_output_axes", "scan_output_directions", call.graph_outputs("body") - states.size());
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i].tensor = steps_first(xs[i].tensor, in[i]);
  Values results = scanned(call, states, xs);
  for (std::size_t i = 0; i < out.size(); ++i) {
    Tensor& y = results[states.size() + i].tensor;
    if (out[i].backwards) y = flip(y, {0});
    y = movedim(y, {0}, {out[i].axis});
  }
  return results;
}

/// Lowers the Scan of opset 8: input 0 are lengths, and the first axis of every operand is that of rows.
Values scan_of_rows(const Call& call) {
  if (call.has(0)) call.refuse("sequence_lens is not supported");
  const ScanOperands all = operands_of(call, 1);
  const std::vector<Way> in = ways(call, "", "directions", all.xs.size());
  const std::int64_t rows = all.xs[0].tensor.size(0);
  std::vector<std::vector<Tensor>> results(call.graph_outputs("body"));
  Values out;
  for (std::int64_t row = 0; row < rows; ++row) {
    Values states = all.states;
    Values xs = all.xs;
    for (Value& v : states) v.tensor = select(v.tensor, 0, row);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i].tensor = steps_first(select(xs[i].tensor, 0, row), in[i]);
    out = scanned(call, states, xs);
    for (std::size_t i = 0; i < out.size(); ++i) results[i].push_back(out[i].tensor);
  }
  if (rows == 0) call.refuse("it has no rows");
  for (std::size_t i = 0; i < out.size(); ++i) out[i].tensor = stacked(results[i]);
  return out;
}

constexpr Operation kOperations[] = {
    {.name = "If", .lower = either},
    {.name = "Loop", .lower = loop, .static_inputs = 1},
    {.name = "Scan", .lower = scan_of_rows, .since = 8, .until = 8},
    {.name = "Scan", .lower = scan_node, .since = 9},
};

}  // namespace

Operations control_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
