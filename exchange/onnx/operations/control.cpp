/// If, Loop and Scan.
#include <algorithm>
#include <array>
#include <optional>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

// ---- If --------------------------------------------------------------------------------------------------

/// A condition that is known runs one branch alone; the other may hold anything. Else both are computed.
Values if_(const Call& call) {
  if (call.known(0)) {
    const bool yes = call.known_int(0) != 0;
    (void)call.graph_outputs("then_branch"), (void)call.graph_outputs("else_branch");
    call.lowered_as(yes ? "its then_branch" : "its else_branch");
    return call.run(yes ? "then_branch" : "else_branch", {});
  }
  const Values then = call.run("then_branch", {}), otherwise = call.run("else_branch", {});
  if (then.size() != otherwise.size()) call.refuse("its branches have different numbers of outputs");
  const Tensor condition = reshape(call.tensor(0), {});
  Values out;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (!then[i].tensor.defined() || !otherwise[i].tensor.defined())
      call.refuse("its condition depends on data, and output " + std::to_string(i) + " is no tensor in both branches");
    if (then[i].type != otherwise[i].type || then[i].tensor.shape() != otherwise[i].tensor.shape())
      call.refuse("its condition depends on data, and output " + std::to_string(i) + " is " +
                  then[i].tensor.spec().str() + " in one branch and " + otherwise[i].tensor.spec().str() +
                  " in the other");
    out.push_back({where(condition, then[i].tensor, otherwise[i].tensor), then[i].type});
  }
  call.lowered_as("both branches, of which one is chosen");
  return out;
}

// ---- Loop ------------------------------------------------------------------------------------------------

Value number(std::int64_t n) { return {full({}, n, Dtype::i64), ElementType::i64, true}; }
Value truth(bool b) { return {full({}, b ? 1 : 0, Dtype::boolean), ElementType::boolean, true}; }

/// What comes out of the steps of a loop: the values carried, and the parts of each stack.
struct Steps {
  Values carried;
  std::vector<Values> stacks;
};

/// A value that can be read now.
std::optional<bool> known_truth(const Value& v) {
  if (!v.tensor.defined() || v.tensor.is_abstract()) return {};
  return reshape(v.tensor, {}).item<bool>();
}

Value stack_of(const Call& call, const Values& parts, std::size_t i) {
  Tensors all;
  for (const Value& v : parts) {
    if (!v.tensor.defined()) call.refuse("the parts of output " + std::to_string(i) + " are no tensors");
    if (v.tensor.shape() != parts[0].tensor.shape())
      call.refuse("the parts of output " + std::to_string(i) + " have different shapes");
    all.push_back(v.tensor);
  }
  return {stack(std::span<const Tensor>(all.data(), all.size()), 0), parts[0].type};
}

/// So many steps as one scan, whose body is traced once.
Values scanned_loop(const Call& call, std::int64_t trips, const Values& first) {
  const std::size_t carried = first.size(), stacks = call.outputs() - carried;
  Tensors init;
  for (const Value& v : first) {
    if (!v.tensor.defined()) call.refuse("carries a value that is no tensor over " + std::to_string(trips) + " steps");
    init.push_back(v.tensor);
  }
  std::vector<ElementType> types;
  const ScanResult result = scan(
      [&](const Tensors& carry, const Tensors& x) {
        Values in = {{x[0], ElementType::i64}, truth(true)};
        for (std::size_t i = 0; i < carried; ++i) in.push_back({carry[i], first[i].type});
        const Values out = call.run("body", in);
        if (known_truth(out[0]) != true)
          call.refuse("its condition depends on data, and it has " + std::to_string(trips) +
                      " steps, more than are unrolled (" + std::to_string(call.most_trips()) + ")");
        ScanStep step;
        types.clear();
        for (std::size_t i = 0; i < carried; ++i) step.carry.push_back(out[1 + i].tensor);
        for (std::size_t i = 0; i < stacks; ++i) step.y.push_back(out[1 + carried + i].tensor);
        for (std::size_t i = 0; i < stacks; ++i) types.push_back(out[1 + carried + i].type);
        return step;
      },
      init, {arange(0, trips, 1, Dtype::i64)});
  call.lowered_as("a scan of " + std::to_string(trips) + " steps");
  Values out;
  for (std::size_t i = 0; i < carried; ++i) out.push_back({result.carry[i], first[i].type});
  for (std::size_t i = 0; i < stacks; ++i) out.push_back({result.y[i], types[i]});
  return out;
}

Values loop(const Call& call) {
  const bool bounded = call.has(0);
  if (bounded && !call.known(0)) call.refuse("its number of steps depends on data");
  std::optional<bool> go = true;
  if (call.has(1)) {
    if (!call.known(1)) call.refuse("its condition depends on data");
    go = call.known_int(1) != 0;
  }
  const std::int64_t trips = bounded ? call.known_int(0) : std::numeric_limits<std::int64_t>::max();
  Values carried;
  for (std::size_t i = 2; i < call.inputs(); ++i) carried.push_back(call.value(i));
  if (call.graph_inputs("body") != carried.size() + 2 || call.graph_outputs("body") < carried.size() + 1)
    call.refuse("its body takes and gives another number of values than it carries");
  const std::size_t stacks = call.graph_outputs("body") - 1 - carried.size();
  if (go == true && bounded && trips > call.most_trips()) return scanned_loop(call, trips, carried);

  std::vector<Values> parts(stacks);
  std::int64_t step = 0;
  for (; step < trips && go == true; ++step) {
    if (step == call.most_trips())
      call.refuse("makes more than " + std::to_string(step) + " steps, and no input says how many");
    Values in = {number(step), truth(true)};
    in.insert(in.end(), carried.begin(), carried.end());
    const Values out = call.run("body", in);
    go = known_truth(out[0]);
    if (!go && step + 1 < trips) call.refuse("its condition depends on data");
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = out[1 + i];
    for (std::size_t i = 0; i < stacks; ++i) parts[i].push_back(out[1 + carried.size() + i]);
  }
  call.lowered_as(std::to_string(step) + " unrolled steps");
  Values out = carried;
  for (std::size_t i = 0; i < stacks; ++i) {
    if (parts[i].empty())
      call.refuse("makes no step, so that the shape of output " + std::to_string(carried.size() + i) + " is not known");
    out.push_back(stack_of(call, parts[i], carried.size() + i));
  }
  return out;
}

// ---- Scan ------------------------------------------------------------------------------------------------

std::vector<std::int64_t> list_of(const Call& call, std::string_view name, std::size_t n) {
  std::vector<std::int64_t> list = call.integers(name);
  if (list.empty()) list.assign(n, 0);
  if (list.size() != n)
    call.refuse(std::string(name) + " must hold " + std::to_string(n) + " numbers, got " + std::to_string(list.size()));
  return list;
}

int axis_of(const Call& call, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    call.refuse("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool backwards(const Call& call, std::int64_t direction) {
  if (direction != 0 && direction != 1) call.refuse("directions are 0 and 1, got " + std::to_string(direction));
  return direction == 1;
}

/// An axis moved to another place, the others in their order.
Tensor moved(const Tensor& x, int from, int to) {
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(to, from);
  return permute(x, order);
}

Values scan_(const Call& call) {
  if (call.version() < 9)
    call.refuse("version 8 of Scan, with batches and lengths, is not supported; convert the model to opset 9");
  const auto xs = static_cast<std::size_t>(std::max<std::int64_t>(call.integer("num_scan_inputs"), 0));
  if (xs < 1 || xs > call.inputs())
    call.refuse("num_scan_inputs is " + std::to_string(xs) + " of " + std::to_string(call.inputs()) + " inputs");
  const std::size_t carried = call.inputs() - xs;
  const std::size_t outputs = call.graph_outputs("body");
  if (call.graph_inputs("body") != call.inputs() || outputs < carried)
    call.refuse("its body takes and gives another number of values than it carries and scans");
  const std::size_t stacks = outputs - carried;
  const auto in_axes = list_of(call, "scan_input_axes", xs), in_ways = list_of(call, "scan_input_directions", xs);
  const auto out_axes = list_of(call, "scan_output_axes", stacks),
             out_ways = list_of(call, "scan_output_directions", stacks);
  Tensors init, sequences;
  for (std::size_t i = 0; i < carried; ++i) init.push_back(call.tensor(i));
  for (std::size_t i = 0; i < xs; ++i) {
    const Tensor& x = call.tensor(carried + i);
    Tensor first = moved(x, axis_of(call, in_axes[i], x.rank()), 0);
    sequences.push_back(backwards(call, in_ways[i]) ? flip(first, {0}) : first);
  }
  std::vector<ElementType> types;
  const ScanResult result = scan(
      [&](const Tensors& carry, const Tensors& x) {
        Values in;
        for (std::size_t i = 0; i < carried; ++i) in.push_back({carry[i], call.type(i)});
        for (std::size_t i = 0; i < xs; ++i) in.push_back({x[i], call.type(carried + i)});
        const Values out = call.run("body", in);
        ScanStep step;
        types.clear();
        for (std::size_t i = 0; i < carried; ++i) step.carry.push_back(out[i].tensor);
        for (std::size_t i = carried; i < outputs; ++i) step.y.push_back(out[i].tensor), types.push_back(out[i].type);
        return step;
      },
      init, sequences);
  call.lowered_as("a scan");
  Values out;
  for (std::size_t i = 0; i < carried; ++i) out.push_back({result.carry[i], call.type(i)});
  for (std::size_t i = 0; i < stacks; ++i) {
    Tensor y = result.y[i];
    if (backwards(call, out_ways[i])) y = flip(y, {0});
    out.push_back({moved(y, 0, axis_of(call, out_axes[i], y.rank())), types[i]});
  }
  return out;
}

constexpr std::array<Operation, 3> kRows{{{.name = "If", .lower = if_, .static_inputs = 1},
                                          {.name = "Loop", .lower = loop, .static_inputs = 3},
                                          {.name = "Scan", .lower = scan_}}};

}  // namespace

Operations control_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
