/// Finds the functor of an operation: the operation's record points to the kernels of its place.
#include <utility>

#include "ferrite/tensor/kernel/written_functions.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {
namespace {

template <std::size_t family, class... F, std::size_t... place>
int place_in_family(const Primitive& op, functors::FunctorList<F...>, std::index_sequence<place...>) {
  int found = -1;
  ((op.blocks == &blocks_in_use<family, place> ? found = static_cast<int>(place) : 0), ...);
  return found;
}
template <class... List, std::size_t... family>
WrittenPlace place_in_families(const Primitive& op, std::tuple<List...>, std::index_sequence<family...>) {
  WrittenPlace found;
  const auto look = [&]<class... F>(int at, int place, functors::FunctorList<F...>) {
    if (place >= 0) found = {at, place};
  };
  const auto indices = []<class... F>(functors::FunctorList<F...>) { return std::index_sequence_for<F...>(); };
  (look(static_cast<int>(family), place_in_family<family>(op, List{}, indices(List{})), List{}), ...);
  return found;
}

}  // namespace

WrittenPlace written_place(const Primitive& op) {
  if (op.blocks == nullptr) return {};
  return place_in_families(op, functors::Families{}, std::make_index_sequence<std::tuple_size_v<functors::Families>>());
}

}  // namespace ferrite::detail
