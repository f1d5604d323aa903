/// One direction of a recurrent layer as one operation. Its steps are defined in recurrent_steps.cpp.
#include <array>
#include <cmath>

#include "ferrite/tensor/detail/define.h"
#include "ferrite/tensor/detail/recurrent.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace detail {
namespace {

/// The operands of a sequence by their names; `at` gives the i-th.
template <class At>
struct Operands {
  Operands(CellType cell, const Attrs& attrs, At at) {
    std::size_t k = 0;
    i = at(k++), h0 = at(k++);
    if (has_memory(cell)) c0 = at(k++);
    w_hh = at(k++);
    if (attrs.get<bool>("bias")) b_hh = at(k++);
    if (attrs.get<bool>("lengths")) lengths = at(k++);
    if (attrs.get<bool>("resets")) resets = at(k++);
  }
  using Item = std::invoke_result_t<At, std::size_t>;
  Item i{}, h0{}, c0{}, w_hh{}, b_hh{}, lengths{}, resets{};
};
template <class At>
Operands(CellType, const Attrs&, At) -> Operands<At>;

auto operands(CellType cell, Inputs in, const Attrs& attrs) {
  return Operands(cell, attrs, [in](std::size_t k) { return &in[k]; });
}

/// Row-major, whatever the caller gave: outside of all records.
Tensor dense(const Tensor& x) {
  const NewFrame frame;
  return contiguous(x);
}

/// Axes of time and batch in i and y.
struct Axes {
  explicit Axes(const Attrs& attrs) : time(attrs.get<bool>("batch_first") ? 1 : 0) {}
  int time;
  int batch() const { return 1 - time; }
};

template <class T>
Rows<const T*> rows_of(const Tensor& x, const Axes& axes) {
  if (!x) return {};
  return {x.data<T>(), x.strides()[axes.time], x.strides()[axes.batch()]};
}
template <class T>
Rows<T*> writable_rows(Tensor& x, const Axes& axes) {
  return {Writer::data<T>(x), x.strides()[axes.time], x.strides()[axes.batch()]};
}

/// All operands row-major, and what the kernel wants to know of them. Lives as long as the kernel runs.
template <class T>
class Prepared {
 public:
  Prepared(CellType cell, const std::array<Tensor, 7>& given, const Attrs& attrs) : given_(given) {
    for (Tensor& x : given_)
      if (x) x = dense(x);
    const auto& [i, h0, c0, w_hh, b_hh, lengths, resets] = given_;
    const Axes axes(attrs);
    const auto data = [](const Tensor& x) { return x ? x.template data<T>() : nullptr; };
    r_ = {.cell = cell,
          .T_ = i.shape()[axes.time],
          .B = i.shape()[axes.batch()],
          .H = h0.shape()[1],
          .reverse = attrs.get<bool>("reverse"),
          .i = rows_of<T>(i, axes),
          .w_hh = data(w_hh),
          .b_hh = data(b_hh),
          .h0 = data(h0),
          .c0 = data(c0),
          .lengths = lengths ? lengths.data<std::int64_t>() : nullptr,
          .resets = resets ? Rows<const bool*>{resets.data<bool>(), 1, resets.strides()[0]} : Rows<const bool*>{}};
  }
  const Recurrence<T>& operator*() const { return r_; }
  const Recurrence<T>* operator->() const { return &r_; }

 private:
  std::array<Tensor, 7> given_;
  Recurrence<T> r_;
};

template <class O>
std::array<Tensor, 7> values_of(const O& o) {
  const auto value = [](const Tensor* x) { return x ? *x : Tensor(); };
  return {value(o.i), value(o.h0), value(o.c0), value(o.w_hh), value(o.b_hh), value(o.lengths), value(o.resets)};
}

template <class T>
void forward(CellType cell, const Prepared<T>& r, const Attrs& attrs, Tensor& y, Tensor& h, Tensor* c, Tensor* saved) {
  Tensor scratch = Tensor::empty({{r->B, r->columns()}, dtype_of<T>});
  run_recurrence<T>(*r, {.y = writable_rows<T>(y, Axes(attrs)),
                         .h = Writer::data<T>(h),
                         .c = c ? Writer::data<T>(*c) : nullptr,
                         .saved = saved && saved_of(cell) > 0 ? Writer::data<T>(*saved) : nullptr,
                         .scratch = Writer::data<T>(scratch)});
}

/// A state's cotangent as a buffer that the kernel goes on with.
Tensor begun(const Tensor& grad, const Spec& spec) {
  Tensor copy = Tensor::empty(spec);
  const std::size_t bytes = static_cast<std::size_t>(spec.shape.numel() * size_of(spec.dtype));
  if (!grad) {
    std::fill_n(Writer::raw(copy), bytes, std::byte{0});
  } else {
    const Tensor d = dense(grad);
    std::copy_n(static_cast<const std::byte*>(d.raw()), bytes, Writer::raw(copy));
  }
  return copy;
}

template <class T>
Tensors backward(CellType cell, const Vjp& v) {
  const bool memory = has_memory(cell);
  const auto o = Operands(cell, v.attrs, [&v](std::size_t k) { return &v.in(k); });
  const Prepared<T> r(cell, values_of(o), v.attrs);
  const Axes axes(v.attrs);
  const Spec state{o.h0->shape(), dtype_of<T>};
  Tensor saved = v.out(v.outputs() - 1);
  const Tensor y = v.out(0);
  if (saved_of(cell) > 0 && saved.numel() == 0) {  // not kept: computed again
    saved = Tensor::empty({{r->T_, r->B, saved_of(cell) * r->H}, dtype_of<T>});
    Tensor again = Tensor::empty({y.shape(), dtype_of<T>}), h = Tensor::empty(state), c = Tensor::empty(state);
    forward<T>(cell, r, v.attrs, again, h, memory ? &c : nullptr, &saved);
  }
  const Tensor dy = v.grad(0) ? dense(v.grad(0)) : Tensor();
  Tensor di = Tensor::empty(v.in_spec(0));
  Tensor dh = begun(v.grad(1), state);
  Tensor dc = memory ? begun(v.grad(2), state) : Tensor();
  Tensor dw = Tensor::empty({o.w_hh->shape(), dtype_of<T>});
  Tensor db = o.b_hh ? Tensor::empty({o.b_hh->shape(), dtype_of<T>}) : Tensor();
  run_recurrence_back<T>(*r, {.y = rows_of<T>(y, axes),
                              .saved = saved_of(cell) > 0 ? saved.data<T>() : nullptr,
                              .dy = rows_of<T>(dy, axes),
                              .di = writable_rows<T>(di, axes),
                              .dh = Writer::data<T>(dh),
                              .dc = memory ? Writer::data<T>(dc) : nullptr,
                              .dw = Writer::data<T>(dw),
                              .db = db ? Writer::data<T>(db) : nullptr});
  Tensors g = {di, dh};
  if (memory) g.push_back(dc);
  g.push_back(dw);
  if (db) g.push_back(db);
  while (g.size() < v.inputs()) g.push_back(Tensor());  // lengths and resets have none
  return g;
}

/// The same, step by step in operations.
Tensors composed(CellType cell, Inputs in, const Attrs& attrs) {
  const auto o = operands(cell, in, attrs);
  const auto value = [](const Tensor* x) { return x ? *x : Tensor(); };
  const Tensor& w = *o.w_hh;
  const Tensor bias = value(o.b_hh);
  const auto step = [&](const Tensor& i, const RecurrentState& s) -> RecurrentState {
    if (cell == CellType::gru) return {gru_step(i, s.h, w, bias)};
    if (cell == CellType::lstm) return lstm_step(i, s, w, bias);
    return {rnn_step(i, s.h, w, bias, cell == CellType::rnn_relu)};
  };
  return unroll(*o.i, {*o.h0, value(o.c0)}, step,
                {.reverse = attrs.get<bool>("reverse"),
                 .batch_first = attrs.get<bool>("batch_first"),
                 .lengths = value(o.lengths),
                 .resets = value(o.resets)});
}

/// Numbers of one row for the oracle.
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

void oracle_step(CellType cell, std::int64_t H, const std::vector<double>& x, const std::vector<double>& g,
                 std::vector<double>& h, std::vector<double>& c) {
  for (std::int64_t j = 0; j < H; ++j) {
    const auto at = [&](std::int64_t gate) { return static_cast<std::size_t>(gate * H + j); };
    const auto u = static_cast<std::size_t>(j);
    const auto sum = [&](std::int64_t gate) { return x[at(gate)] + g[at(gate)]; };
    if (cell == CellType::gru) {
      const double z = logistic(sum(1));
      h[u] = (1 - z) * std::tanh(x[at(2)] + logistic(sum(0)) * g[at(2)]) + z * h[u];
    } else if (cell == CellType::lstm) {
      c[u] = logistic(sum(1)) * c[u] + logistic(sum(0)) * std::tanh(sum(2));
      h[u] = logistic(sum(3)) * std::tanh(c[u]);
    } else {
      h[u] = cell == CellType::rnn_relu ? std::max(0.0, sum(0)) : std::tanh(sum(0));
    }
  }
}

struct GruCell {
  static constexpr auto name = "gru_sequence";
  static constexpr auto summary = "all steps of a GRU over i = x W_ih + b_ih: outputs, last h, what gradients need";
  static CellType type(const Attrs&) { return CellType::gru; }
};
struct LstmCell {
  static constexpr auto name = "lstm_sequence";
  static constexpr auto summary =
      "all steps of an LSTM over i = x W_ih + b_ih: outputs, last h, last c, what gradients need";
  static CellType type(const Attrs&) { return CellType::lstm; }
};
struct RnnCell {
  static constexpr auto name = "rnn_sequence";
  static constexpr auto summary =
      "all steps of an Elman network over i = x W_ih + b_ih: outputs, last h, and an empty tensor";
  static CellType type(const Attrs& attrs) { return attrs.get<bool>("relu") ? CellType::rnn_relu : CellType::rnn_tanh; }
};

template <class Cell>
struct Sequence {
  static constexpr auto name = Cell::name, onnx = "", stablehlo = "", summary = Cell::summary;
  static constexpr Reads reads = reads_all;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attrs& attrs) {
    const CellType cell = Cell::type(attrs);
    const auto o = operands(cell, in, attrs);
    const Axes axes(attrs);
    const Shape& i = o.i->shape();
    const Shape& h0 = o.h0->shape();
    const auto refuse = [&](const char* what) {
      throw_shape(name, std::string(what) + ": i " + i.str() + ", h0 " + h0.str() + ", w_hh " + o.w_hh->shape().str());
    };
    if (!is_float(o.i->dtype()) || o.h0->dtype() != o.i->dtype() || o.w_hh->dtype() != o.i->dtype())
      throw_dtype(name,
                  "operands are " + o.i->spec().str() + ", " + o.h0->spec().str() + " and " + o.w_hh->spec().str());
    if (i.rank() != 3 || h0.rank() != 2 || o.w_hh->rank() != 2) refuse("needs i of rank 3, h0 and w_hh of rank 2");
    const std::int64_t H = h0[1], T = i[axes.time], B = i[axes.batch()], columns = gates_of(cell) * H;
    if (T == 0) refuse("the sequence has no steps");
    if (i[2] != columns || h0[0] != B || o.w_hh->shape() != Shape{H, columns}) refuse("shapes do not fit each other");
    if (o.c0 && o.c0->spec() != o.h0->spec()) refuse("c0 does not fit h0");
    if (o.b_hh && o.b_hh->spec() != Spec{{columns}, o.i->dtype()}) refuse("the bias does not fit");
    if (o.lengths && o.lengths->spec() != Spec{{B}, Dtype::i64}) refuse("lengths must be i64 [B]");
    if (o.resets && o.resets->spec() != Spec{{B, T}, Dtype::boolean}) refuse("resets must be bool [B, T]");
    Shape y = i;
    y[2] = H;
    const Dtype dtype = o.i->dtype();
    Specs out = {{y, dtype}, {h0, dtype}};
    if (o.c0) out.push_back({h0, dtype});
    const std::int64_t kept = saved_of(cell) * H;
    out.push_back({attrs.get<bool>("save") && kept ? Shape{T, B, kept} : Shape{0}, dtype});
    return out;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    if (out[0].dtype() == Dtype::f32) {
      run<float>(in, out, attrs);
    } else {
      run<double>(in, out, attrs);
    }
  }

  static Tensors vjp(const Vjp& v) {
    const CellType cell = Cell::type(v.attrs);
    return v.in_spec(0).dtype == Dtype::f32 ? backward<float>(cell, v) : backward<double>(cell, v);
  }

  /// Without what is saved: nothing reads that.
  static Tensors reference(Inputs in, const Attrs& attrs) { return composed(Cell::type(attrs), in, attrs); }

  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
    const CellType cell = Cell::type(attrs);
    const auto o = Operands(cell, attrs, [in](std::size_t k) { return &in[k]; });
    const Axes axes(attrs);
    const std::int64_t H = o.h0->shape[1], B = o.h0->shape[0], T = o.i->shape[axes.time], columns = gates_of(cell) * H;
    const bool reverse = attrs.get<bool>("reverse");
    const auto index = [&](std::int64_t t, std::int64_t b, std::int64_t j) {
      return axes.time == 1 ? Shape{b, t, j} : Shape{t, b, j};
    };
    for (std::int64_t b = 0; b < B; ++b) {
      std::vector<double> h, c(static_cast<std::size_t>(H));
      for (std::int64_t j = 0; j < H; ++j) h.push_back(o.h0->at({b, j}));
      for (std::int64_t j = 0; o.c0 && j < H; ++j) c[static_cast<std::size_t>(j)] = o.c0->at({b, j});
      const std::int64_t length = o.lengths ? static_cast<std::int64_t>(o.lengths->at({b})) : T;
      for (std::int64_t n = 0; n < T; ++n) {
        const std::int64_t t = reverse ? T - 1 - n : n;
        const std::int64_t border = reverse ? t + 1 : t;
        if (t >= length) continue;  // the outputs are zeros
        if (o.resets && border < length && o.resets->at({b, border}) != 0)
          std::fill(h.begin(), h.end(), 0), std::fill(c.begin(), c.end(), 0);
        std::vector<double> x, g;
        for (std::int64_t k = 0; k < columns; ++k) {
          x.push_back(o.i->at(index(t, b, k)));
          g.push_back(o.b_hh ? o.b_hh->at({k}) : 0);
          for (std::int64_t j = 0; j < H; ++j) g.back() += h[static_cast<std::size_t>(j)] * o.w_hh->at({j, k});
        }
        oracle_step(cell, H, x, g, h, c);
        for (std::int64_t j = 0; j < H; ++j) out[0].at(index(t, b, j)) = h[static_cast<std::size_t>(j)];
      }
      for (std::int64_t j = 0; j < H; ++j) out[1].at({b, j}) = h[static_cast<std::size_t>(j)];
      for (std::int64_t j = 0; o.c0 && j < H; ++j) out[2].at({b, j}) = c[static_cast<std::size_t>(j)];
    }
  }

  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    const auto add = [&](std::int64_t T, std::int64_t B, std::int64_t H, bool reverse, bool bias, bool lengths,
                         bool resets, bool batch_first) {
      Attrs attrs{{"reverse", reverse}, {"bias", bias},  {"lengths", lengths},
                  {"resets", resets},   {"save", false}, {"batch_first", batch_first}};
      if constexpr (std::is_same_v<Cell, RnnCell>) attrs = std::move(attrs).with("relu", false);
      const std::int64_t columns = gates_of(Cell::type(attrs)) * H;
      Sample s{.inputs = {{batch_first ? Shape{B, T, columns} : Shape{T, B, columns}}, {{B, H}}}, .attrs = attrs};
      s.range = {-1, 1};
      if (has_memory(Cell::type(attrs))) s.inputs.push_back({{B, H}});
      s.inputs.push_back({{H, columns}});
      if (bias) s.inputs.push_back({{columns}});
      if (lengths) s.inputs.push_back({{B}, Dtype::i64});
      if (resets) s.inputs.push_back({{B, T}, Dtype::boolean});
      if (lengths) s.indices = {3, 1, 2};
      if (lengths && !resets && B < 3) s.indices = {2, 1};
      if (resets && !lengths) s.indices = {0, 1, 0, 0, 1};
      list.push_back(s);
    };
    add(1, 1, 1, false, true, false, false, true);
    add(3, 2, 2, false, true, false, false, false);
    add(2, 2, 3, true, false, false, false, true);
    add(3, 2, 2, false, true, true, false, true);
    add(3, 2, 2, true, true, true, false, false);
    add(4, 2, 2, false, true, false, true, true);
    add(4, 2, 2, true, false, false, true, false);
    return list;
  }

 private:
  template <class T>
  static void run(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    const CellType cell = Cell::type(attrs);
    const Prepared<T> r(cell, values_of(operands(cell, in, attrs)), attrs);
    Tensor& saved = out.back();
    forward<T>(cell, r, attrs, out[0], out[1], has_memory(cell) ? &out[2] : nullptr, saved.numel() ? &saved : nullptr);
  }
};

/// Calls a sequence; what is saved stays inside.
template <class Cell>
Tensors sequence(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                 const SequenceOptions& o, const Attrs& more) {
  InlineVector<const Tensor*, 8> in = {&i, &before.h};
  if (before.c) in.push_back(&before.c);
  in.push_back(&w_hh);
  if (b_hh) in.push_back(&b_hh);
  if (o.lengths) in.push_back(&o.lengths);
  if (o.resets) in.push_back(&o.resets);
  const Attrs attrs = Attrs(more)
                          .with("reverse", o.reverse)
                          .with("bias", b_hh.defined())
                          .with("lengths", o.lengths.defined())
                          .with("resets", o.resets.defined())
                          .with("save", !frame().recorders.empty())
                          .with("batch_first", o.batch_first);
  const Tensors all = structured<Sequence<Cell>>.apply({in.data(), in.size()}, attrs);
  Tensors out;
  for (std::size_t k = 0; k + 1 < all.size(); ++k) out.push_back(all[k]);
  return out;
}

}  // namespace

Family recurrent_family() {
  static constexpr const Primitive* list[] = {&structured<Sequence<GruCell>>, &structured<Sequence<LstmCell>>,
                                              &structured<Sequence<RnnCell>>};
  return list;
}

}  // namespace detail

Tensors gru_sequence(const Tensor& i, const Tensor& h0, const Tensor& w_hh, const Tensor& b_hh,
                     const SequenceOptions& options) {
  return detail::sequence<detail::GruCell>(i, {h0, {}}, w_hh, b_hh, options, {});
}
Tensors lstm_sequence(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                      const SequenceOptions& options) {
  return detail::sequence<detail::LstmCell>(i, before, w_hh, b_hh, options, {});
}
Tensors rnn_sequence(const Tensor& i, const Tensor& h0, const Tensor& w_hh, const Tensor& b_hh, bool with_relu,
                     const SequenceOptions& options) {
  return detail::sequence<detail::RnnCell>(i, {h0, {}}, w_hh, b_hh, options, {{"relu", with_relu}});
}

}  // namespace ferrite
