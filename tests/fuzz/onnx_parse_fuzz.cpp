/// Any bytes are refused with an OnnxError, or parsed as a model that describes its inputs, so that its graphs can be
/// made.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "ferrite/exchange/onnx.h"

namespace {

std::optional<ferrite::onnx::Model> parsed(std::span<const std::byte> bytes) {
  try {
    return ferrite::onnx::parse(bytes);
  } catch (const ferrite::onnx::OnnxError&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = parsed(std::as_bytes(std::span(data, size)));
  if (!model || (model->report().empty() && !model->outputs().empty() && model->inputs().empty())) return 0;
  const auto copy = model->clone();
  if (copy->named_parameters().size() != model->named_parameters().size()) std::abort();
  return 0;
}
