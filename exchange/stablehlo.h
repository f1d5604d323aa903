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

/// StableHLO, the portable language of tensor programs that XLA, IREE and other compilers read
/// (openxla.org/stablehlo/spec), as text.
namespace ferrite::exchange {

/// The form in which a scan is written.
enum class ScanExport : std::uint8_t {
  as_while,  ///< as one loop: the length of the text does not depend on the number of steps
  unrolled,  ///< step by step, for compilers that take no loops
};

/// The set of operations for open extents.
enum class DynamicForms : std::uint8_t {
  complete,  ///< all of the language, including dynamic_reshape, dynamic_gather, dynamic_update_slice
  gathers,   ///< instead of these three, gathers and scatters of elements: for compilers without them, as IREE 3.13
};

/// Options of the StableHLO export: names, what becomes an argument, the form of scans, and open extents.
struct StablehloOptions {
  /// Name of the module: letters, digits and underscores, not starting with a digit.
  std::string name = "ferrite";
  /// Writes the present values of variables that the program only reads into the text, instead of making them
  /// arguments, so that the program needs nothing but its inputs.
  bool inline_variables = false;
  /// Makes constants of more than one element arguments, after all others, instead of writing them into the text.
  bool constants_as_arguments = false;
  ScanExport scan = ScanExport::as_while;  ///< form in which scans are written
  /// Writes the path of the layer as the location of what it computes, `loc("encoder.0")`, which compilers name in
  /// their errors and profiles.
  bool locations = false;
  /// Axes whose extents stay open, `?` in the text. Only for the export of a function, not of a graph.
  std::vector<DynamicAxis> dynamic{};
  DynamicForms dynamic_forms = DynamicForms::complete;  ///< operations used for open extents
};

/// Returns a traced program as the text of a StableHLO module with one function, `@main`.
///
/// Arguments: the graph's inputs, then the variables it reads in the order of `reads`, then, if asked for, constants in
/// the order of `constants`. Results: the outputs, then the variables it writes in the order of `writes`. Comments at
/// the head of the text name the arguments and results that are variables or constants. Elements are exact: one
/// repeated value is written in decimals that read back as the same number, all others as hexadecimal bytes,
/// little-endian. Operations that no result depends on are left out. A scan (compile/scan.h), its gradient and
/// recurrent layers with `nn::Form::scan` are written as `stablehlo.while`, or step by step where the options say so;
/// other forms of recurrent layers, and their gradients, step by step, so that the length of the text is proportional
/// to the number of steps.
///
/// Differences: an index out of range, an error in Ferrite, is clamped to the range by StableHLO, or its update
/// dropped; the compiler chooses the order of sums, so that values agree to rounding, not to the bit.
///
/// Throws ExportError for an operation that is listed in `stablehlo_refusals` or that has no lowering, ValueError for
/// an invalid module name and for dynamic axes, TraceError for a graph that is not valid.
std::string to_stablehlo(const Graph& graph, const StablehloOptions& options = {});

/// Traces a function and exports it as StableHLO text. With dynamic axes it is traced at several extents: numbers that
/// differ between these programs become arithmetic on the arguments' extents (`get_dimension_size`), which has to agree
/// with all of them; operations whose result depends on such numbers take their dynamic forms. Comments in the text
/// name the open extents of arguments and results. Recurrent layers are then loops, as with `nn::Form::scan`. The
/// caller has to ensure that axes with equal names have equal extents, that extents are multiples as declared, and that
/// the function behaves the same at extents smaller than those of `inputs` (what a model read from a file computes from
/// extents is handled). Throws as the other form, ExportError, naming the operation and its layer, where a program
/// fixes an extent in another way, and ValueError for an axis that the inputs do not have.
///
///   exchange::to_stablehlo(f, inputs, {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}});
std::string to_stablehlo(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                         const StablehloOptions& options = {});

/// Returns all operations that StableHLO cannot express, with reasons.
std::span<const ExportRefusal> stablehlo_refusals();

/// Returns whether `to_stablehlo` can export an operation.
bool has_stablehlo(const Primitive& op);

}  // namespace ferrite::exchange
