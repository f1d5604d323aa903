// Conformance of structured operations on their samples: values, layouts, derivatives, plans.
#include <boost/test/unit_test.hpp>

#include "cases.h"
#include "conformance/oracles/oracle.h"
#include "ferrite/compile/graph.h"
#include "support/guarded.h"

namespace conformance {
namespace {

std::vector<ferrite::detail::Dense> dense_of(const Tensors& in) {
  std::vector<ferrite::detail::Dense> out;
  for (const Tensor& x : in) {
    ferrite::detail::Dense d(x.spec());
    d.values = doubles(x);
    out.push_back(d);
  }
  return out;
}

std::string describe(const Primitive& op, const Sample& sample) {
  std::string s(op.name);
  for (const Spec& in : sample.inputs) s += " " + in.str();
  return s + " " + sample.attrs.str();
}

/// Compares with the oracle of plain loops: exactly if nothing is rounded, else within a few units of the largest term.
void check_values(const Primitive& op, const Sample& sample, Dtype real, std::uint32_t call) {
  const Tensors in = inputs_of(op, sample, real, call);
  const Tensors out = apply(op, in, sample.attrs);
  const std::vector<ferrite::detail::Dense> dense = dense_of(in);
  std::vector<ferrite::detail::Dense> wanted;
  for (const Tensor& y : out) wanted.emplace_back(y.spec());
  oracles::of(op).evaluate(dense, wanted, sample.attrs);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const std::vector<double> got = doubles(out[k]);
    const double unit = out[k].dtype() == Dtype::f32 ? 1.2e-7 : 2.3e-16;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double exact = wanted[k].values[i];
      const bool close =
          same(got[i], exact) || std::fabs(got[i] - exact) <= 32 * unit * std::max(1.0, std::fabs(exact));
      BOOST_TEST(close, describe(op, sample)
                            << ": element " << i << " of result " << k << " is " << got[i] << ", exact " << exact);
      if (!close) return;
    }
  }
}

/// Checks that strided and transposed operands have the bits of contiguous ones, and so do operands in memory of
/// another owner, which can neither be written nor be read farther than documented, aligned as tensors are or off by an
/// element.
void check_layouts(const Primitive& op, const Sample& sample, Dtype real) {
  const Tensors in = inputs_of(op, sample, real, 1);
  const Tensors wanted = apply(op, in, sample.attrs);
  Tensors strided, turned, frozen, off;
  for (const Tensor& x : in) {
    strided.push_back(scattered(x));
    turned.push_back(x.rank() < 2 ? x : ferrite::transpose(ferrite::contiguous(ferrite::transpose(x))));
    frozen.push_back(support::frozen_copy(x));
    off.push_back(support::frozen_copy(x, static_cast<std::size_t>(size_of(x.dtype()))));
  }
  for (const Tensors* other : {&strided, &turned, &frozen, &off}) {
    const Tensors got = apply(op, *other, sample.attrs);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      BOOST_TEST(first_difference(doubles(got[k]), doubles(wanted[k])) == -1,
                 describe(op, sample) << ": operands of another layout differ");
  }
}

void check_gradients(const Primitive& op, const Sample& sample) {
  if (!(op.differentiable() || op.is_composite()) || !sample.smooth) return;
  if (sample.attrs.body && sample.inputs[0].dtype != Dtype::f64) return;
  const Tensors in = inputs_of(op, sample, Dtype::f64, 2);
  Tensors points;
  std::int64_t elements = 0;
  for (const Tensor& x : in)
    if (ferrite::is_float(x.dtype())) {
      points.push_back(x);
      elements += x.numel();
    }
  if (points.empty() || elements == 0) return;
  const std::size_t results = apply(op, in, sample.attrs).size();
  const std::size_t read =
      op.second_order_by_reference ? op.reference(ferrite::OperandList(in), sample.attrs).size() : results;
  const auto f = [&](const Tensors& x) {
    Tensors all;
    std::size_t next = 0;
    for (const Tensor& t : in) all.push_back(ferrite::is_float(t.dtype()) ? x[next++] : t);
    const Tensors out = apply(op, all, sample.attrs);
    Tensors rows;
    for (std::size_t k = 0; k < results; ++k)
      // Leaves out one of several results, and those that only the gradient reads.
      if (ferrite::is_float(out[k].dtype()) && (results == 1 || k != 1) && k < read)
        rows.push_back(ferrite::cast(ferrite::reshape(out[k], {-1}), Dtype::f64));
    if (rows.empty()) return Tensor();
    return ferrite::concat(std::span<const Tensor>(rows.data(), rows.size()), 0);
  };
  const Tensor y = f(points);
  if (!y.defined() || op.name == "cast") return;
  ferrite::GradcheckOptions options{.order = 2};
  if (elements > 40) options.directions = 6;
  const auto report = ferrite::gradcheck(f, points, options);
  BOOST_TEST(report.ok, describe(op, sample) << ": " << report.str());
  const std::string fault = fault_of_jvp(f, points);
  BOOST_TEST(fault.empty(), describe(op, sample) << ": " << fault);
}

void check_sample(const Primitive& op, const Sample& sample, std::uint32_t& call) {
  const bool runs_program = sample.attrs.body != nullptr;
  // A call of a compiled function does not appear in programs, which hold its operations.
  const bool traced = !runs_program || dynamic_cast<const ferrite::detail::Body*>(sample.attrs.body.get());
  for (const Dtype real : {Dtype::f32, Dtype::f64}) {
    if (runs_program && real != sample.inputs[0].dtype) continue;  // the program fixes its types
    check_values(op, sample, real, call++);
    if (!sample.inputs.empty()) check_layouts(op, sample, real);
    if (traced) check_planned(op, inputs_of(op, sample, real, 1), sample.attrs);
    if (op.is_composite()) check_whole(op, inputs_of(op, sample, real, 1), sample.attrs);
  }
  check_gradients(op, sample);
}

/// Returns samples that random values never are: zeros, equal elements, ties between some, if the range holds them.
std::vector<Sample> corners_of(const Sample& sample) {
  bool any = false;
  for (const Spec& s : sample.inputs) any |= ferrite::is_float(s.dtype) && s.shape.numel() > 0;
  if (!any || !sample.values.empty() || !(sample.range.low < 0) || !(sample.range.high > 0)) return {};
  const double high = std::min(1.0, sample.range.high), low = std::max(-1.0, sample.range.low);
  std::vector<Sample> list;
  for (const std::vector<double>& values :
       {std::vector<double>{0}, std::vector<double>{high}, std::vector<double>{0, high, 0, low, -0.0, high, high}}) {
    list.push_back(sample);
    list.back().values = values;
    list.back().smooth = sample.smooth && sample.smooth_at_ties;
  }
  return list;
}

}  // namespace

void check_structured(const Primitive& op) {
  BOOST_TEST(!oracles::samples(op).empty());
  std::uint32_t call = 0;
  for (const Sample& sample : oracles::samples(op)) {
    check_sample(op, sample, call);
    for (const Sample& corner : corners_of(sample)) check_sample(op, corner, call);
  }
}

}  // namespace conformance
