// The programs that tests run in other implementations.
#include "exchange/program_cases.h"

#include <cmath>
#include <limits>

#include "conformance/oracles/oracle.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/window_attributes.h"
#include "support/operations.h"

namespace exchange_test {
namespace {

using ferrite::Attrs;
using ferrite::Dtype;
using ferrite::Primitive;
using ferrite::Scalar;
using ferrite::Shape;
using ferrite::Spec;
using ferrite::Tensor;
using ferrite::Tensors;
using ferrite::detail::ArgAttrs;
using ferrite::detail::CastAttrs;
using ferrite::detail::Literals;
using ferrite::detail::PoolAttrs;
using ferrite::detail::ReductionAttrs;
using ferrite::detail::Sample;

Tensors apply(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  return op.apply(ferrite::OperandList(in), attrs);
}

Tensor random(const Primitive& op, const Spec& spec, std::uint64_t number, double low, double high) {
  const ferrite::RandomKey key{5, ferrite::stream_of(op.name), number};
  return ferrite::cast(ferrite::uniform(spec.shape, key, low, high, Dtype::f64), spec.dtype);
}

/// Returns numbers as a tensor of any dtype, repeated as often as needed.
Tensor repeated(const std::vector<double>& v, const Spec& spec) {
  std::vector<double> all(static_cast<std::size_t>(spec.shape.numel()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = v[i % v.size()];
  return ferrite::cast(Tensor::from(all, spec.shape), spec.dtype);
}

double tolerance_of(Dtype dtype) { return dtype == Dtype::f32 ? 4e-6 : 1e-12; }

/// Returns a case of one application of an operation, without results that are kept for its gradient only.
ProgramCase application(const Primitive& op, const Tensors& in, const Attrs& attrs, Dtype real, std::string what) {
  const bool sequence = op.name.ends_with("_sequence");
  const auto f = [&](const Tensors& x) {
    Tensors out = apply(op, x, attrs);
    if (sequence) out.pop_back();
    return out;
  };
  return case_of(std::string(op.name) + " " + what, f, in, tolerance_of(real));
}

/// Returns the dtypes for which a pointwise operation has kernels.
std::vector<Dtype> dtypes_of(const Primitive& op) {
  std::vector<Dtype> list;
  for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::boolean})
    if (op.block(t)) list.push_back(t);
  return list;
}

Tensors pointwise_inputs(const Primitive& op, Dtype dtype, const std::vector<Shape>& shapes) {
  Tensors in;
  const bool condition = op.name == "where";
  const auto domain = oracles::of(op).domain;
  const double low = dtype == Dtype::boolean ? 0 : domain.low;
  const double high = dtype == Dtype::boolean ? 2 : domain.high;
  for (int k = 0; k < op.arity; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const Dtype own = condition && k == 0 ? Dtype::boolean : dtype;
    const bool two = own == Dtype::boolean;
    const Tensor x = random(op, {shapes[i], two ? Dtype::i32 : own}, i, two ? 0 : low, two ? 2 : high);
    in.push_back(two ? ferrite::cast(x, Dtype::boolean) : x);
  }
  return in;
}

/// Returns the ends of the domain, and special floats beyond them.
std::vector<double> special_values(const Primitive& op) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto [low, high] = oracles::of(op).domain;
  return {low, high, 0, -0.0, 1, -1, 0.5, -0.5, infinity, -infinity, std::nan(""), 1e30, -1e30, 7.5, -7.5, 2, -6};
}

void add_special(const Primitive& op, Dtype dtype, std::vector<ProgramCase>& list) {
  const std::vector<double> v = special_values(op);
  const auto n = static_cast<std::int64_t>(v.size());
  const Tensor all = repeated(v, {{n, 1}, dtype});
  if (op.arity == 1) list.push_back(application(op, {all}, {}, dtype, "special values"));
  if (op.arity == 2 && op.name != "pow")
    list.push_back(application(op, {all, repeated(v, {{1, n}, dtype})}, {}, dtype, "special values"));
}

/// Adds the tail of gelu, where it is tiny, relative to our values.
void add_tail(const Primitive& op, std::vector<ProgramCase>& list) {
  const Tensor x = Tensor::from({-2.0, -5.0, -8.0, -11.0, -11.5, -14.0, -20.0, -30.0, -36.0});
  const Tensor wanted = apply(op, {x}, {})[0];
  list.push_back(case_of(
      "gelu tail", [&](const Tensors& in) -> Tensors { return {apply(op, in, {})[0] / wanted}; }, {x}, 1e-12));
}

std::vector<ProgramCase> pointwise_cases(const Primitive& op) {
  std::vector<ProgramCase> list;
  for (const Dtype dtype : dtypes_of(op)) {
    const std::string type(name_of(dtype));
    list.push_back(
        application(op, pointwise_inputs(op, dtype, {{3, 1, 5}, {4, 1}, {5}}), {}, dtype, type + " broadcast"));
    list.push_back(
        application(op, pointwise_inputs(op, dtype, {{257}, {257}, {257}}), {}, dtype, type + " same shapes"));
    if (is_float(dtype)) add_special(op, dtype, list);
    if (op.name == "gelu" && dtype == Dtype::f64) add_tail(op, list);
    if (op.arity < 2 || dtype == Dtype::boolean) continue;
    const Scalar literal = is_float(dtype) ? Scalar(0.75) : Scalar(3);
    Tensors in = pointwise_inputs(op, dtype, {{6}, {6}, {6}});
    in.pop_back();
    list.push_back(application(op, in, op.arity == 3 ? Literals{.c = literal} : Literals{.b = literal}, dtype,
                               type + " last one literal"));
    if (op.arity == 2) list.push_back(application(op, in, Literals{.a = literal}, dtype, type + " first one literal"));
  }
  return list;
}

/// Returns a sample's inputs, with floats in the given dtype.
Tensors sample_inputs(const Primitive& op, const ferrite::detail::Sample& sample, Dtype real) {
  Tensors in;
  std::size_t next = 0;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const Spec& s = sample.inputs[i];
    if (is_float(s.dtype)) {
      in.push_back(random(op, {s.shape, real}, i, sample.range.low, sample.range.high));
      if (op.name == "searchsorted" && i == 0) in[0] = ferrite::sort(in[0], -1).values;
      continue;
    }
    std::vector<std::int64_t> v(static_cast<std::size_t>(s.shape.numel()));
    for (std::int64_t& x : v) x = sample.indices.at(next++ % sample.indices.size());
    in.push_back(ferrite::cast(Tensor::from(v, s.shape), s.dtype));
  }
  return in;
}

std::vector<ProgramCase> sample_cases(const Primitive& op) {
  std::vector<ProgramCase> list;
  int number = 0;
  for (const ferrite::detail::Sample& sample : oracles::samples(op))
    for (const Dtype real : {Dtype::f32, Dtype::f64})
      list.push_back(application(op, sample_inputs(op, sample, real), sample.attrs, real,
                                 "sample " + std::to_string(number++) + " " + sample.attrs.str()));
  return list;
}

/// Adds casts of NaN and of values that do not fit to integers, and a reduction and a choice with NaN.
void add_extremes(const Primitive& op, std::vector<ProgramCase>& list) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from({1e30, -1e30, infinity, -infinity, std::nan(""), 2.9, -2.9, -0.0, 0x1p31, -0x1p31,
                                 0x1p63, -0x1p63, 0x1p31 - 1, 0x1p31 - 0.5, -0x1p31 - 1, 1e-310});
  if (op.name == "cast") {
    for (const Dtype from : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16})
      for (const Dtype to : {Dtype::i32, Dtype::i64, Dtype::i8, Dtype::boolean, Dtype::f64})
        list.push_back(application(op, {ferrite::cast(x, from)}, CastAttrs{to}, from,
                                   std::string(name_of(from)) + " extremes to " + std::string(name_of(to))));
    const Tensor ties = Tensor::from<float>(
        {1 + 0x1p-11F, 1 + 0x3p-11F, 1 + 0x1p-8F, 1 + 0x3p-8F, 65519, 65520, 0x1p-24F, 0x1p-25F, 0x1p-133F});
    for (const Dtype to : {Dtype::f16, Dtype::bf16})
      list.push_back(application(op, {ties}, CastAttrs{to}, Dtype::f32, "rounded to " + std::string(name_of(to))));
    const Tensor wide = Tensor::from<std::int64_t>(
        {std::int64_t{1} << 32, -1, (std::int64_t{1} << 31) + 5, -(std::int64_t{1} << 40) - 7});
    for (const Dtype to : {Dtype::i32, Dtype::i8})
      list.push_back(application(op, {wide}, CastAttrs{to}, Dtype::f64, "wraps to " + std::string(name_of(to))));
  }
  const Tensor rows = Tensor::from(
      {1.0, std::nan(""), 3.0, std::nan(""), 2.0, 5.0, 5.0, -1.0, -infinity, -infinity, -infinity, -infinity}, {3, 4});
  const bool extremum = op.name == "amax" || op.name == "amin";
  if (extremum) list.push_back(application(op, {rows}, ReductionAttrs{{1}, false}, Dtype::f64, "NaN"));
  if (op.name == "max_pool_indices") {
    const double nan = std::nan("");
    const Tensor plane = Tensor::from({1.0, nan, nan, 2.0, -infinity, -infinity, 5.0, 5.0}, {1, 1, 8});
    for (const bool adaptive : {true, false}) {
      const PoolAttrs windows{
          .kernel = {4}, .stride = {4}, .before = {0}, .dilation = {1}, .size = {2}, .adaptive = adaptive};
      list.push_back(application(op, {plane}, windows, Dtype::f64, adaptive ? "NaN, adaptive" : "NaN"));
    }
  }
  if (op.name.starts_with("arg")) list.push_back(application(op, {rows}, ArgAttrs{1, false}, Dtype::f64, "NaN"));
}

/// Returns the same values in a dtype that operations compute with, exactly.
Tensor computed(const Tensor& x) {
  if (!ferrite::is_storage_only(x.dtype())) return x;
  return ferrite::cast(x, ferrite::has_gradient(x.dtype()) ? Dtype::f32 : Dtype::i32);
}

/// Adds the gradient of a sequence as a tape computes it: with all results reached, and with the last one only.
void add_gradients(const Primitive& op, const ferrite::detail::Sample& sample, int number,
                   std::vector<ProgramCase>& list) {
  const Tensors in = sample_inputs(op, sample, Dtype::f64);
  for (const bool all : {true, false}) {
    const auto f = [&](const Tensors& x) {
      ferrite::Tape tape;
      Tensors operands, variables;
      for (const Tensor& t : x) {
        operands.push_back(t);
        if (!is_float(t.dtype()) || (!all && variables.size() == 3)) continue;
        operands.back() = tape.watch(t);
        variables.push_back(operands.back());
      }
      const Tensors out = apply(op, operands, sample.attrs);
      const std::size_t states = op.name == "lstm_sequence" ? 3 : 2;
      Tensor loss = ferrite::sum(ferrite::square(out[states - 1]));
      for (std::size_t k = 0; all && k + 1 < states; ++k) loss = loss + ferrite::sum(ferrite::sin(out[k]));
      return tape.grad(loss, std::span<const Tensor>(variables.data(), variables.size()));
    };
    const std::string name = std::string(op.name) + "_grad sample " + std::to_string(number);
    list.push_back(case_of(name + (all ? "" : ", last state only"), f, in, 1e-10));
  }
}

std::vector<ProgramCase> gradient_cases(const Primitive& op) {
  const Primitive& sequence = support::operation(op.name.substr(0, op.name.size() - 5));
  std::vector<ProgramCase> list;
  int number = 0;
  for (const ferrite::detail::Sample& sample : oracles::samples(sequence))
    add_gradients(sequence, sample, number++, list);
  return list;
}

}  // namespace

ProgramCase case_of(const std::string& name, const std::function<Tensors(const Tensors&)>& f, const Tensors& in,
                    double tolerance) {
  // Arguments and results are exchanged in NumPy's files, which have no bf16: types that are only stored are cast
  // inside the program.
  std::vector<Spec> specs;
  Tensors given;
  for (const Tensor& x : in) {
    given.push_back(computed(x));
    specs.push_back(given[given.size() - 1].spec());
  }
  const auto g = [&](const Tensors& x) {
    Tensors operands, out;
    for (std::size_t i = 0; i < in.size(); ++i) operands.push_back(ferrite::cast(x[i], in[i].dtype()));
    for (const Tensor& y : f(operands)) out.push_back(computed(y));
    return out;
  };
  return {name, ferrite::trace(g, specs), {}, given, g(given), tolerance};
}

std::vector<ProgramCase> operation_cases(const Primitive& op) {
  if (op.is_pointwise()) return pointwise_cases(op);
  if (op.name.ends_with("_sequence_grad")) return gradient_cases(op);
  std::vector<ProgramCase> list = sample_cases(op);
  add_extremes(op, list);
  return list;
}

}  // namespace exchange_test
