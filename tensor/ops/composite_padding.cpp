/// Rows of different lengths in one tensor.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/padding.h"

namespace ferrite {
namespace detail {
namespace {

struct PaddingAttrs {
  bool batch_first = false;
  static constexpr auto fields = attr_list(attr("batch_first", &PaddingAttrs::batch_first));
};

struct WithoutPadding {
  using Attributes = PaddingAttrs;
  static constexpr auto name = "without_padding", onnx = "";
  static constexpr auto summary =
      "x whose rows repeat their last step beyond their lengths; no gradient into the copies";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &lengths = in[1];
    if (x.numel() == 0) return x;
    const std::int64_t time = a.batch_first ? 1 : 0, rows = 1 - time;
    const std::int64_t B = x.shape()[static_cast<int>(rows)], T = x.shape()[static_cast<int>(time)];
    // A row's extents beside those of one value of x: [1, B, 1, ...] or [B, 1, 1, ...].
    const auto beside = [&](const Tensor& of_rows) {
      Shape s = Shape::filled(x.rank(), 1);
      s[static_cast<int>(rows)] = B;
      return reshape(of_rows, s);
    };
    const Tensor steps = reshape(arange(T), a.batch_first ? Shape{1, T} : Shape{T, 1});
    Tensor inside = steps < reshape(lengths, a.batch_first ? Shape{B, 1} : Shape{1, B});
    for (int axis = 2; axis < x.rank(); ++axis) inside = unsqueeze(inside, axis);
    // The last step of every row; a row without steps takes that of the longest one.
    Shape one = x.shape();
    one[static_cast<int>(time)] = 1;
    const Tensor at = expand(beside(clamp(lengths - 1, 0, T - 1)), one);
    const Tensor row = where(lengths > 0, arange(B), argmax(lengths, 0, true));
    const Tensor last = index_select(gather(detach(x), time, at), rows, row);
    return where(inside, x, where(amax(lengths) > 0, last, 0));
  }
};

}  // namespace

Family composite_padding_family() {
  static constexpr const Primitive* list[] = {&composite<WithoutPadding>};
  return list;
}

}  // namespace detail

Tensor detail::padding_replaced(const Tensor& x, const Tensor& lengths, bool batch_first) {
  if (!lengths.defined()) return x;
  return composed<WithoutPadding>({{&x, &lengths}}, {batch_first});
}

Tensor without_padding(const Tensor& x, const Tensor& lengths, bool batch_first) {
  if (!lengths.defined()) return x;
  if (x.rank() < 2)
    detail::throw_shape("without_padding", std::string("expects x ") + (batch_first ? "[B, T, ...]" : "[T, B, ...]") +
                                               ", got " + x.shape().str());
  const int time = batch_first ? 1 : 0;
  const Spec wanted{{x.shape()[1 - time]}, Dtype::i64};
  if (lengths.spec() != wanted)
    detail::throw_shape("without_padding", "expects lengths " + wanted.str() + ", got " + lengths.spec().str());
  return detail::padding_replaced(x, checked(lengths, 0, x.shape()[time], "without_padding: a length of"), batch_first);
}

}  // namespace ferrite
