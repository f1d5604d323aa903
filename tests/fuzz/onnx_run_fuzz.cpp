/// A model of any bytes runs or throws an Error, eagerly and compiled; if both run, the results are the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/tensor/ops.h"

namespace {

using namespace ferrite;

/// Returns ones of the shapes that the inputs ask for, with 2 for open extents.
std::optional<Tensors> inputs_of(const onnx::Model& model) {
  constexpr std::int64_t kMostElements = 1 << 12;
  Tensors in;
  for (const onnx::Port& port : model.inputs()) {
    Shape shape;
    std::int64_t elements = 1;
    if (port.shape.size() > static_cast<std::size_t>(Shape::kMaxRank)) return {};
    for (const std::string& axis : port.shape) {
      const bool fixed = !axis.empty() && axis.size() < 5 && axis.find_first_not_of("0123456789") == std::string::npos;
      shape.push_back(fixed ? std::stoll(axis) : 2);
      elements *= std::max<std::int64_t>(shape[-1], 1);
      if (elements > kMostElements) return {};
    }
    if (!port.ranked) shape = {2, 3, 4};
    in.push_back(ones(shape, port.dtype));
  }
  return in;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const onnx::Model model =
        onnx::parse(std::as_bytes(std::span(data, size)), {.most_trips = 4, .most_elements = 1 << 20});
    const auto in = inputs_of(model);
    if (!in) return 0;
    const Tensors eager = model.run(*in);
    const Tensors planned = compile([&](const Tensors& x) { return model.run(x); })(*in);
    if (eager.size() != planned.size()) std::abort();
    for (std::size_t i = 0; i < eager.size(); ++i)
      if (eager[i].spec() != planned[i].spec()) std::abort();
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
