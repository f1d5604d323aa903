#pragma once
/// Loops over the elements that a function along axes takes together: for oracles.
#include <vector>

#include "ferrite/tensor/oracle.h"

namespace ferrite::detail {

/// Gives f every group of elements of x that differ in these axes only, and the position of the group: the index with
/// zeros in the axes. Axes ascend.
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

/// out = f(the elements of a group), one for each; the axes are dropped or of extent 1.
template <class F>
void reduce_groups(const Dense& x, const Shape& axes, Dense& out, F&& f) {
  std::size_t next = 0;
  for_each_group(x, axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    out.values[next++] = f(v);
  });
}

/// f changes the elements of every group where they are.
template <class F>
void map_groups(const Dense& x, const Shape& axes, Dense& out, F&& f) {
  for_each_group(x, axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    f(v);
    for (std::size_t k = 0; k < v.size(); ++k) out.at(members[k]) = v[k];
  });
}

}  // namespace ferrite::detail
