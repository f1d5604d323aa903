/// Einstein's summation, composed of diagonals, sums and batched matrix products.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite {
namespace detail {
namespace {

/// An axis by name: a letter, or -1, -2, ... for the axes of "...", counted from the last.
using Axis = int;
using Axes = std::vector<Axis>;

/// Which axes the operands and the result have. "..." is `ellipsis` until the ranks are known.
struct Equation {
  static constexpr Axis ellipsis = 0;
  std::vector<Axes> operands;
  Axes result;
  bool has_result = false;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& what) {
  throw ValueError("einsum: " + what + ": \"" + std::string(equation) + "\"");
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Equation parse(std::string_view text) {
  Equation e;
  Axes* side = &e.operands.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (is_letter(c)) {
      side->push_back(c);
    } else if (c == ',' && !e.has_result) {
      side = &e.operands.emplace_back();
    } else if (text.substr(i, 2) == "->" && !e.has_result) {
      e.has_result = true;
      side = &e.result;
      ++i;
    } else if (text.substr(i, 3) == "...") {
      if (std::ranges::count(*side, Equation::ellipsis) != 0) refuse(text, "one \"...\" for an operand is allowed");
      side->push_back(Equation::ellipsis);
      i += 2;
    } else {
      refuse(text, "'" + std::string(1, c) + "' stands where a letter, \",\", \"->\" or \"...\" may stand");
    }
  }
  return e;
}

/// The axes of "..." in place of its mark.
Axes spread(const Axes& side, int count) {
  Axes out;
  for (const Axis a : side) {
    if (a != Equation::ellipsis) out.push_back(a);
    if (a == Equation::ellipsis)
      for (int k = count; k > 0; --k) out.push_back(-k);
  }
  return out;
}

std::int64_t times(const Axes& axes, Axis a) { return std::ranges::count(axes, a); }
bool holds(const Axes& axes, Axis a) { return times(axes, a) != 0; }

/// The letters that occur once, in order, behind the axes of "...".
Axes implied_result(const Equation& e, int ellipsis_axes) {
  std::map<Axis, std::int64_t> seen;
  for (const Axes& operand : e.operands)
    for (const Axis a : operand) ++seen[a];
  Axes out = spread({Equation::ellipsis}, ellipsis_axes);
  for (const auto& [a, n] : seen)
    if (n == 1 && a != Equation::ellipsis) out.push_back(a);
  return out;
}

/// Axes by name with their extents, of all operands together.
using Extents = std::map<Axis, std::int64_t>;

/// The equation with "..." spread over the axes that it stands for.
Equation resolved(std::string_view text, std::span<const Spec> operands) {
  Equation e = parse(text);
  if (e.operands.size() != operands.size())
    throw ValueError("einsum: \"" + std::string(text) + "\" has " + std::to_string(e.operands.size()) +
                     " operands, got " + std::to_string(operands.size()));
  int most = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const int letters = static_cast<int>(e.operands[k].size()) - holds(e.operands[k], Equation::ellipsis);
    const int rest = operands[k].shape.rank() - letters;
    if (rest < 0 || (rest > 0 && !holds(e.operands[k], Equation::ellipsis)))
      throw_shape("einsum", "operand " + std::to_string(k) + " of \"" + std::string(text) + "\" has the shape " +
                                operands[k].shape.str());
    e.operands[k] = spread(e.operands[k], rest);
    if (rest > most) most = rest;
  }
  e.result = e.has_result ? spread(e.result, most) : Axes();
  if (!e.has_result) e.result = implied_result(e, most);
  for (const Axis a : e.result) {
    bool known = false;
    for (const Axes& operand : e.operands) known |= holds(operand, a);
    if (a > 0 && !known)
      refuse(text, "no operand has the result's axis '" + std::string(1, static_cast<char>(a)) + "'");
    if (times(e.result, a) > 1)
      refuse(text, "the result has the axis '" + std::string(1, static_cast<char>(a)) + "' more than once");
  }
  if (static_cast<int>(e.result.size()) > Shape::kMaxRank)
    throw_shape("einsum", "the result of \"" + std::string(text) + "\" has more than 8 axes");
  return e;
}

Extents extents_of(const Equation& e, std::string_view text, std::span<const Spec> operands) {
  Extents all;
  for (std::size_t k = 0; k < operands.size(); ++k)
    for (std::size_t i = 0; i < e.operands[k].size(); ++i) {
      const std::int64_t n = operands[k].shape[static_cast<int>(i)];
      std::int64_t& common = all.try_emplace(e.operands[k][i], n).first->second;
      if (common == 1) common = n;
      if (n != common && n != 1)
        throw_shape("einsum", "extents " + std::to_string(common) + " and " + std::to_string(n) +
                                  " of one axis differ in \"" + std::string(text) + "\"");
    }
  return all;
}

/// A tensor and the names of its axes.
struct Named {
  Tensor x;
  Axes axes;
};

/// Without the axis at `i`, which has extent 1.
void drop(Named& t, std::size_t i) {
  t.x = squeeze(t.x, static_cast<std::int64_t>(i));
  t.axes.erase(t.axes.begin() + static_cast<std::ptrdiff_t>(i));
}

/// Each axis once: diagonals are taken, extents of 1 that broadcast are dropped.
Named simplified(const Tensor& x, const Axes& axes, const Extents& extents) {
  Named t{x, axes};
  for (std::size_t i = 0; i < t.axes.size();) {
    if (t.x.shape()[static_cast<int>(i)] == 1 && extents.at(t.axes[i]) != 1) {
      drop(t, i);
      continue;
    }
    const auto twin = std::find(t.axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.axes.end(), t.axes[i]);
    if (twin == t.axes.end()) {
      ++i;
      continue;
    }
    const auto j = twin - t.axes.begin();
    if (t.x.shape()[static_cast<int>(j)] == 1 && extents.at(t.axes[i]) != 1) {
      drop(t, static_cast<std::size_t>(j));
      continue;
    }
    const Axis both = t.axes[i];
    t.x = diagonal(t.x, 0, static_cast<std::int64_t>(i), j);
    t.axes.erase(twin);
    t.axes.erase(t.axes.begin() + static_cast<std::ptrdiff_t>(i));
    t.axes.push_back(both);
  }
  return t;
}

/// Summed over the axes that nobody else has.
void sum_alone(Named& t, const Axes& needed) {
  Shape over;
  Axes left;
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    if (holds(needed, t.axes[i])) {
      left.push_back(t.axes[i]);
    } else {
      over.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (over.rank()) t.x = sum(t.x, over);
  t.axes = left;
}

std::int64_t count(const Axes& axes, const Extents& extents) {
  std::int64_t n = 1;
  for (const Axis a : axes) n = checked_mul(n, extents.at(a), "einsum");
  return n;
}

/// The axes in this order, each group made one.
Tensor grouped(const Named& t, std::initializer_list<const Axes*> groups, const Extents& extents) {
  Shape order, shape;
  for (const Axes* group : groups) {
    for (const Axis a : *group) order.push_back(std::ranges::find(t.axes, a) - t.axes.begin());
    shape.push_back(count(*group, extents));
  }
  return reshape(permute(t.x, order), shape);
}

/// The product of two, summed over what both have and nobody needs.
Named product(const Named& a, const Named& b, const Axes& needed, const Extents& extents) {
  Axes batch, inner, rows, columns;
  for (const Axis x : a.axes) (!holds(b.axes, x) ? rows : holds(needed, x) ? batch : inner).push_back(x);
  for (const Axis x : b.axes)
    if (!holds(a.axes, x)) columns.push_back(x);
  const Tensor left = grouped(a, {&batch, &rows, &inner}, extents);
  const Tensor right = grouped(b, {&batch, &inner, &columns}, extents);
  Named out;
  out.axes = batch;
  out.axes.insert(out.axes.end(), rows.begin(), rows.end());
  out.axes.insert(out.axes.end(), columns.begin(), columns.end());
  if (out.axes.size() > Shape::kMaxRank)
    throw_shape("einsum", "a product of two operands has " + std::to_string(out.axes.size()) +
                              " axes, more than 8; sum some of them or change the order of the operands");
  Shape shape;
  for (const Axis x : out.axes) shape.push_back(extents.at(x));
  out.x = reshape(inner.empty()   ? left * right
                  : batch.empty() ? matmul(select(left, 0, 0), select(right, 0, 0))
                                  : matmul(left, right),
                  shape);
  return out;
}

struct EinsumAttrs {
  Label equation{};
  static constexpr auto fields = attr_list(attr("equation", &EinsumAttrs::equation));
};

std::vector<Spec> specs_of(Inputs in) {
  std::vector<Spec> specs;
  for (std::size_t k = 0; k < in.size(); ++k) specs.push_back(in[k].spec());
  return specs;
}

struct Einsum {
  using Attributes = EinsumAttrs;
  static constexpr auto name = "einsum", onnx = "Einsum";
  static constexpr auto summary = "sum of products along axes by letter (Einstein's summation)";

  static Tensor parts(Inputs in, const Attributes& a) {
    const std::vector<Spec> specs = specs_of(in);
    const Equation e = resolved(a.equation.text(), specs);
    const Extents extents = extents_of(e, a.equation.text(), specs);
    std::vector<Named> operands;
    for (std::size_t k = 0; k < in.size(); ++k) operands.push_back(simplified(in[k], e.operands[k], extents));
    /// What the result and the operands from k on have, but for operand `but`.
    const auto needed = [&](std::size_t k, std::size_t but) {
      Axes all = e.result;
      for (; k < operands.size(); ++k)
        if (k != but) all.insert(all.end(), operands[k].axes.begin(), operands[k].axes.end());
      return all;
    };
    for (std::size_t k = 0; k < operands.size(); ++k) sum_alone(operands[k], needed(0, k));
    Named total = operands[0];
    for (std::size_t k = 1; k < operands.size(); ++k) total = product(total, operands[k], needed(k + 1, k), extents);
    sum_alone(total, e.result);
    // An axis of the result that every operand has with extent 1 was never dropped: all are there.
    Shape order;
    for (const Axis x : e.result) order.push_back(std::ranges::find(total.axes, x) - total.axes.begin());
    return permute(total.x, order);
  }
};

}  // namespace

Family einsum_family() {
  static constexpr const Primitive* list[] = {&composite<Einsum>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  std::vector<Spec> specs;
  for (const Tensor& x : operands) {
    check_float(x, "einsum");
    if (x.dtype() != operands[0].dtype())
      throw_dtype("einsum", "dtypes differ: " + operands[0].spec().str() + " and " + x.spec().str());
    specs.push_back(x.spec());
  }
  (void)extents_of(resolved(equation, specs), equation, specs);
  return composed<Einsum>(OperandList(operands), {Label::of(equation)});
}
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}

}  // namespace ferrite
