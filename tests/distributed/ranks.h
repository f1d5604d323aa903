#pragma once
// Helpers that the cases for several ranks share.
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "ferrite/distributed/world.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/ops.h"

namespace ranks {

using Arguments = std::vector<std::string>;
using Case = int (*)(const ferrite::mpi::World&, const Arguments&);

inline int timeout_ms() {
  const char* text = std::getenv("FERRITE_RANKS_TIMEOUT_MS");
  return text ? std::atoi(text) : 60000;
}

/// Returns whether two tensors have the same bits.
inline bool same(const ferrite::Tensor& a, const ferrite::Tensor& b) {
  const ferrite::Tensor x = contiguous(a), y = contiguous(b);
  return x.spec() == y.spec() &&
         std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.numel() * size_of(x.dtype()))) == 0;
}

/// Returns a digest of the bits of a tensor (FNV-1a).
inline std::uint64_t digest(const ferrite::Tensor& x, std::uint64_t h = 14695981039346656037U) {
  const ferrite::Tensor t = contiguous(x);
  const std::byte* const bytes = t.raw();
  for (std::int64_t i = 0; i < t.numel() * size_of(t.dtype()); ++i)
    h = (h ^ static_cast<std::uint64_t>(bytes[i])) * 1099511628211U;
  return h;
}

/// Returns the digest of everything that a training changes.
inline std::uint64_t digest_of(const ferrite::nn::Module& net, const ferrite::nn::Optimizer& optimizer,
                               std::uint64_t h) {
  for (const auto& p : net.named_parameters()) h = digest(p.variable.peek(), h);
  for (const auto& b : net.named_buffers()) h = digest(b.variable.peek(), h);
  for (const auto& s : net.named_states()) h = digest(s.variable.peek(), h);
  for (const auto& s : optimizer.states()) h = digest(s.variable.peek(), h);
  return h;
}

/// Prints a line of this rank in one piece.
inline void tell(const ferrite::mpi::World& world, const std::string& what) {
  std::cout << "rank " + std::to_string(world.rank()) + ": " + what + "\n" << std::flush;
}

// Case that runs training steps (steps.cpp).
int train(const ferrite::mpi::World& world, const Arguments& arguments);
// Case that checks the errors of training steps (refusals.cpp).
int refusals(const ferrite::mpi::World& world, const Arguments& arguments);
// Case of an optimiser spread over the ranks (sharded.cpp).
int sharded(const ferrite::mpi::World& world, const Arguments& arguments);
int plain_step(const ferrite::mpi::World& world, const Arguments& arguments);

// Cases of trainings by `fit` (fits.cpp), and of its errors (fit_refusals.cpp).
int fit(const ferrite::mpi::World& world, const Arguments& arguments);
int fit_plainly(const ferrite::mpi::World& world, const Arguments& arguments);
int fit_refusals(const ferrite::mpi::World& world, const Arguments& arguments);
int fit_throws(const ferrite::mpi::World& world, const Arguments& arguments);

}  // namespace ranks
