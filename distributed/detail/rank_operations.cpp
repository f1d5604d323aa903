/// The operations that start an exchange and wait for it.
#include "ferrite/distributed/detail/rank_operations.h"

#include "ferrite/tensor/define.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::mpi::detail {
namespace {

using ferrite::define::Writer;

struct StartAttrs {
  std::int64_t link = 0, pattern = 0, total = 0;
  static constexpr auto fields = attr_list(attr("link", &StartAttrs::link), attr("pattern", &StartAttrs::pattern),
                                           attr("total", &StartAttrs::total));
};

/// Nodes [N] -> the ticket of their exchange, i64 [1].
struct Start {
  using Attributes = StartAttrs;
  static constexpr auto name = "mpi_start", onnx = "", stablehlo = "";
  static constexpr auto summary = "begins to join the operands with those of other ranks; gives a ticket";
  static constexpr Effects effects{.throws = true, .communicates = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes&) {
    const Spec first = in[0].spec();
    if (first.shape.rank() != 1 ||
        (first.dtype != Dtype::f32 && first.dtype != Dtype::f64 && first.dtype != Dtype::i64))
      throw ShapeError("mpi_start: takes f32, f64 or i64 of rank 1, got " + first.str());
    for (const Tensor& x : in)
      if (!(x.spec() == first)) throw ShapeError("mpi_start: nodes differ: " + first.str() + " and " + x.spec().str());
    return {{{1}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    Tensors nodes;
    std::vector<const std::byte*> given;
    for (const Tensor& x : in) nodes.push_back(contiguous(x));
    for (const Tensor& x : nodes) given.push_back(x.raw());
    *Writer::data<std::int64_t>(out[0]) = link_of(a.link)->start(a.pattern, in[0].dtype(), a.total, given);
  }
};

struct WaitAttrs {
  std::int64_t link = 0, total = 0;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields =
      attr_list(attr("link", &WaitAttrs::link), attr("total", &WaitAttrs::total), attr("dtype", &WaitAttrs::dtype));
};

/// A ticket -> the joined elements [N].
struct Wait {
  using Attributes = WaitAttrs;
  static constexpr auto name = "mpi_wait", onnx = "", stablehlo = "";
  static constexpr auto summary = "what the exchange of a ticket gives, when it is there";
  static constexpr Effects effects{.throws = true, .communicates = true, .allocates = true};

  static Specs infer(Inputs, const Attributes& a) { return {{{a.total}, a.dtype}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    link_of(a.link)->finish(in[0].item<std::int64_t>(), Writer::raw(out[0]));
  }
};

}  // namespace

Route route_of(const std::shared_ptr<Link>& link, Pattern pattern) {
  return {number_of(link), link->add(std::move(pattern)), link->size() == 1};
}

Sent start(const Route& route, const Tensors& nodes, std::int64_t total) {
  Sent sent{.result = {{total}, nodes[0].dtype()}};
  if (route.alone) {
    sent.whole = nodes[0];
    return sent;
  }
  InlineVector<const Tensor*, 8> in;
  for (const Tensor& x : nodes) in.push_back(&x);
  sent.ticket =
      define::structured<Start>.apply({in.data(), in.size()}, StartAttrs{route.link, route.pattern, total})[0];
  return sent;
}

Tensor wait(const Route& route, const Sent& sent) {
  if (route.alone) return sent.whole;
  const Tensor* const in[] = {&sent.ticket};
  return define::structured<Wait>.apply(in, WaitAttrs{route.link, sent.result.shape[0], sent.result.dtype})[0];
}

Tensor exchanged(const Route& route, const Tensors& nodes) {
  return wait(route, start(route, nodes, nodes[0].numel()));
}

}  // namespace ferrite::mpi::detail
