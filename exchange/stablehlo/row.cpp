/// Compares instructions, and explains the numbers in which they differ.
#include "ferrite/exchange/stablehlo/row.h"

#include <algorithm>

#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/exchange/export_error.h"

namespace ferrite::exchange::detail {
namespace {

std::vector<int> ids(const HloValues& values) {
  std::vector<int> all;
  for (const HloValue& v : values) all.push_back(v.id);
  return all;
}

bool same(const HloAttribute& a, const HloAttribute& b) {
  if (a.value.index() != b.value.index()) return false;
  const auto* elements = std::get_if<Tensor>(&a.value);
  if (elements) return same_bits(*elements, std::get<Tensor>(b.value));
  const auto* list = std::get_if<Shape>(&a.value);
  return list ? *list == std::get<Shape>(b.value) : std::get<std::string>(a.value) == std::get<std::string>(b.value);
}

}  // namespace

void HloRow::refuse(const std::string& what) const {
  const auto& [operation, layer] = first().origin;
  std::string where(operation.empty() ? "the program" : operation);
  if (!layer.empty()) where += " in '" + std::string(layer.path()) + "'";
  throw ExportError("to_stablehlo: an extent that should stay open is fixed: " + where + " (stablehlo." + first().op +
                    "): " + what + "; write the function for any extent, or export it without this dynamic axis");
}

void HloRow::check() const {
  for (const HloInstruction* b : all_) {
    if (b->op != first().op) refuse("at another extent it is stablehlo." + b->op);
    if (ids(b->operands) != ids(first().operands) || ids(b->results) != ids(first().results))
      refuse("at another extent it reads other values");
  }
}

void HloRow::check_attributes() const {
  for (const HloInstruction* b : all_)
    for (std::size_t k = 0; k < first().attributes.size(); ++k)
      if (!same(first().attributes[k], b->attributes[k]))
        refuse("its " + std::string(first().attributes[k].name) + " depends on the extent");
}

ExtentNumbers HloRow::shape(std::size_t result) const {
  std::vector<Shape> shapes;
  for (const HloInstruction* i : all_) shapes.push_back(i->results[result].shape());
  return explained(shapes, "its result");
}

std::vector<Shape> HloRow::lists(std::string_view attribute) const {
  std::vector<Shape> all;
  for (const HloInstruction* i : all_) all.push_back(i->get<Shape>(attribute));
  return all;
}

ExtentNumbers HloRow::list(std::string_view attribute) const {
  return explained(lists(attribute), "its " + std::string(attribute));
}

bool HloRow::differs(std::string_view attribute) const {
  const std::vector<Shape> all = lists(attribute);
  return std::ranges::any_of(all, [&](const Shape& s) { return s != all[0]; });
}

ExtentNumbers HloRow::explained(const std::vector<Shape>& lists, const std::string& what) const {
  for (const Shape& s : lists)
    if (s.rank() != lists[0].rank()) refuse(what + " has another rank at another extent");
  std::optional<ExtentNumbers> numbers = extents_.explain(lists);
  if (!numbers) refuse("no arithmetic on the extents gives " + what + " " + lists[0].str());
  return std::move(*numbers);
}

}  // namespace ferrite::exchange::detail
