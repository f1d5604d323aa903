#pragma once
/// Helpers of oracles: functions of one and two numbers, and loops along axes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/along_axis.h"

namespace oracles {

/// The oracle of a function of one number.
template <class F>
void map_oracle(std::span<const Dense> in, std::span<Dense> out, F f) {
  std::transform(in[0].values.begin(), in[0].values.end(), out[0].values.begin(), f);
}

/// The oracle of a function of two numbers, whose operands broadcast.
template <class F>
void zip_oracle(std::span<const Dense> in, std::span<Dense> out, F f) {
  for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = f(in[0].broadcast_at(i), in[1].broadcast_at(i)); });
}

/// Returns samples of a function of one number: some numbers, one number, none.
inline std::vector<Sample> numbers(const Attrs& attrs = {}, Range range = {-8, 8}, bool smooth_at_ties = true) {
  std::vector<Sample> list;
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 2}})
    list.push_back({.inputs = {{shape}}, .attrs = attrs, .range = range, .smooth_at_ties = smooth_at_ties});
  return list;
}

/// Returns ln(1 + e^x) without overflow.
inline double softplus_number(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

/// Maps each line by f, which gets its values front to back or, with `reverse`, back to front, and returns as many.
template <class F>
void oracle_lines(const Dense& x, int axis, bool reverse, Dense& out, F&& f) {
  const AlongAxis a(x.shape, axis);
  for (std::int64_t line = 0; line < a.lines(); ++line) {
    const auto at = [&](std::int64_t k) {
      return static_cast<std::size_t>(a.first(line) + (reverse ? a.n - 1 - k : k) * a.inner);
    };
    std::vector<double> v;
    for (std::int64_t k = 0; k < a.n; ++k) v.push_back(x.values[at(k)]);
    const std::vector<double> y = f(v);
    for (std::int64_t k = 0; k < a.n; ++k) out.values[at(k)] = y[static_cast<std::size_t>(k)];
  }
}

/// Calls f with every group of elements of x that differ in these axes only, and with the position of the group: the
/// index with zeros in the axes. Axes ascend.
template <class F>
void for_each_group(const Dense& x, const Shape& axes, F&& f) {
  Shape groups = x.shape, each;
  for (const std::int64_t a : axes) {
    each.push_back(x.shape[static_cast<int>(a)]);
    groups[static_cast<int>(a)] = 1;
  }
  for_each_index(groups, [&](const Shape& at) {
    std::vector<Shape> members;
    for_each_index(each, [&](const Shape& within) {
      Shape i = at;
      for (int k = 0; k < axes.rank(); ++k) i[static_cast<int>(axes[k])] = within[k];
      members.push_back(i);
    });
    f(at, members);
  });
}

/// Computes out = f(the elements of a group), one number for each group; the axes are dropped or get extent 1.
template <class F>
void reduce_groups(const Dense& x, const Shape& axes, Dense& out, F&& f) {
  std::size_t next = 0;
  for_each_group(x, axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    out.values[next++] = f(v);
  });
}

/// Changes the elements of every group in place by f.
template <class F>
void map_groups(const Dense& x, const Shape& axes, Dense& out, F&& f) {
  for_each_group(x, axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    f(v);
    for (std::size_t k = 0; k < v.size(); ++k) out.at(members[k]) = v[k];
  });
}

}  // namespace oracles
