/// Which code a cheap operation has as a link of a chain.
#include "ferrite/tensor/kernel/chain.h"

#include "ferrite/tensor/ops/detail/cheap.h"

namespace ferrite::detail {
namespace {

/// The place of an operation in the tables of ChainKernels, or how many there are.
template <class... Op>
std::size_t place_of(const Primitive& op) {
  std::size_t at = 0;
  (void)((&op == &pointwise<Op> || (++at, false)) || ...);
  return at;
}

}  // namespace

const LinkKernel* link_from(bool repeated) { return chains_in_use.get().from[repeated]; }
const LinkKernel* link_through(const Primitive& op, std::size_t at, bool repeated) {
  const std::size_t place = place_of<Add, Sub, Mul, Neg, Square, Relu>(op);
  return place < ChainKernels::kCheap ? chains_in_use.get().through[place][at][repeated] : nullptr;
}
const LinkKernel* link_through_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2) {
  const std::size_t place = place_of<Add, Sub, Mul>(op);
  return place < ChainKernels::kProducts ? chains_in_use.get().product[place][at][repeated][repeated2] : nullptr;
}
const LinkKernel* link_to() { return chains_in_use.get().to; }

void run_chain(const Link* links, std::int64_t rows, std::int64_t columns) {
  chains_in_use.get().run(links, rows, columns);
}

}  // namespace ferrite::detail
