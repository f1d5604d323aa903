/// The table of supported operations, from all families.
#include "ferrite/exchange/onnx/onnx_operations.h"

#include <array>
#include <map>
#include <utility>

namespace ferrite::onnx::detail {

std::span<const Operations> all_operations() {
  // A new family is declared in onnx_operations.h and added here.
  static const std::array families{core_operations(),      elementwise_operations(), shape_operations(),
                                   reduction_operations(), window_operations(),      resampling_operations(),
                                   loss_operations(),      recurrent_operations(),   control_operations(),
                                   pooling_operations(),   indexing_operations(),    network_operations(),
                                   attention_operations(), quantised_operations(),   training_operations(),
                                   sampling_operations(),  signal_operations(),      contributed_operations()};
  return families;
}

const Operation* find_operation(std::string_view domain, std::string_view name, std::int64_t version,
                                bool* other_version) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const auto rows = [] {
    std::multimap<Key, const Operation*> all;
    for (const Operations& family : all_operations())
      for (const Operation& row : family) all.emplace(Key{row.domain, row.name}, &row);
    return all;
  }();
  const auto [first, last] = rows.equal_range(Key{domain == "ai.onnx" ? "" : domain, name});
  if (other_version) *other_version = first != last;
  for (auto at = first; at != last; ++at)
    if (version >= at->second->since && version <= at->second->until) return at->second;
  return nullptr;
}

}  // namespace ferrite::onnx::detail
