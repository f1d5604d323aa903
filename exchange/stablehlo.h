#pragma once
/// Export of traced programs as StableHLO text.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/exchange/export_error.h"

/// StableHLO, the portable language of programs on tensors that XLA, IREE and other compilers take
/// (openxla.org/stablehlo/spec), as text.
namespace ferrite::exchange {

/// How a scan is written.
enum class ScanExport : std::uint8_t {
  as_while,  ///< as one loop: the length of the text does not depend on the number of steps
  unrolled,  ///< step by step, for compilers that take no loops
};

/// Which operations a program has where extents are open.
enum class DynamicForms : std::uint8_t {
  complete,  ///< those of the language, also dynamic_reshape, dynamic_gather, dynamic_update_slice
  gathers,   ///< instead of these three, gathers and scatters of elements: for compilers without them, as IREE 3.13
};

struct StablehloOptions {
  /// Of the module; letters, digits and underscores, no digit first.
  std::string name = "ferrite";
  /// Variables that the program reads and never writes stand in the text with their present values, instead of being
  /// arguments: a program that needs nothing but its inputs.
  bool inline_variables = false;
  /// Constants of more than one element are arguments, behind all others, instead of standing in the text.
  bool constants_as_arguments = false;
  ScanExport scan = ScanExport::as_while;
  /// What a layer of a model computes has its path as location, `loc("encoder.0")`, which compilers name in their
  /// errors and profiles.
  bool locations = false;
  /// Axes whose extents stay open, `?` in the text. Only where a function is exported, not a graph.
  std::vector<DynamicAxis> dynamic{};
  DynamicForms dynamic_forms = DynamicForms::complete;
};

/// A traced program as the text of a module with one function, `@main`.
///
/// Arguments: the graph's inputs, then the variables it reads in the order of `reads`, then, if asked for, constants in
/// the order of `constants`. Results: the outputs, then the variables it writes in the order of `writes`. Comments at
/// the head of the text name the arguments and results that are variables or constants. Elements are exact: one
/// repeated value stands in decimals that read back as the same number, all else as hexadecimal bytes, little-endian.
/// What no result depends on is left out. A scan (compile/scan.h), its gradient and recurrent layers with
/// `nn::Form::scan` are written as `stablehlo.while`, or step by step where the options say so; other forms of
/// recurrent layers, and their gradients, step by step, so that the length of the text is proportional to the number of
/// steps.
///
/// Not the same as here: an index out of range, an error here, is clamped to the range by StableHLO, or its update
/// dropped; sums are taken in an order of the compiler's, so that values agree to rounding, not to the bit.
///
/// Throws ExportError for an operation that is listed in `stablehlo_refusals` or that has no lowering, ValueError for a
/// name that is none and for dynamic axes, TraceError for a graph that is not valid.
std::string to_stablehlo(const Graph& graph, const StablehloOptions& options = {});

/// Traces a function and exports it. With dynamic axes it is traced at several extents: what differs between these
/// programs becomes arithmetic on the arguments' extents (`get_dimension_size`), and has to agree with all of them;
/// operations whose result depends on such numbers take their dynamic forms. Comments name the open extents of
/// arguments and results. What recurrent layers do step by step is a loop then, as with `nn::Form::scan`. That axes of
/// one name have one extent, and that extents are multiples, is the caller's part, and that the function does nothing
/// else at extents smaller than those of `inputs` (what a model that was read computes from them is seen to). Throws
/// ExportError, naming the operation and its layer, where a program has an extent fixed in another way, ValueError for
/// an axis that the inputs do not have.
///
///   exchange::to_stablehlo(f, inputs, {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}});
std::string to_stablehlo(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                         const StablehloOptions& options = {});

/// All operations that StableHLO cannot hold.
std::span<const ExportRefusal> stablehlo_refusals();

/// Whether `to_stablehlo` takes an operation.
bool has_stablehlo(const Primitive& op);

}  // namespace ferrite::exchange
