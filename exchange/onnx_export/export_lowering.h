#pragma once
/// The lowerings of operations to ONNX. Pointwise operations whose record names an operation of ONNX with the same
/// operands need none; those with a composition are written as that; the others have a function here, by family, or,
/// where other formats lack them as well, in common_lowerings.
#include "ferrite/exchange/onnx_export/export_builder.h"

namespace ferrite::exchange::detail {

using ExportFamily = std::span<const NamedLowering<OnnxBuilder>>;
ExportFamily export_lowerings();
ExportFamily export_windows();
ExportFamily export_recurrent();
ExportFamily export_scan();

}  // namespace ferrite::exchange::detail
