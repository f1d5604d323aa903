/// Writes operations that choose elements by numbers, or that find numbers: gathers, scatters, places of extremes,
/// orders, checks.
#include <algorithm>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::AlongAxis;
using ferrite::detail::IndexAttrs;

/// Writes the number `chosen`, an index along an axis of n elements; one outside the axis is an error.
void write_chosen(const CCall& c, const std::string& number, std::int64_t n) {
  const auto a = c.node().attrs.as<IndexAttrs>();
  const bool known = a.known.value_or(false);
  c.to.line(std::string(a.who ? "const " : "") + "ptrdiff_t chosen = (ptrdiff_t)" + number + ";");
  if (!a.who) c.to.line("if (chosen < 0) chosen += " + text(n) + ";");
  if (known) return;
  c.to.line("if (chosen < 0 || chosen >= " + text(n) + ") return NF_BAD_INDEX;");
  c.body.fails();
}
/// Returns the strides with 0 on an axis.
Shape without(Shape strides, int axis) {
  strides[axis] = 0;
  return strides;
}
std::string element(const CCall& c, const LoweredWindow& w) {
  return "(" + c.at(w) + steps_along(w.spec.shape, w.strides) + ")[0]";
}

// ---- elements at numbers --------------------------------------------------------------------------------------

/// Slices of x chosen by a list of numbers.
void write_index_select(const CCall& c) {
  const LoweredWindow &x = c.in(0), &index = c.in(1), &y = c.out();
  const int axis = c.node().attrs.as<IndexAttrs>().axis;
  const std::string i = "i" + text(axis);
  c.to.open(loop_over(i, y.spec.shape[axis]));
  write_chosen(c, "(" + c.at(index) + " + " + text(index.strides[0]) + " * " + i + ")[0]", x.spec.shape[axis]);
  c.open(y.spec.shape, axis);
  c.to.line(element(c, y) + " = (" + c.at(x) + " + " + text(x.strides[axis]) + " * chosen" +
            steps_along(y.spec.shape, without(x.strides, axis)) + ")[0];");
  c.close(y.spec.shape, axis);
  c.to.close();
}

/// out[i][j] = x[index[i][j]][j] for axis 0, and so on.
void write_gather(const CCall& c) {
  const LoweredWindow &x = c.in(0), &index = c.in(1), &y = c.out();
  const int axis = c.node().attrs.as<IndexAttrs>().axis;
  c.open(y.spec.shape);
  write_chosen(c, element(c, index), x.spec.shape[axis]);
  c.to.line(element(c, y) + " = (" + c.at(x) + " + " + text(x.strides[axis]) + " * chosen" +
            steps_along(y.spec.shape, without(x.strides, axis)) + ")[0];");
  c.close(y.spec.shape);
}

/// x with the elements of a source put, or added, at an index along an axis, in row-major order.
void write_scatter(const CCall& c) {
  const LoweredWindow &x = c.in(0), &index = c.in(1), &source = c.in(2), &y = c.out();
  const int axis = c.node().attrs.as<IndexAttrs>().axis;
  const bool adds = c.node().op->name == "scatter_add";
  write_copy_of(c, x, c.at(y));
  c.open(index.spec.shape);
  write_chosen(c, element(c, index), x.spec.shape[axis]);
  const std::string place = "(" + c.at(y) + " + " + text(y.strides[axis]) + " * chosen" +
                            steps_along(index.spec.shape, without(y.strides, axis)) + ")[0]";
  const std::string t(c_type(c.dtype()));
  if (adds && !is_float(c.dtype())) {  // sums of integers wrap
    c.to.line(place + " = (" + t + ")((u" + t + ")" + place + " + (u" + t + ")" + element(c, source) + ");");
  } else {
    c.to.line(place + (adds ? " += " : " = ") + element(c, source) + ";");
  }
  c.close(index.spec.shape);
}

/// Planes [N, C, ...] and places in them: elements are read, or put into zeros.
void write_plane(const CCall& c) {
  const bool scatters = c.node().op->name == "plane_scatter";
  const LoweredWindow &x = c.in(0), &index = c.in(1), &y = c.out();
  const std::int64_t planes = x.spec.shape[0] * x.spec.shape[1];
  const std::int64_t m = index.spec.shape.numel() / std::max<std::int64_t>(planes, 1);
  const std::int64_t n = (scatters ? y : x).spec.shape.numel() / std::max<std::int64_t>(planes, 1);
  const bool adds = std::get<bool>(*c.node().attrs.at(1)), known = std::get<bool>(*c.node().attrs.at(2));
  const std::string from = c.dense(x), at = c.dense(index);
  if (scatters) c.to.line(loop_over("i", planes * n) + " (" + c.at(y) + ")[i] = 0;");
  c.to.open(loop_over("i", planes * m));
  c.to.line("const ptrdiff_t chosen = (ptrdiff_t)(" + at + ")[i];");
  if (!known) c.to.line("if (chosen < 0 || chosen >= " + text(n) + ") return NF_BAD_INDEX;"), c.body.fails();
  const std::string place = "[i / " + text(m) + " * " + text(n) + " + chosen]";
  c.to.line(scatters ? "(" + c.at(y) + ")" + place + (adds ? " += " : " = ") + "(" + from + ")[i];"
                     : "(" + c.at(y) + ")[i] = (" + from + ")" + place + ";");
  c.to.close();
}

/// x itself; a value outside of its bounds is an error.
void write_checked(const CCall& c) {
  const LoweredWindow& x = c.in(0);
  const auto bound = [&](std::size_t i) {
    const Scalar s = std::get<Scalar>(*c.node().attrs.at(i));
    if (c.dtype() == Dtype::f32) return c_number(static_cast<float>(s.real()));
    if (c.dtype() == Dtype::f64) return c_number(s.real());
    const std::int64_t most = c.dtype() == Dtype::i32 ? INT32_MAX : INT64_MAX;
    const std::int64_t least = c.dtype() == Dtype::i32 ? INT32_MIN : INT64_MIN;
    return c_number(std::clamp(s.integer(), least, most), c.dtype());
  };
  c.open(x.spec.shape);
  c.to.line("const " + std::string(c_type(c.dtype())) + " value = " + element(c, x) + ";");
  c.to.line("if (!(value >= " + bound(0) + " && value <= " + bound(1) + ")) return NF_BAD_INDEX;");
  c.body.fails();
  c.to.line("(" + c.at(c.out()) + steps_along(x.spec.shape, x.spec.shape.strides()) + ")[0] = value;");
  c.close(x.spec.shape);
}

// ---- places of extremes, and orders ---------------------------------------------------------------------------

/// Opens loops over the lines of row-major x along an axis: `line` is the address of the first element of each, and
/// `number` its number.
struct Lines {
  AlongAxis a;
  std::string type;

  Lines(const CCall& c, const std::string& x, int axis)
      : a(c.in(0).spec.shape, axis), type(c_type(c.in(0).spec.dtype)) {
    c.to.open(loop_over("number", a.lines()));
    c.to.line("const " + type + " *const line = " + x + " + number / " + text(a.inner) + " * " + text(a.n * a.inner) +
              " + number % " + text(a.inner) + ";");
  }
};

/// The number of the first largest or smallest element; a NaN counts as both.
void write_arg(const CCall& c) {
  const int axis = c.node().attrs.as<ferrite::detail::ArgAttrs>().axis;
  const std::string x = c.dense(c.in(0)), more = c.node().op->name == "argmax" ? ">" : "<";
  const Lines lines(c, x, axis);
  const std::string step = text(lines.a.inner);
  c.to.line("ptrdiff_t best = 0;");
  c.to.line(loop_over("k", lines.a.n));
  c.to.line("  if (line[best * " + step + "] == line[best * " + step + "] && (line[k * " + step + "] " + more +
            " line[best * " + step + "] || line[k * " + step + "] != line[k * " + step + "])) best = k;");
  c.to.line("(" + c.at(c.out()) + ")[number] = best;");
  c.to.close();
}

/// Returns the C condition under which element a is sorted before element b. NaN is larger than every number.
std::string before(const std::string& a, const std::string& b, bool descending) {
  const std::string &low = descending ? b : a, &high = descending ? a : b;
  return low + " < " + high + " || (" + low + " == " + low + " && " + high + " != " + high + ")";
}

/// Writes the numbers of the elements of `line` in order to `order`, by insertion: equal elements stay as they are. Of
/// k elements only the first k places count.
void write_order(const CCall& c, const std::string& order, std::int64_t n, std::int64_t k, const std::string& step,
                 bool descending) {
  c.to.line("ptrdiff_t count = 0;");
  c.to.open(loop_over("e", n));
  c.to.line("ptrdiff_t place = count;");
  c.to.open("for (; place > 0; --place)");
  const std::string mine = "line[e * " + step + "]",
                    other = "line[(ptrdiff_t)(" + order + ")[place - 1] * " + step + "]";
  c.to.line("if (!(" + before(mine, other, descending) + ")) break;");
  c.to.line("if (place < " + text(k) + ") (" + order + ")[place] = (" + order + ")[place - 1];");
  c.to.close();
  c.to.line("if (place < " + text(k) + ") (" + order + ")[place] = e;");
  c.to.line("if (count < " + text(k) + ") ++count;");
  c.to.close();
}

/// Elements in order along an axis and where they were, all of them or the first k.
void write_sort(const CCall& c) {
  const bool top = c.node().op->name == "topk";
  const auto& attrs = c.node().attrs;
  const int axis = static_cast<int>(std::get<std::int64_t>(*attrs.at(0)));
  const std::int64_t n = c.in(0).spec.shape[axis], k = top ? std::get<std::int64_t>(*attrs.at(1)) : n;
  if (top && !std::get<bool>(*attrs.at(3))) c.body.refuse(c.node(), "its results are not sorted; ask for sorted ones");
  if (c.in(0).spec.dtype == Dtype::boolean) c.body.refuse(c.node(), "it sorts truth values; cast them to i32");
  if (k == 0) return;
  const bool descending = std::get<bool>(*attrs.at(top ? 2 : 1));
  const std::string x = c.dense(c.in(0)), order = c.body.scratch(Dtype::i64, k);
  const Lines lines(c, x, axis);
  const std::string step = text(lines.a.inner);
  write_order(c, order, n, k, step, descending);
  c.to.open(loop_over("k", k));
  c.to.line("const ptrdiff_t at = (number / " + step + " * " + text(k) + " + k) * " + step + " + number % " + step +
            ";");
  c.to.line("(" + c.at(c.out()) + ")[at] = line[(ptrdiff_t)(" + order + ")[k] * " + step + "];");
  c.to.line("(" + c.at(c.out(1)) + ")[at] = (" + order + ")[k];");
  c.to.close();
  c.to.close();
}

/// The number of the k-th smallest element of each line.
void write_rank_index(const CCall& c) {
  const int axis = static_cast<int>(std::get<std::int64_t>(*c.node().attrs.at(0)));
  const std::int64_t k = std::get<std::int64_t>(*c.node().attrs.at(1));
  if (c.in(0).spec.dtype == Dtype::boolean) c.body.refuse(c.node(), "it orders truth values; cast them to i32");
  const std::string x = c.dense(c.in(0)), order = c.body.scratch(Dtype::i64, k);
  const Lines lines(c, x, axis);
  write_order(c, order, lines.a.n, k, text(lines.a.inner), false);
  c.to.line("(" + c.at(c.out()) + ")[number] = (" + order + ")[" + text(k - 1) + "];");
  c.to.close();
}

/// The place at which each value keeps a sorted row sorted.
void write_searchsorted(const CCall& c) {
  const LoweredWindow &sorted = c.in(0), &values = c.in(1);
  const bool right = std::get<bool>(*c.node().attrs.at(0));
  const std::int64_t n = sorted.spec.shape[-1], all = values.spec.shape.numel();
  const std::int64_t rows = n == 0 || sorted.spec.shape.rank() == 1 ? 1 : sorted.spec.shape.numel() / n;
  const std::string row = c.dense(sorted), value = c.dense(values);
  c.to.open(loop_over("i", all));
  c.to.line("const " + std::string(c_type(sorted.spec.dtype)) + " *const row = " + row + " + i / " +
            text(std::max<std::int64_t>(all / rows, 1)) + " * " + text(n) + ";");
  c.to.line("ptrdiff_t first = 0, count = " + text(n) + ";");
  c.to.open("while (count > 0)");
  c.to.line("const ptrdiff_t half = count / 2;");
  c.to.line("const int here = row[first + half] " + std::string(right ? ">" : ">=") + " (" + value + ")[i];");
  c.to.line("first = here ? first : first + half + 1;");
  c.to.line("count = here ? half : count - half - 1;");
  c.to.close();
  c.to.line("(" + c.at(c.out()) + ")[i] = first;");
  c.to.close();
}

constexpr CWriter kWriters[] = {
    {"argmax", write_arg},
    {"argmin", write_arg},
    {"checked", write_checked},
    {"gather", write_gather},
    {"index_select", write_index_select},
    {"plane_gather", write_plane},
    {"plane_scatter", write_plane},
    {"rank_index", write_rank_index},
    {"scatter", write_scatter},
    {"scatter_add", write_scatter},
    {"searchsorted", write_searchsorted},
    {"sort", write_sort},
    {"topk", write_sort},
};

}  // namespace

std::span<const CWriter> choice_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
