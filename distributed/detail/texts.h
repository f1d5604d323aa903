#pragma once
/// Bytes and texts that ranks tell each other.
#include <string>
#include <vector>

#include "ferrite/distributed/world.h"

namespace ferrite::mpi::detail {

/// The root's bytes, on every rank, whatever the others have.
void broadcast_bytes(const World& world, std::vector<std::byte>& bytes, int root = 0);
/// The text of the lowest rank whose text is not empty; empty where none is.
std::string first_text(const World& world, const std::string& own);

}  // namespace ferrite::mpi::detail
