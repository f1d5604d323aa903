// docs/operations.md is generated from the records; this test keeps it current. FERRITE_REGENERATE=1 writes it.
#include <sstream>

#include "conformance/header_text.h"
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

std::string markdown() {
  std::ostringstream s;
  s << "# Operations\n\nLook up an operation: what it computes, its constants, its dtypes, and its names in ONNX and "
       "StableHLO. `tensor/ops.h` declares the functions. This page is generated from the records in `tensor/ops/`, "
       "`nn/` and `compile/`; do not edit it.\n\n"
       "* *Constants* are the attributes of an operation by name; those in brackets are optional. A pointwise "
       "operation "
       "has the constants `[a] [b] [c]`: literals that replace operands.\n"
       "* *Dtypes*: `all` means f32, f64, i32, i64, bool and the storage types bf16, f16 and i8; every other "
       "operation refuses storage types.\n"
       "* *Sampled on* is the interval on which tests compare a pointwise operation with its oracle.\n\n"
    << "| operation | result | kind | constants | dtypes | gradient | sampled on | ONNX | StableHLO |\n"
    << "|---|---|---|---|---|---|---|---|---|\n";
  for (const Primitive* op : all()) {
    std::string summary(op->summary);
    for (std::size_t at = summary.find('|'); at != std::string::npos; at = summary.find('|', at + 2))
      summary.insert(at, "\\");
    s << "| `" << op->name << "` | " << summary << " | " << kind_of(*op) << " | " << attributes_of(*op) << " | "
      << dtypes_of(*op) << " | " << (op->differentiable() ? "yes" : "no") << " | ";
    if (op->is_pointwise())
      s << '[' << number(oracles::of(*op).domain.low) << ", " << number(oracles::of(*op).domain.high) << ']';
    s << " | " << op->onnx << " | " << op->stablehlo << " |\n";
  }
  s << "\n" << all().size() << " operations. Points at which no derivative exists:";
  std::size_t kinks = 0;
  for (const Primitive* op : all())
    for (const double at : oracles::of(*op).kinks) {
      s << (kinks++ ? ", " : " ") << '`' << op->name << "` at " << number(at);
    }
  s << " (" << kinks << ").\n\n## Composed functions\n\n"
    << "Their gradients, kernels and exports are those of their parts.\n\n"
    << "| function | result | ONNX |\n|---|---|---|\n";
  for (const auto& list : {ferrite::composites(), ferrite::nn::composites()})
    for (const Primitive* op : list) s << "| `" << op->name << "` | " << op->summary << " | " << op->onnx << " |\n";
  return s.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_pages)

BOOST_AUTO_TEST_CASE(operations_md) { pages::check_page("docs/operations.md", markdown()); }

BOOST_AUTO_TEST_SUITE_END()
