/// Bytes of one rank for all.
#include "ferrite/distributed/detail/texts.h"

#include <algorithm>

#include "ferrite/distributed/detail/link.h"

namespace ferrite::mpi::detail {

void broadcast_bytes(const World& world, std::vector<std::byte>& bytes, int root) {
  const Tensor size = Tensor::from({static_cast<std::int64_t>(bytes.size())});
  bytes.resize(static_cast<std::size_t>(world.broadcast(size, root).item<std::int64_t>()));
  world.link()->broadcast(bytes.data(), bytes.size(), root);
}

std::string first_text(const World& world, const std::string& own) {
  if (!world.any(!own.empty())) return {};
  int root = 0;
  while (!world.any(root == world.rank() && !own.empty())) ++root;
  std::vector<std::byte> bytes(own.size());
  std::ranges::transform(own, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  broadcast_bytes(world, bytes, root);
  std::string text(bytes.size(), ' ');
  std::ranges::transform(bytes, text.begin(), [](std::byte b) { return static_cast<char>(b); });
  return text;
}

}  // namespace ferrite::mpi::detail
