/// Writes operations on windows: convolutions and pooling.
#include <algorithm>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/kernel/pool_axes.h"
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::PoolAttrs;
using ferrite::detail::PoolAxes;
using ferrite::detail::PoolAxis;

/// One axis of the products of a convolution: position q of the results reads elements q * step + reads[k] of the
/// operand, and is element q * to_step + to of the result. What lies before the operand or after it is 0.
struct AxisPlan {
  std::int64_t extent = 1;  ///< elements of the operand
  std::int64_t count = 1;   ///< positions
  std::int64_t step = 1;
  std::vector<std::int64_t> reads{0};
  std::vector<std::int64_t> taps{0};           ///< the number of the tap of each read
  std::int64_t to = 0, to_step = 1, size = 1;  ///< of the result

  std::int64_t lowest() const { return reads.empty() ? 0 : std::min<std::int64_t>(0, std::ranges::min(reads)); }
  /// Returns the extent of the padded operand.
  std::int64_t padded() const {
    const std::int64_t last = reads.empty() ? 0 : (count - 1) * step + std::ranges::max(reads);
    return std::max(extent, last + 1) - lowest();
  }
};

/// A convolution over up to three axes as products of weights with shifted rows.
class Convolution {
 public:
  Convolution(const CCall& c, bool transposed)
      : c_(c), transposed_(transposed), a_(c.node().attrs.as<ConvolutionAttrs>()) {
    c.wants_floats();
    const Shape &x = c.in(0).spec.shape, &w = c.in(1).spec.shape, &y = c.out().spec.shape;
    N_ = x[0], groups_ = a_.groups;
    reads_ = x[1] / groups_, writes_ = y[1] / groups_;  // channels of a group
    for (int i = 2; i < x.rank(); ++i) kernel_.push_back(w[i]);
    for (const std::int64_t k : kernel_) all_taps_ *= k;
    x_plane_ = x.numel() / std::max<std::int64_t>(x[0] * x[1], 1);
    y_plane_ = y.numel() / std::max<std::int64_t>(y[0] * y[1], 1);
  }

  void write() {
    const std::string x = c_.dense(c_.in(0));
    const std::string bias = c_.step.in.size() > 2 ? c_.dense(c_.in(2)) : "";
    const int axes = kernel_.rank();
    std::vector<std::vector<AxisPlan>> phases(3, {AxisPlan{}});
    for (int i = 0; i < axes; ++i) phases[static_cast<std::size_t>(3 - axes + i)] = plans_of(i);
    for (const AxisPlan& d : phases[0])
      for (const AxisPlan& h : phases[1])
        for (const AxisPlan& v : phases[2]) write_pass({d, h, v}, x, bias);
  }

 private:
  /// Returns the plan of an axis: one, or one for each phase of the stride of a transposed convolution.
  std::vector<AxisPlan> plans_of(int i) const {
    const std::int64_t extent = c_.in(0).spec.shape[i + 2], size = c_.out().spec.shape[i + 2];
    const std::int64_t stride = a_.stride[i], before = a_.before[i], dilation = a_.dilation[i];
    std::vector<AxisPlan> plans;
    if (!transposed_) {
      AxisPlan p{.extent = extent, .count = size, .step = stride, .reads = {}, .taps = {}, .size = size};
      for (std::int64_t k = 0; k < kernel_[i]; ++k) p.reads.push_back(k * dilation - before), p.taps.push_back(k);
      return {p};
    }
    // Element p of the result meets element q of the operand where q * stride + tap * dilation - before = p.
    for (std::int64_t phase = 0; phase < std::min(stride, size); ++phase) {
      AxisPlan p{.extent = extent,
                 .count = (size - phase + stride - 1) / stride,
                 .reads = {},
                 .taps = {},
                 .to = phase,
                 .to_step = stride,
                 .size = size};
      for (std::int64_t k = 0; k < kernel_[i]; ++k) {
        const std::int64_t at = phase + before - k * dilation;
        if (at % stride == 0) p.reads.push_back(at / stride), p.taps.push_back(k);
      }
      plans.push_back(p);
    }
    return plans;
  }

  /// Writes the weights [in, out, taps] of each group as [out, in, taps], the order of the terms.
  std::string turned(const std::string& w) {
    const std::string to = c_.body.scratch(c_.dtype(), c_.in(1).spec.shape.numel());
    c_.to.open(loop_over("g", groups_));
    c_.to.open(loop_over("o", writes_));
    c_.to.open(loop_over("r", reads_));
    c_.to.line(loop_over("t", all_taps_) + " (" + to + ")[((g * " + text(writes_) + " + o) * " + text(reads_) +
               " + r) * " + text(all_taps_) + " + t] = (" + w + ")[((g * " + text(reads_) + " + r) * " + text(writes_) +
               " + o) * " + text(all_taps_) + " + t];");
    for (int k = 0; k < 3; ++k) c_.to.close();
    return to;
  }

  /// Returns the weights [groups, out, in, taps]; writes them first where they lie otherwise.
  std::string weights() {
    if (weights_.empty()) {
      weights_ = c_.dense(c_.in(1));
      if (transposed_) weights_ = turned(weights_);
    }
    return weights_;
  }

  void write_pass(const std::array<AxisPlan, 3>& axis, const std::string& x, const std::string& bias) {
    const AxisPlan &d = axis[0], &h = axis[1], &v = axis[2];
    const bool whole = std::ranges::all_of(axis, [](const AxisPlan& p) { return p.padded() == p.extent; });
    const std::int64_t row = v.padded(), plane = h.padded() * row, channel = d.padded() * plane;
    const std::int64_t taps = std::ssize(d.reads) * std::ssize(h.reads) * std::ssize(v.reads), K = reads_ * taps;
    std::vector<std::int32_t> offsets;
    for (std::int64_t r = 0; r < reads_; ++r)
      for (const std::int64_t i : d.reads)
        for (const std::int64_t j : h.reads)
          for (const std::int64_t k : v.reads)
            offsets.push_back(static_cast<std::int32_t>(r * channel + (i - d.lowest()) * plane +
                                                        (j - h.lowest()) * row + k - v.lowest()));
    if (offsets.empty()) offsets.push_back(0);
    const std::string table = c_.body.module().constant(Tensor::from<std::int32_t>(offsets, Shape{std::ssize(offsets)}),
                                                        "places of the terms of a convolution");
    const std::string image = whole ? "" : c_.body.scratch(c_.dtype(), reads_ * channel);
    const std::string columns = weights_by_columns(axis, K);
    const std::string weights = !columns.empty()    ? ""
                                : taps == all_taps_ ? this->weights()
                                                    : picked(axis, this->weights(), taps);
    const std::string t(c_type(c_.dtype()));
    c_.to.open(loop_over("i", N_ * groups_));
    const std::string from = x + " + i * " + text(reads_ * x_plane_);
    if (!whole) write_image(axis, from, image);
    c_.to.line("const " + t + " *const image = " + (whole ? from : image) + ";");
    c_.to.line(t + " *const y = " + c_.at(c_.out()) + " + i * " + text(writes_ * y_plane_) + " + " +
               text((d.to * h.size + h.to) * v.size + v.to) + ";");
    const std::string group = groups_ > 1 ? "i % " + text(groups_) + " * " : "";
    if (!columns.empty()) {
      write_positions(axis, columns, table, K, bias);
      return c_.to.close();
    }
    c_.to.open(loop_over("d", d.count));
    c_.to.open(loop_over("h", h.count));
    const std::string kernel = c_.kernel("windows");
    c_.to.line(kernel + "(" + weights + (groups_ > 1 ? " + " + group + text(writes_ * K) : "") + ", image + d * " +
               text(d.step * plane) + " + h * " + text(h.step * row) + ", " + table + ", " + text(v.step) + ", " +
               (bias.empty() ? "(const " + t + " *)0" : bias + (groups_ > 1 ? " + " + group + text(writes_) : "")) +
               ", y + (d * " + text(d.to_step * h.size) + " + h * " + text(h.to_step) + ") * " + text(v.size) + ", " +
               text(y_plane_) + ", " + text(v.to_step) + ", " + text(writes_) + ", " + text(K) + ", " + text(v.count) +
               ");");
    for (int k = 0; k < 3; ++k) c_.to.close();
  }

  /// Returns constant weights as [groups, K, out] where that is worth it: few positions lie in a row, so that lanes run
  /// along channels; else "".
  std::string weights_by_columns(const std::array<AxisPlan, 3>& axis, std::int64_t K) const {
    const Tensor* w = constant_of(c_, c_.in(1));
    if (!w || transposed_ || axis[2].count >= 12 || writes_ < 8 || K == 0) return "";
    const Tensor rows = reshape(contiguous(*w), {groups_, writes_, K});
    return c_.body.module().constant(contiguous(permute(rows, {0, 2, 1})), "weights of a convolution, turned");
  }
  /// Writes the products of one group with lanes along the channels of the result: what each position reads becomes a
  /// row.
  void write_positions(const std::array<AxisPlan, 3>& axis, const std::string& columns, const std::string& table,
                       std::int64_t K, const std::string& bias) {
    const AxisPlan &d = axis[0], &h = axis[1], &v = axis[2];
    const std::int64_t positions = d.count * h.count * v.count, row = v.padded(), plane = h.padded() * row;
    const std::string read = c_.body.scratch(c_.dtype(), positions * K);
    const std::string found = c_.body.scratch(c_.dtype(), positions * writes_);
    const std::string group = groups_ > 1 ? "i % " + text(groups_) + " * " : "";
    c_.to.open(loop_over("p", positions));
    c_.to.line("const ptrdiff_t from = p / " + text(h.count * v.count) + " * " + text(d.step * plane) + " + p / " +
               text(v.count) + " % " + text(h.count) + " * " + text(h.step * row) + " + p % " + text(v.count) + " * " +
               text(v.step) + ";");
    c_.to.line(loop_over("k", K) + " (" + read + ")[p * " + text(K) + " + k] = image[from + " + table + "[k]];");
    c_.to.close();
    c_.to.line(c_.kernel("rows") + "(" + read + ", " + text(K) + ", 1, " + columns +
               (groups_ > 1 ? " + " + group + text(K * writes_) : "") + ", " + text(writes_) + ", " + found + ", " +
               text(writes_) + ", " + text(positions) + ", " + text(K) + ", " + text(writes_) + ");");
    c_.to.open(loop_over("o", writes_));
    const std::string more =
        bias.empty() ? "" : " + (" + bias + (groups_ > 1 ? " + " + group + text(writes_) : "") + ")[o]";
    c_.to.line(loop_over("p", positions) + " y[o * " + text(y_plane_) + " + p] = (" + found + ")[p * " + text(writes_) +
               " + o]" + more + ";");
    c_.to.close();
  }

  /// Writes the weights of the taps that one phase meets.
  std::string picked(const std::array<AxisPlan, 3>& axis, const std::string& w, std::int64_t taps) {
    if (taps == 0) return w;
    std::vector<std::int32_t> numbers;
    const auto extent = [&](int i) { return kernel_.rank() >= 3 - i ? kernel_[kernel_.rank() - 3 + i] : 1; };
    for (const std::int64_t i : axis[0].taps)
      for (const std::int64_t j : axis[1].taps)
        for (const std::int64_t k : axis[2].taps)
          numbers.push_back(static_cast<std::int32_t>((i * extent(1) + j) * extent(2) + k));
    const std::string table = c_.body.module().constant(Tensor::from<std::int32_t>(numbers, Shape{taps}), "taps");
    const std::int64_t rows = groups_ * writes_ * reads_;
    const std::string to = c_.body.scratch(c_.dtype(), rows * taps);
    c_.to.open(loop_over("r", rows));
    c_.to.line(loop_over("t", taps) + " (" + to + ")[r * " + text(taps) + " + t] = (" + w + ")[r * " + text(all_taps_) +
               " + " + table + "[t]];");
    c_.to.close();
    return to;
  }

  /// Writes the operand of a group with zeros around it.
  void write_image(const std::array<AxisPlan, 3>& axis, const std::string& from, const std::string& image) {
    const AxisPlan &d = axis[0], &h = axis[1], &v = axis[2];
    const std::int64_t row = v.padded(), rows = h.padded(), planes = d.padded();
    c_.to.line(loop_over("e", reads_ * planes * rows * row) + " (" + image + ")[e] = 0;");
    c_.to.open(loop_over("r", reads_ * d.extent));
    c_.to.open(loop_over("k", h.extent));
    c_.to.line(loop_over("e", v.extent) + " (" + image + ")[((r / " + text(d.extent) + " * " + text(planes) +
               " + r % " + text(d.extent) + " + " + text(-d.lowest()) + ") * " + text(rows) + " + k + " +
               text(-h.lowest()) + ") * " + text(row) + " + e + " + text(-v.lowest()) + "] = (" + from + ")[(r * " +
               text(h.extent) + " + k) * " + text(v.extent) + " + e];");
    c_.to.close();
    c_.to.close();
  }

  const CCall& c_;
  bool transposed_;
  ConvolutionAttrs a_;
  Shape kernel_;
  std::string weights_;
  std::int64_t N_ = 1, groups_ = 1, reads_ = 1, writes_ = 1, all_taps_ = 1, x_plane_ = 1, y_plane_ = 1;
};

void write_convolution(const CCall& c) { Convolution(c, c.node().op->name == "convolution_transposed").write(); }

// ---- pooling --------------------------------------------------------------------------------------------------

/// Writes the first and the last element of window `i` along an axis, as f and l.
void write_window(const CCall& c, const PoolAxis& a, const std::string& i, const std::string& f, const std::string& l,
                  const std::string& step) {
  if (a.adaptive) {
    c.to.line("const ptrdiff_t " + f + " = " + i + " * " + text(a.n) + " / " + text(a.size) + ", " + l + " = ((" + i +
              " + 1) * " + text(a.n) + " + " + text(a.size - 1) + ") / " + text(a.size) + ", " + step + " = 1;");
    return;
  }
  c.to.line("ptrdiff_t " + f + " = " + i + " * " + text(a.stride) + " - " + text(a.before) + ", " + l + " = " + f +
            " + " + text((a.kernel - 1) * a.dilation + 1) + ";");
  c.to.line("const ptrdiff_t " + step + " = " + text(a.dilation) + ";");
  c.to.line("if (" + l + " > " + text(a.n) + ") " + l + " = " + text(a.n) + ";");
  c.to.line("while (" + f + " < 0) " + f + " += " + step + ";");
}

/// Writes loops over planes and windows, and calls `window` inside; `element` is called in loops over what each holds.
template <class Window, class Element, class End>
void each_window(const CCall& c, const PoolAxes& axes, std::int64_t planes, const Window& window,
                 const Element& element, const End& end, bool descends = false) {
  const PoolAxis &d = axes.axis[0], &h = axes.axis[1], &w = axes.axis[2];
  c.to.open(loop_over("plane", planes));
  c.to.open(loop_over("i", d.size));
  write_window(c, d, "i", "d0", "d1", "ds");
  c.to.open(loop_over("j", h.size));
  write_window(c, h, "j", "h0", "h1", "hs");
  c.to.open(descends ? "for (ptrdiff_t k = " + text(w.size - 1) + "; k >= 0; --k)" : loop_over("k", w.size));
  write_window(c, w, "k", "w0", "w1", "ws");
  window();
  c.to.line("for (ptrdiff_t p = d0; p < d1; p += ds)");
  c.to.line("  for (ptrdiff_t q = h0; q < h1; q += hs)");
  c.to.open("    for (ptrdiff_t r = w0; r < w1; r += ws)");
  c.to.line("const ptrdiff_t e = (p * " + text(h.n) + " + q) * " + text(w.n) + " + r;");
  element();
  c.to.close();
  end();
  for (int k = 0; k < 4; ++k) c.to.close();
}

void write_pool(const CCall& c) {
  const std::string_view op = c.node().op->name;
  const LoweredWindow& x = c.in(0);
  const auto attrs = c.node().attrs.as<PoolAttrs>();
  const bool spreads = op == "pool_spread", places = op == "max_pool_indices";
  const Dtype dtype = x.spec.dtype;
  if (!is_float(dtype)) c.body.refuse(c.node(), "it takes floats in C");
  const PoolAxes axes =
      ferrite::detail::axes_of_pool(spreads ? attrs.space : ferrite::detail::space_of(x.spec.shape), attrs);
  const PoolAxis &d = axes.axis[0], &h = axes.axis[1], &w = axes.axis[2];
  const std::int64_t planes = x.spec.shape[0] * x.spec.shape[1], all = d.n * h.n * w.n,
                     windows = d.size * h.size * w.size;
  const std::string t(c_type(dtype)), from = c.dense(x), y = c.at(c.out());
  const std::string infinity = dtype == Dtype::f64 ? "NF_INFINITY_D" : "NF_INFINITY_F";
  const std::string here = "(" + from + ")[plane * " + text(all) + " + e]";
  const std::string number =
      "plane * " + text(windows) + " + (i * " + text(h.size) + " + j) * " + text(w.size) + " + k";
  if (spreads) {
    c.to.line(loop_over("i", planes * all) + " (" + y + ")[i] = 0;");
    // The windows of a row are added tap by tap: the first tap of an element belongs to the last window that holds it.
    return each_window(
        c, axes, planes, [] {},
        [&] { c.to.line("(" + y + ")[plane * " + text(all) + " + e] += (" + from + ")[" + number + "];"); }, [] {},
        !w.adaptive);
  }
  if (op == "pool_sum")
    return each_window(
        c, axes, planes, [&] { c.to.line(t + " total = 0;"); }, [&] { c.to.line("total += " + here + ";"); },
        [&] { c.to.line("(" + y + ")[" + number + "] = total;"); });
  each_window(
      c, axes, planes,
      [&] {
        c.to.line(t + " best = -" + infinity + ";");
        if (places) c.to.line("ptrdiff_t place = (d0 * " + text(h.n) + " + h0) * " + text(w.n) + " + w0;");
      },
      [&] {
        c.to.line("const " + t + " v = " + here + ";");
        c.to.line(places ? "if (v > best || v != v) best = v, place = e;" : "if (v > best || v != v) best = v;");
      },
      [&] { c.to.line("(" + y + ")[" + number + "] = " + (places ? "place" : "best") + ";"); });
}

constexpr CWriter kWriters[] = {
    {"convolution", write_convolution}, {"convolution_transposed", write_convolution},
    {"max_pool", write_pool},           {"max_pool_indices", write_pool},
    {"pool_spread", write_pool},        {"pool_sum", write_pool},
};

}  // namespace

std::span<const CWriter> window_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
