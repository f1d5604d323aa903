#pragma once
/// Exchanges between ranks as operations that are recorded: they run in their place, eager and compiled.
#include "ferrite/distributed/detail/link.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::mpi::detail {

/// A pattern of a link, for elements of one dtype.
struct Route {
  std::int64_t link = 0, pattern = 0;
  bool alone = false;  ///< one rank: nothing is sent
};
Route route_of(const std::shared_ptr<Link>& link, Pattern pattern);

/// What has been sent and not yet waited for.
struct Sent {
  Tensor ticket{};  ///< undefined where there is one rank
  Tensor whole{};   ///< there, the result
  Spec result{};
};

/// Begins to join the nodes of this rank, each [N] of one dtype (f32, f64, i64), with those of the others; `total` is
/// the N of the result, which for a gathering is the sum of all ranks'.
Sent start(const Route& route, const Tensors& nodes, std::int64_t total);
/// The joined elements [N].
Tensor wait(const Route& route, const Sent& sent);
/// Both.
Tensor exchanged(const Route& route, const Tensors& nodes);

}  // namespace ferrite::mpi::detail
