/// Any bytes are refused with an OnnxError, or are a model that says what it takes.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ferrite/exchange/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const ferrite::onnx::Model model = ferrite::onnx::parse(std::as_bytes(std::span(data, size)));
    if (model.report().empty() && !model.outputs().empty() && model.inputs().empty()) return 0;
    const auto copy = model.clone();
    if (copy->named_parameters().size() != model.named_parameters().size()) std::abort();
  } catch (const ferrite::onnx::OnnxError&) {
    return 0;
  }
  return 0;
}
