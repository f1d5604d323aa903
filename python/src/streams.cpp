// Streams in Python: networks that run one time step at a time, on NumPy arrays.
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>

#include "ferrite/compile/tracer.h"
#include "ferrite/nn/stream/generate.h"
#include "ferrite/nn/stream/stream.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

/// The elements of an array of Python, without a copy: an array is row-major and of one dtype.
class Elements {
 public:
  Elements() = default;
  ~Elements() {
    if (held_) PyBuffer_Release(&view_);
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  /// Takes an array; returns false for objects that have no such elements.
  bool take(nb::handle array, bool writable) {
    if (!PyObject_CheckBuffer(array.ptr())) return false;
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) !=
        0) {
      PyErr_Clear();
      return false;
    }
    return held_ = true;
  }
  int rank() const { return view_.ndim; }
  std::int64_t size(int axis) const { return view_.shape[axis]; }
  bool holds(Dtype t) const {
    if (view_.itemsize != size_of(t) || view_.format == nullptr) return false;
    const char c =
        view_.format[0] == '=' || view_.format[0] == '<' || view_.format[0] == '@' ? view_.format[1] : view_.format[0];
    return t == Dtype::f32 ? c == 'f' : t == Dtype::f64 ? c == 'd' : t == Dtype::i64 ? c == 'l' || c == 'q' : false;
  }
  template <class T>
  std::span<T> span() const {
    return {static_cast<T*>(view_.buf), static_cast<std::size_t>(view_.len) / sizeof(T)};
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

/// A stream and what its arrays look like.
class StreamObject {
 public:
  StreamObject(const nn::Layer& layer, std::int64_t batch)
      : stream_(run([&] { return nn::Stream(layer, batch); })), input_(layer.step_input()) {
    if (stream_.result().width == 0) model_ = run([&] { return layer.clone(); });
  }
  StreamObject(nn::Stream stream, const StreamObject& of)
      : stream_(std::move(stream)),
        input_(of.input_),
        model_(of.model_ ? of.model_->clone() : nullptr),
        width_(of.width_),
        dtype_(of.dtype_) {}

  nn::Stream& stream() { return stream_; }
  StreamObject clone() {
    nn::Stream copy = run([&] { return stream_.clone(); });
    return {std::move(copy), *this};
  }

  nb::object step(nb::handle x, nb::handle out) {
    return go(x, out, false, [](auto& s, auto in, auto y, auto) {
      s.step(in, y);
      return true;
    });
  }
  nb::object steps(nb::handle x, nb::handle out) {
    return go(x, out, true, [](auto& s, auto in, auto y, auto n) {
      s.steps(n, in, y);
      return true;
    });
  }
  nb::object feed(nb::handle x, nb::handle out) {
    return go(x, out, false, [](auto& s, auto in, auto y, auto) { return s.feed(in, y); });
  }
  nb::object finish(nb::handle out) {
    if (width() == 0) throw ValueError("stream: finish before the first step of a model that does not know its width");
    Shape shape = last_shape_;
    if (shape.rank() == 0 || shape.numel("stream") != stream_.batch() * width()) shape = {stream_.batch(), width()};
    return write(out, shape, [&](auto y) { return run([&] { return stream_.finish(y); }); });
  }

  Dtype dtype() {
    if (!dtype_) dtype_ = stream_.result().width ? stream_.result().dtype : input_.dtype;
    return *dtype_;
  }
  std::int64_t width() const { return stream_.result().width ? stream_.result().width : width_; }

 private:
  bool takes_tokens() const { return input_.dtype == Dtype::i64; }

  /// Finds the width and dtype of the results of a model that learns them from its first input.
  void find_width(std::int64_t in) {
    if (stream_.result().width || width_ || !model_) return;
    const Shape shape = takes_tokens() ? Shape{stream_.batch(), 1} : Shape{stream_.batch(), 1, in};
    const std::array<Spec, 1> inputs{Spec{shape, input_.dtype}};
    run([&] {
      return trace(
          [&](const Tensors& in) {
            const Tensor y = (*model_)(in[0]);
            width_ = y.shape()[y.rank() - 1], dtype_ = y.dtype();
            return Tensors{y};
          },
          inputs);
    });
  }

  /// Runs `call` on the elements of x and of the result, which has the leading axes of x.
  template <class Call>
  nb::object go(nb::handle x, nb::handle out, bool several, const Call& call) {
    Elements in;
    if (!in.take(x, false)) return go_tensor(tensor_of(x), x, out, several, call);
    Shape shape;
    for (int i = 0; i < in.rank(); ++i) shape.push_back(in.size(i));
    if (takes_tokens()) {
      if (!in.holds(Dtype::i64)) return go_tensor(tensor_of(x), x, out, several, call);
      return go_span(in.span<const std::int64_t>(), shape, out, several, call);
    }
    if (in.holds(Dtype::f32)) return go_span(in.span<const float>(), shape, out, several, call);
    if (in.holds(Dtype::f64)) return go_span(in.span<const double>(), shape, out, several, call);
    return go_tensor(tensor_of(x), x, out, several, call);
  }

  template <class T>
  static std::span<const T> elements_of(const Tensor& t) {
    return {t.data<T>(), static_cast<std::size_t>(t.numel())};
  }
  template <class Call>
  nb::object go_tensor(const Tensor& given, nb::handle x, nb::handle out, bool several, const Call& call) {
    const bool literal = !is_tensor(x) && !nb::ndarray_check(x);  // lists and numbers take the dtype that fits
    Tensor t = contiguous(given);
    if (takes_tokens()) {
      if (t.dtype() == Dtype::i32) t = cast(t, Dtype::i64);
      if (t.dtype() != Dtype::i64)
        throw DtypeError("stream: the model takes tokens, i64, not " + std::string(name_of(t.dtype())));
      return go_span(elements_of<std::int64_t>(t), t.shape(), out, several, call);
    }
    if (literal) t = cast(t, dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32);
    if (t.dtype() == Dtype::f32) return go_span(elements_of<float>(t), t.shape(), out, several, call);
    if (t.dtype() == Dtype::f64) return go_span(elements_of<double>(t), t.shape(), out, several, call);
    throw DtypeError("stream: a step takes f32 or f64, not " + std::string(name_of(t.dtype())));
  }

  template <class In, class Call>
  nb::object go_span(std::span<const In> x, const Shape& given, nb::handle out, bool several, const Call& call) {
    const bool tokens = takes_tokens();
    const int rank = given.rank(), full = 2 - tokens + several;
    std::int64_t n = 1, features = 1;
    if (rank > full || rank < full - 1 || (rank == full - 1 && stream_.batch() != 1))
      throw ShapeError(std::string("stream: expected ") + (several ? "[n, B" : "[B") + (tokens ? "]" : ", D]") +
                       " with B = " + std::to_string(stream_.batch()) + ", got " + given.str());
    if (several) n = given[0];
    if (!tokens) features = given[rank - 1];
    if (rank == full && given[several] != stream_.batch())
      throw ShapeError("stream: a batch of " + std::to_string(given[several]) + " rows for a stream of " +
                       std::to_string(stream_.batch()) + ": " + given.str());
    find_width(features);
    Shape shape;
    for (int i = 0; i < rank - !tokens; ++i) shape.push_back(given[i]);
    shape.push_back(width());
    if (!several) last_shape_ = shape;
    if constexpr (!std::is_same_v<In, std::int64_t>) {
      const Dtype own = std::is_same_v<In, float> ? Dtype::f32 : Dtype::f64;
      if (dtype() != own && stream_.result().width)
        throw DtypeError("stream: the model computes in " + std::string(name_of(dtype())) + ", and x is " +
                         std::string(name_of(own)));
      return write_as<In>(out, shape, [&](std::span<In> y) { return invoke(call, x, y, n); });
    } else {
      return write(out, shape, [&](auto y) { return invoke(call, x, y, n); });
    }
  }
  template <class Call, class In, class Out>
  bool invoke(const Call& call, std::span<const In> x, std::span<Out> y, std::int64_t n) {
    const Calls guard;
    return call(stream_, x, y, n);
  }

  /// Returns the result that `fill` writes, or None if it returns false: `out`, or a new array of a shape.
  template <class Fill>
  nb::object write(nb::handle out, const Shape& shape, const Fill& fill) {
    if (dtype() == Dtype::f64) return write_as<double>(out, shape, fill);
    return write_as<float>(out, shape, fill);
  }
  template <class T, class Fill>
  nb::object write_as(nb::handle out, const Shape& shape, const Fill& fill) {
    if (!out.is_none()) {
      Elements to;
      if (!to.take(out, true) || !to.holds(std::is_same_v<T, float> ? Dtype::f32 : Dtype::f64))
        throw ValueError(std::string("stream: out is not a writable row-major array of ") +
                         (std::is_same_v<T, float> ? "float32" : "float64"));
      return fill(to.span<T>()) ? nb::borrow(out) : nb::none();
    }
    const nb::object made = new_array(shape, std::is_same_v<T, float>);
    Elements to;
    to.take(made, true);
    return fill(to.span<T>()) ? made : nb::none();
  }
  /// Returns a new NumPy array.
  nb::object new_array(const Shape& shape, bool single) {
    static const nb::object& empty = *new nb::object(nb::module_::import_("numpy").attr("empty"));
    static const nb::object& f32 = *new nb::object(nb::module_::import_("numpy").attr("dtype")("float32"));
    static const nb::object& f64 = *new nb::object(nb::module_::import_("numpy").attr("dtype")("float64"));
    if (!extents_.is_valid() || shape != extents_of_) extents_ = nb::cast(shape), extents_of_ = shape;
    return empty(extents_, single ? f32 : f64);
  }

  nn::Stream stream_;
  nn::StepInput input_;
  std::unique_ptr<nn::Layer> model_;  ///< for models that do not know the width of their result
  std::int64_t width_ = 0;
  std::optional<Dtype> dtype_{};
  Shape last_shape_{};
  Shape extents_of_{};
  nb::object extents_;  ///< the tuple of the shape of the last new array
};

Any report_of(const nn::StreamReport& r) {
  nb::list layers;
  for (const nn::LayerReport& l : r.layers)
    layers.append(named_tuple("LayerReport", {"layer", "kind", "runs", "at_once", "bytes", "why"},
                              {nb::cast(l.layer), nb::cast(l.kind), nb::cast(l.runs), nb::int_(l.at_once),
                               nb::int_(l.bytes), nb::cast(l.why)}));
  return any_tuple("StreamReport", {"text", "layers", "at_once", "bytes"},
                   {nb::cast(r.str()), layers, nb::int_(r.at_once), nb::int_(r.bytes)});
}

void define_steps(nb::class_<StreamObject>& c) {
  c.def(
      "step", &StreamObject::step, "x"_a, "out"_a = nb::none(),
      nb::sig("def step(self, x: ferrite._ferrite.Tensor | numpy.typing.ArrayLike, out: numpy.ndarray | None = None) "
              "-> numpy.ndarray"),
      "Runs one step: x [B, D] -> y [B, N], or with a batch of 1 also [D] -> [N]. A model that begins with an "
      "embedding\n"
      "takes tokens, i64 [B]. With ``out``, a writable row-major array of the model's dtype, nothing is allocated.\n\n"
      "Raises ShapeError and DtypeError for an x that does not fit, and PaceError for a model that does not give one\n"
      "output for each input (use ``feed``).");
  c.def("__call__", &StreamObject::step, "x"_a, "out"_a = nb::none(), "Runs one step, as ``step`` does.");
  c.def("steps", &StreamObject::steps, "x"_a, "out"_a = nb::none(),
        nb::sig("def steps(self, x: ferrite._ferrite.Tensor | numpy.typing.ArrayLike, out: numpy.ndarray | None = "
                "None) -> numpy.ndarray"),
        "Runs n steps, x [n, B, D] -> y [n, B, N], or with a batch of 1 also [n, D] -> [n, N], with the bits of n "
        "calls of\n"
        "``step`` and in less time. If one raises an error, those before it have been made.");
  c.def(
      "feed", &StreamObject::feed, "x"_a, "out"_a = nb::none(),
      nb::sig("def feed(self, x: ferrite._ferrite.Tensor | numpy.typing.ArrayLike, out: numpy.ndarray | None = None) "
              "-> numpy.ndarray | None"),
      "Feeds one step to a model that may give no output for it, because of strides, or none yet, because of windows.\n"
      "Returns the output, or None if there is none.");
  c.def("finish", &StreamObject::finish, "out"_a = nb::none(),
        nb::sig("def finish(self, out: numpy.ndarray | None = None) -> numpy.ndarray | None"),
        "Returns the next output that a model which looks ahead (padding ``same``) gives after the last input, or None "
        "if\n"
        "there is none. The first call ends the sequence of such a model: it takes no further inputs until ``reset``.");
  c.def(
      "gave", [](StreamObject& s, std::int64_t row) { return s.stream().gave(row); }, "row"_a = 0,
      "Returns whether the last ``feed`` or ``finish`` gave an output for this row.");
}

void define_states(nb::class_<StreamObject>& c) {
  c.def(
      "reset",
      [](StreamObject& s, std::optional<std::int64_t> row) { row ? s.stream().reset(*row) : s.stream().reset(); },
      "row"_a = nb::none(), Call(),
      "Gives the states of all rows, or of one, their first values: the next input is the first of a new sequence.");
  c.def(
      "save", [](StreamObject& s) { return s.stream().save(); }, Call(),
      "Returns copies of the states, for a later ``restore``, layer by layer as ``report`` lists them.");
  c.def(
      "restore", [](StreamObject& s, const std::vector<Tensor>& states) { s.stream().restore(states); }, "states"_a,
      Call(), "Restores states that ``save`` returned, in this stream or in another of the same model and batch.");
  c.def("clone", &StreamObject::clone, "Returns an independent stream with equal weights and states.");
  c.def("__copy__", &StreamObject::clone);
  c.def(
      "__deepcopy__", [](StreamObject& s, nb::handle) { return s.clone(); }, "memo"_a);
  c.def(
      "refresh", [](StreamObject& s) { s.stream().refresh(); }, Call(),
      "Copies the present weights of the model, for example after training; the states of the stream stay.");
}

}  // namespace

void define_streams(nb::module_& m, nb::module_& layers) {
  nb::class_<StreamObject> c(
      m, "Stream",
      "Runs a causal layer or network, or one that looks a few steps ahead, step by step on data as it comes: audio,\n"
      "sensors, prices::\n\n"
      "    stream = net.stream()\n    y = stream.step(x)\n\n"
      "A stream owns its states and a copy of the weights as they were when it was made, so streams of one model are\n"
      "independent. Outputs and states are bit for bit those of a call on the whole sequence. Dropout is off. Several\n"
      "threads must not use a stream at once.\n\n"
      "Raises ValueError for a model that cannot be streamed, naming the layer and the operation that need other "
      "steps\n"
      "than those before, and for a batch below 1.");
  c.def(
      "__init__",
      [](StreamObject* p, const nn::Layer& layer, std::int64_t batch) { new (p) StreamObject(layer, batch); },
      "layer"_a, "batch"_a = 1);
  define_steps(c);
  define_states(c);
  c.def_prop_ro(
      "batch", [](StreamObject& s) { return s.stream().batch(); }, "The number of sequences.");
  c.def_prop_ro(
      "width", [](StreamObject& s) { return s.width(); },
      "The values of a row of the result; 0 if they are not known before the first step.");
  c.def_prop_ro(
      "dtype", [](StreamObject& s) { return s.dtype(); }, "The dtype of the result.");
  c.def_prop_ro(
      "stride", [](StreamObject& s) { return s.stream().stride(); },
      "The number of input steps from one output to the next: output u comes with input delay + u stride.");
  c.def_prop_ro(
      "delay", [](StreamObject& s) { return s.stream().delay(); },
      "The number, counted from 0, of the input step that gives the first output.");
  c.def_prop_ro(
      "on_tensors", [](StreamObject& s) { return s.stream().on_tensors(); },
      "The number of layers that run as in an ordinary call, on tensors, and so may allocate.");
  c.def(
      "report", [](StreamObject& s) { return report_of(run([&] { return s.stream().report(); })); },
      "Returns how each layer runs, and why not faster, as (text, layers, at_once, bytes).");
  m.def(
      "generate",
      [](StreamObject& s, const Tensor& prompt, std::int64_t length, std::optional<std::int64_t> stop,
         double temperature, std::int64_t top_k, double top_p, std::uint64_t seed, std::uint64_t sequence,
         std::uint64_t drawn) {
        nn::GenerateOptions o{.length = length, .stop = stop, .seed = seed, .sequence = sequence, .drawn = drawn};
        o.sampling.temperature = temperature, o.sampling.top_k = top_k, o.sampling.top_p = top_p;
        return nn::generate(s.stream(), prompt, o);
      },
      "stream"_a, "prompt"_a, "length"_a = 100, nb::kw_only(), "stop"_a = nb::none(),
      "temperature"_a = SamplingOptions{}.temperature, "top_k"_a = SamplingOptions{}.top_k,
      "top_p"_a = SamplingOptions{}.top_p, "seed"_a = 0, "sequence"_a = 0, "drawn"_a = 0, Call(),
      "Generates tokens with a stream of one row whose model predicts the logits of the next token: feeds it the "
      "prompt,\n"
      "i64 [P], draws a token, feeds it that token, and so on. Returns the tokens drawn, i64 [n].\n\n"
      "``stop``: the token that ends a sequence; it is not part of the result. The last token has not been fed: a "
      "later\n"
      "call whose prompt is that token continues the sequence, with the draws of one long call if ``drawn`` counts "
      "the\n"
      "tokens so far.");
  auto layer = nb::borrow<nb::class_<nn::Layer>>(layers.attr("_Layer"));
  layer.def(
      "stream", [](const nn::Layer& l, std::int64_t batch) { return StreamObject(l, batch); }, "batch"_a = 1,
      "Returns a stream that runs the layer step by step on ``batch`` sequences at once, with a copy of its\n"
      "present weights. Raises ValueError for a layer that cannot be streamed.");
}

}  // namespace ferrite::python
