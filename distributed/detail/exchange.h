#pragma once
/// One exchange of a link: the nodes of all ranks, joined piece by piece and handed round.
#include "ferrite/distributed/detail/link.h"

namespace ferrite::mpi::detail {

/// Every rank finishes the tree for its piece of the elements: pieces of all nodes come to it (all to all), and the
/// joined pieces go to all (all gather). A gathering is the second half alone.
struct Link::Exchange {
  enum class Stage : std::uint8_t { scattering, joined, gathering, done };

  const Pattern* pattern = nullptr;
  Dtype dtype = Dtype::f32;
  std::int64_t count = 0;
  Stage stage = Stage::scattering;
  MPI_Request scatter = MPI_REQUEST_NULL, gather = MPI_REQUEST_NULL;
  std::vector<std::byte> sent, received;  ///< nodes of this rank for others, and nodes of all for this rank's piece
  std::vector<std::byte> result;          ///< with this rank's piece in its place
  std::vector<int> send_counts, send_begins, receive_counts, receive_begins;  ///< of elements
  std::vector<int> piece_counts, piece_begins;                                ///< of elements, by rank
};

}  // namespace ferrite::mpi::detail
