/// Expands operations into those that C has, and writes programs within programs.
#include "ferrite/exchange/freeze/c_nested.h"

#include <algorithm>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/freeze/c_attention.h"
#include "ferrite/exchange/freeze/frozen_program.h"
#include "ferrite/nn/recurrent/sequence_scans.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {

using ferrite::OperandList;

namespace {

/// Operations whose composition has the bits of their kernels, for finite numbers.
constexpr std::string_view kComposed[] = {
    "attention",         "gru_reset_before_sequence",
    "gru_sequence",      "index_add",
    "lstm_sequence",     "peephole_lstm_sequence",
    "prod_others",       "rnn_relu_sequence",
    "rnn_sequence",      "rule_update",
    "scan_checkpointed", "scan_checkpointed_grad",
};

/// Returns whether an operation is written as those that it is made of.
bool expands(const Graph& g, const Graph::Node& n) {
  return n.op->is_composite() || nn::detail::has_scan(g, n) || n.op->name == "attention_grad" ||
         (n.op->reference && std::ranges::find(kComposed, n.op->name) != std::end(kComposed));
}

void expand_once(Graph& g, std::vector<ValueId>& left_out) {
  ferrite::detail::Substitution to(g.values.size());
  ferrite::detail::rewrite_nodes(g, to, [&](Graph::Node& n) {
    if (!expands(g, n)) return g.nodes.push_back(std::move(n));
    std::vector<Spec> types;
    for (const ValueId v : n.in) types.push_back(g.values[v]);
    const bool scan = nn::detail::has_scan(g, n);
    const auto composed = [&](const Tensors& in) {
      if (scan) return nn::detail::as_scan(n, in);
      return n.op->name == "attention_grad" ? attention_gradient(n, in) : n.op->reference(OperandList(in), n.attrs);
    };
    const Graph parts = trace(composed, types);
    const std::vector<ValueId> out = ferrite::detail::splice(g, parts, {n.in.data(), n.in.size()}, n.scope);
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      if (k < out.size()) {
        to.replace(n.out[k], out[k]);
      } else {
        left_out.push_back(n.out[k]);
      }
    }
  });
}

}  // namespace

void expand_for_c(Graph& g) {
  const nn::detail::ComposeAsScans as_scans;
  std::vector<ValueId> left_out;
  passes::drop_detach(g);
  passes::drop_recompute(g);
  while (std::ranges::any_of(g.nodes, [&g](const Graph::Node& n) { return expands(g, n); })) expand_once(g, left_out);
  if (left_out.empty()) return;
  // What only a gradient's own kernel reads is not computed; nothing else may read it.
  for (const Graph::Node& n : g.nodes)
    for (const ValueId v : n.in)
      if (std::ranges::find(left_out, v) != left_out.end()) {
        ExportError e("freeze: no C for " + std::string(n.op->name) + ": it reads what an operation saves");
        if (!n.scope.empty()) e.set_layer(n.scope.path());
        throw e;
      }
}

CNested::CNested(CBody& outer, Graph graph) : program_(), body_(outer, program_) {
  const NewFrame frame;
  expand_for_c(graph);
  for (Graph::Constant& c : graph.constants)
    if (!is_repeated(c.tensor)) c.tensor = contiguous(c.tensor);
  program_.lowered = ferrite::detail::lower(std::move(graph));
  for (const Spec& s : program_.lowered.graph.values)
    if (is_float(s.dtype)) outer.module().has(s.dtype);
}

bool CNested::is_input(std::size_t result) const {
  return std::ranges::find(program_.lowered.graph.inputs, program_.lowered.graph.outputs[result]) !=
         program_.lowered.graph.inputs.end();
}

bool CNested::has_place(std::size_t result) const {
  const ValueId v = program_.lowered.graph.outputs[result];
  return body_.has_place(v) ||
         std::ranges::any_of(program_.lowered.graph.constants, [v](const auto& c) { return c.value == v; });
}

void CNested::output(std::size_t i, const std::string& at) {
  const ValueId v = program_.lowered.graph.outputs[i];
  if (is_input(i) || has_place(i)) {
    copies_.push_back({i, at});
  } else {
    body_.place(v, {at});
  }
}

void CNested::write(CText& to) {
  body_.write(to, to);
  for (const Copy& c : copies_) {
    const std::int64_t n = body_.spec(program_.lowered.graph.outputs[c.result]).shape.numel();
    write_copy(to, c.to, result(c.result), n);
  }
}

std::string CNested::result(std::size_t i) const { return body_.place_of(program_.lowered.graph.outputs[i]).first; }

}  // namespace ferrite::exchange::detail
