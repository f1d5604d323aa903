/// Overlapping frames of a signal, and their sum: each the other's adjoint.
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/signal.h"

namespace ferrite {
namespace detail {
namespace {

struct FrameAttrs {
  std::int64_t size = 1, hop = 1;
  static constexpr auto fields = attr_list(attr("size", &FrameAttrs::size), attr("hop", &FrameAttrs::hop));
};
struct OverlapAttrs {
  std::int64_t hop = 1, length = 1;  ///< of the result: whole frames, and less than a hop more
  static constexpr auto fields = attr_list(attr("hop", &OverlapAttrs::hop), attr("length", &OverlapAttrs::length));
};

void check_positive(std::string_view where, std::string_view what, std::int64_t n) {
  if (n < 1)
    throw ValueError(std::string(where) + ": the " + std::string(what) + " must be positive, got " + std::to_string(n));
}

/// Where the elements of frames come from [frames * size].
Tensor positions(std::int64_t frames, std::int64_t size, std::int64_t hop) {
  return reshape(reshape(arange(frames) * hop, {frames, 1}) + arange(size), {frames * size});
}

Tensor call_frame(const Tensor& x, const FrameAttrs& attrs);
Tensor call_overlap_add(const Tensor& x, const OverlapAttrs& attrs);

struct Framed {
  using Attributes = FrameAttrs;
  static constexpr auto name = "frame", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "`size` elements from 0, hop, 2 hop, ... of the last axis, [..., L] -> [..., T, size]";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_float(in[0], name);
    check_positive(name, "size", a.size);
    check_positive(name, "hop", a.hop);
    Spec s = in[0].spec();
    if (s.shape.rank() < 1 || s.shape[-1] < a.size)
      throw_shape(name, "no frame of " + std::to_string(a.size) + " fits: " + s.shape.str());
    s.shape[-1] = 1 + (s.shape[-1] - a.size) / a.hop;
    s.shape.push_back(a.size);
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t L = x.shape()[-1], frames = out.shape()[-2];
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    for (std::int64_t row = 0; row < x.numel() / L; ++row, from += L)
      for (std::int64_t t = 0; t < frames; ++t, to += a.size) std::copy_n(from + t * a.hop, a.size, to);
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {call_overlap_add(v.grad(), {a.hop, v.in_spec(0).shape[-1]})};
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    Shape s = in[0].shape();
    const std::int64_t frames = 1 + (s[-1] - a.size) / a.hop;
    s[-1] = frames;
    s.push_back(a.size);
    return {reshape(index_select(in[0], in[0].rank() - 1, positions(frames, a.size, a.hop)), s)};
  }
};

struct OverlapAdd {
  using Attributes = OverlapAttrs;
  static constexpr auto name = "overlap_add", onnx = "", stablehlo = "";
  static constexpr auto summary = "frames added up, each hop behind the one before, [..., T, size] -> [..., length]";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_float(in[0], name);
    check_positive(name, "hop", a.hop);
    Spec s = in[0].spec();
    if (s.shape.rank() < 2 || s.shape[-1] < 1 || s.shape[-2] < 1)
      throw_shape(name, "there are no frames [..., T, size]: " + s.shape.str());
    const std::int64_t size = s.shape[-1], frames = s.shape[-2];
    if (a.length < size || (a.length - size) / a.hop != frames - 1)
      throw_shape(name, std::to_string(frames) + " frames of " + std::to_string(size) + ", " + std::to_string(a.hop) +
                            " apart, are not those of " + std::to_string(a.length) + " elements");
    s.shape.erase(s.shape.rank() - 1);
    s.shape[-1] = a.length;
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t frames = x.shape()[-2], size = x.shape()[-1];
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    std::fill_n(to, out.numel(), T(0));
    for (std::int64_t row = 0; row < out.numel() / a.length; ++row, to += a.length)
      for (std::int64_t t = 0; t < frames; ++t, from += size)
        for (std::int64_t j = 0; j < size; ++j) to[t * a.hop + j] += from[j];
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {call_frame(v.grad(), {v.in_spec(0).shape[-1], a.hop})};
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    Shape flat = in[0].shape();
    const std::int64_t frames = flat[-2], size = flat[-1];
    flat.erase(flat.rank() - 1);
    flat[-1] = frames * size;
    Shape whole = flat;
    whole[-1] = a.length;
    const Tensor index = expand(positions(frames, size, a.hop), flat);
    return {scatter_add(zeros(whole, in[0].dtype()), flat.rank() - 1, index, reshape(in[0], flat))};
  }
};

Tensor call_frame(const Tensor& x, const FrameAttrs& attrs) { return call(structured<Framed>, {{&x}}, attrs); }
Tensor call_overlap_add(const Tensor& x, const OverlapAttrs& attrs) {
  return call(structured<OverlapAdd>, {{&x}}, attrs);
}

}  // namespace

Family frame_family() {
  static constexpr const Primitive* list[] = {&structured<Framed>, &structured<OverlapAdd>};
  return list;
}

}  // namespace detail

Tensor frame(const Tensor& x, std::int64_t size, std::int64_t hop) { return detail::call_frame(x, {size, hop}); }

Tensor overlap_add(const Tensor& frames, std::int64_t hop) {
  detail::check_positive("overlap_add", "hop", hop);
  if (frames.rank() < 2) return detail::call_overlap_add(frames, {hop, 1});  // which says so
  const std::int64_t behind = detail::checked_mul(frames.shape()[-2] - 1, hop, "overlap_add");
  return detail::call_overlap_add(frames, {hop, detail::checked_add(frames.shape()[-1], behind, "overlap_add")});
}

}  // namespace ferrite
