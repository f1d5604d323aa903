#pragma once
/// How each operation is written in StableHLO. Pointwise operations whose record names an operation of StableHLO with
/// the same operands need nothing more; an operation with a composition (`reference`) is written as that; all others
/// have a function here, by family.
#include "ferrite/compile/graph.h"
#include "ferrite/exchange/emit/graph_walk.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {

/// Pointwise operations get all operands in the result's shape, literals among them as constants; the others what the
/// node has.
using HloCall = Application<HloValue>;

/// At most one argument of a call in a lowering may write something: compilers differ in the order of evaluation, and
/// the text would.
using HloLowering = Lowering<HloBuilder, HloValue>;
using NamedHloLowering = NamedLowering<HloBuilder, HloValue>;
using HloFamily = std::span<const NamedHloLowering>;
HloFamily hlo_pointwise();
HloFamily hlo_error_functions();
HloFamily hlo_math();
HloFamily hlo_reductions();
HloFamily hlo_views();
HloFamily hlo_indexing();
HloFamily hlo_creation();
HloFamily hlo_scan();

/// How an operation is written, or null.
HloLowering find_hlo_lowering(const Primitive& op);

/// Writes the part of a graph that its outputs and writes depend on. `given` are the values of inputs, variables read
/// and, where they are no part of the text, constants, by number; constants without a value are written. Gives the
/// outputs, then what is written to variables. `read` says which outputs are asked for, where not all are; the others
/// may come without a name. Throws ExportError.
HloValues lower_graph(HloBuilder& b, const Graph& graph, std::vector<HloValue> given,
                      const std::vector<bool>& read = {});

/// Traces a function and writes it, applied to these values.
HloValues lower_traced(HloBuilder& b, const std::function<Tensors(const Tensors&)>& f, const HloValues& in,
                       const std::vector<bool>& read = {});

}  // namespace ferrite::exchange::detail
