// docs/operations.md is generated from the records; this test keeps it current. FERRITE_REGENERATE=1 writes it.
#include <sstream>

#include "conformance/header_text.h"
#include "conformance/operation_examples.h"
#include "conformance/oracles/oracle.h"
#include "ferrite/compile/operations.h"
#include "ferrite/nn/operations.h"
#include "ferrite/tensor/primitive.h"

namespace {

using ferrite::Primitive;

std::string dtypes_of(const Primitive& op) {
  if (!op.is_pointwise()) return op.takes_storage_types ? "all" : "";
  std::string s;
  for (const ferrite::Dtype t : ferrite::kDtypes)
    if (!is_storage_only(t) && op.block(t)) s += (s.empty() ? "" : " ") + std::string(name_of(t));
  return s;
}

std::string kind_of(const Primitive& op) {
  return op.is_pointwise() ? "pointwise" : op.is_view() ? "view" : "structured";
}

/// Returns the constants by name; optional ones are in brackets.
std::string attributes_of(const Primitive& op) {
  if (op.is_pointwise()) return "";
  std::string s;
  for (const ferrite::AttrField& f : *op.attributes)
    s += (s.empty() ? "" : " ") + (f.optional ? "[" + std::string(f.name) + "]" : std::string(f.name));
  return s;
}

std::string number(double v) {
  std::ostringstream s;
  s << v;
  return s.str();
}

std::vector<const Primitive*> all() {
  return ferrite::detail::joined({ferrite::primitives(), ferrite::nn::operations(), ferrite::program_operations()});
}

std::vector<const Primitive*> composed() {
  return ferrite::detail::joined({ferrite::composites(), ferrite::nn::composites()});
}

using conformance::in_table;

/// Returns the counterpart of an operation in PyTorch, as a cell.
std::string pytorch_of(const Primitive* op) {
  return in_table(conformance::pytorch_of(conformance::example_of(op->name)));
}

constexpr const char* kBegin = R"(# Operations

Look up an operation: what it computes, its constants, its dtypes, its names in PyTorch, ONNX and StableHLO, and an
[example](#examples). `tensor/ops.h` declares the functions. This page is generated from the records in `tensor/ops/`,
`nn/` and `compile/` and from `tests/conformance/operation_examples.h`; do not edit it.

* *Constants* are the attributes of an operation by name; those in brackets are optional. A pointwise operation has the
  constants `[a] [b] [c]`: literals that replace operands.
* *Dtypes*: `all` means f32, f64, i32, i64, bool and the storage types bf16, f16 and i8; every other operation refuses
  storage types.
* *Sampled on* is the interval on which tests compare a pointwise operation with its oracle.
* *PyTorch* names the function, method or class that computes the same, with what differs in its arguments or results;
  `tests/data/check_reference_names.py` looks these names up. Draws are of the same distributions, but other numbers.
  Operations without a counterpart are those that only gradients, optimisers and compiled programs use, and
  functions that PyTorch does not have. [Coming from PyTorch](from-pytorch.md) lists defaults that differ.

)";

constexpr const char* kExamples = R"(## Examples

An expression for every operation and composed function, and its value: numbers are rounded to four digits, and for more
than 12 elements shape and dtype are given. The tests run the expressions and check that each of them executes its
operation. Gradients, and other operations that no program calls by name, are shown by the public function that uses
them.

All expressions stand in the scope of `using namespace ferrite;`, and some use these definitions:

)";

/// Returns the definitions that examples share, as code of Markdown.
std::string shared_definitions() {
  const std::string text = pages::file_text("tests/conformance/operation_examples_sequences.cpp");
  const std::string begin = "// ---- definitions that the page shows ----\n";
  const std::size_t at = text.find(begin), end = text.find("// ---- the examples ----");
  BOOST_TEST_REQUIRE((at != std::string::npos && end != std::string::npos));
  return "```text\n" + text.substr(at + begin.size(), end - at - begin.size()) + "```\n\n";
}

void add_examples(std::ostringstream& s, const char* title, const std::vector<const Primitive*>& list) {
  s << "| " << title << " | example | value |\n|---|---|---|\n";
  for (const Primitive* op : list) {
    const conformance::OperationExample e = conformance::example_of(op->name);
    s << "| `" << op->name << "` | " << in_table(conformance::code_of(e)) << " | " << conformance::result_of(e.value())
      << " |\n";
  }
}

std::string markdown() {
  std::ostringstream s;
  s << kBegin
    << "| operation | result | kind | constants | dtypes | gradient | sampled on | PyTorch | ONNX | StableHLO |\n"
    << "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Primitive* op : all()) {
    s << "| `" << op->name << "` | " << in_table(std::string(op->summary)) << " | " << kind_of(*op) << " | "
      << attributes_of(*op) << " | " << dtypes_of(*op) << " | " << (op->differentiable() ? "yes" : "no") << " | ";
    if (op->is_pointwise())
      s << '[' << number(oracles::of(*op).domain.low) << ", " << number(oracles::of(*op).domain.high) << ']';
    s << " | " << pytorch_of(op) << " | " << op->onnx << " | " << op->stablehlo << " |\n";
  }
  s << "\n" << all().size() << " operations. Points at which no derivative exists:";
  std::size_t kinks = 0;
  for (const Primitive* op : all())
    for (const double at : oracles::of(*op).kinks) {
      s << (kinks++ ? ", " : " ") << '`' << op->name << "` at " << number(at);
    }
  s << " (" << kinks << ").\n\n## Composed functions\n\n"
    << "Their gradients, kernels and exports are those of their parts.\n\n"
    << "| function | result | PyTorch | ONNX |\n|---|---|---|---|\n";
  for (const Primitive* op : composed())
    s << "| `" << op->name << "` | " << in_table(std::string(op->summary)) << " | " << pytorch_of(op) << " | "
      << op->onnx << " |\n";
  s << "\n" << kExamples << shared_definitions();
  add_examples(s, "operation", all());
  s << "\n";
  add_examples(s, "composed function", composed());
  return s.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_pages)

BOOST_AUTO_TEST_CASE(operations_md) { pages::check_page("docs/operations.md", markdown()); }

BOOST_AUTO_TEST_SUITE_END()
