/// Exchanges: packing, joining in the order of the tree, and their order on the communicators.
#include "ferrite/distributed/detail/exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ferrite/tensor/error.h"

namespace ferrite::mpi::detail {
namespace {

MPI_Datatype type_of(Dtype dtype) {
  return dtype == Dtype::f64 ? MPI_DOUBLE : dtype == Dtype::i64 ? MPI_INT64_T : MPI_FLOAT;
}

std::size_t bytes_of(std::int64_t elements, Dtype dtype) { return static_cast<std::size_t>(elements * size_of(dtype)); }

/// a = a + b, or the larger one.
template <class T>
void join_values(T* a, const T* b, std::int64_t n, Join join) {
  if (join == Join::sum) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] + b[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) a[i] = std::max(a[i], b[i]);
  }
}
void join_bytes(std::byte* a, const std::byte* b, std::int64_t n, Dtype dtype, Join join) {
  if (dtype == Dtype::f64)
    join_values(reinterpret_cast<double*>(a), reinterpret_cast<const double*>(b), n, join);
  else if (dtype == Dtype::i64)
    join_values(reinterpret_cast<std::int64_t*>(a), reinterpret_cast<const std::int64_t*>(b), n, join);
  else
    join_values(reinterpret_cast<float*>(a), reinterpret_cast<const float*>(b), n, join);
}

/// Positions of consecutive parts.
std::vector<int> begins_of(const std::vector<int>& counts) {
  std::vector<int> begins(counts.size());
  for (std::size_t i = 1; i < counts.size(); ++i) begins[i] = begins[i - 1] + counts[i - 1];
  return begins;
}

}  // namespace

std::int64_t Link::add(Pattern pattern) {
  patterns_.push_back(std::move(pattern));
  return static_cast<std::int64_t>(patterns_.size()) - 1;
}

/// An exchange with its buffers: one that has ended, of the same kind, or a new one. Fresh pages cost more than the
/// copies.
std::unique_ptr<Link::Exchange> Link::spare(std::int64_t pattern, Dtype dtype, std::int64_t count) {
  const Pattern* const wanted = &patterns_.at(static_cast<std::size_t>(pattern));
  for (auto at = spares_.begin(); at != spares_.end(); ++at) {
    if ((*at)->pattern != wanted || (*at)->dtype != dtype || (*at)->count != count) continue;
    std::unique_ptr<Exchange> found = std::move(*at);
    spares_.erase(at);
    return found;
  }
  auto made = std::make_unique<Exchange>();
  Exchange& e = *made;
  e.pattern = wanted, e.dtype = dtype, e.count = count;
  const std::size_t R = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
  std::size_t most = 1;
  for (const auto& nodes : wanted->nodes) most = std::max(most, nodes.size());
  if (count > std::numeric_limits<int>::max() / static_cast<std::int64_t>(most * (gathers(e) ? 1 : R)))
    throw ValueError("mpi: exchange: MPI cannot count so many elements at once: " + std::to_string(count) +
                     "; cut them into smaller tensors");
  for (std::size_t r = 0; r < R; ++r) {
    const std::int64_t each = count / size_, more = count % size_;
    e.piece_counts.push_back(
        static_cast<int>(gathers(e) ? wanted->counts[r] : each + (static_cast<std::int64_t>(r) < more ? 1 : 0)));
  }
  e.piece_begins = begins_of(e.piece_counts);
  e.result.resize(bytes_of(count, dtype));
  if (gathers(e)) return made;
  const int own = static_cast<int>(wanted->nodes[me].size());
  for (std::size_t r = 0; r < R; ++r) {
    e.send_counts.push_back(r == me ? 0 : e.piece_counts[r] * own);
    e.receive_counts.push_back(e.piece_counts[me] * static_cast<int>(wanted->nodes[r].size()));
  }
  e.send_begins = begins_of(e.send_counts), e.receive_begins = begins_of(e.receive_counts);
  e.sent.resize(bytes_of(e.send_begins.back() + e.send_counts.back(), dtype));
  e.received.resize(bytes_of(e.receive_begins.back() + e.receive_counts.back(), dtype));
  e.receive_counts[me] = 0;  // this rank's own nodes do not pass through MPI
  return made;
}

std::int64_t Link::start(std::int64_t pattern, Dtype dtype, std::int64_t count,
                         const std::vector<const std::byte*>& given) {
  check_alive();
  const std::size_t R = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
  std::unique_ptr<Exchange> made = spare(pattern, dtype, count);
  Exchange& e = *made;
  if (!gathers(e)) {
    for (std::size_t r = 0; r < R; ++r) {
      std::byte* to = r == me ? e.received.data() + bytes_of(e.receive_begins[r], dtype)
                              : e.sent.data() + bytes_of(e.send_begins[r], dtype);
      for (const std::byte* node : given) {
        const std::size_t n = bytes_of(e.piece_counts[r], dtype);
        if (n) std::memcpy(to, node + bytes_of(e.piece_begins[r], dtype), n);
        to += n;
      }
    }
    e.stage = Exchange::Stage::scattering;
  } else {
    if (e.piece_counts[me] > 0)
      std::memcpy(e.result.data() + bytes_of(e.piece_begins[me], dtype), given[0], bytes_of(e.piece_counts[me], dtype));
    e.stage = Exchange::Stage::joined;
  }
  ++traffic_.exchanges;
  const std::size_t piece = bytes_of(e.piece_counts[me], dtype);
  traffic_.bytes_sent += static_cast<std::int64_t>(e.sent.size() + piece * (R - 1));
  traffic_.bytes_received += static_cast<std::int64_t>(
      e.received.size() - (gathers(e) ? 0 : piece * e.pattern->nodes[me].size()) + e.result.size() - piece);
  const std::int64_t ticket = next_ticket_++;
  exchanges_.emplace(ticket, std::move(made));
  if (!gathers(e))
    check(MPI_Ialltoallv(e.sent.data(), e.send_counts.data(), e.send_begins.data(), type_of(dtype), e.received.data(),
                         e.receive_counts.data(), e.receive_begins.data(), type_of(dtype), scatter_[e.pattern->channel],
                         &e.scatter),
          "exchange");
  poll();
  return ticket;
}

/// The tree of this rank's piece.
void Link::join_segments(Exchange& e) {
  const std::int64_t n = e.piece_counts[static_cast<std::size_t>(rank_)];
  const std::size_t bytes = bytes_of(n, e.dtype);
  std::vector<Leaves> all;
  for (const auto& nodes : e.pattern->nodes) all.insert(all.end(), nodes.begin(), nodes.end());
  std::size_t next = 0;
  const std::byte* const root = joined(
      all, {0, e.pattern->tree.leaves()}, next, [&](std::size_t i) { return e.received.data() + i * bytes; },
      [&](std::byte* a, const std::byte* b) { join_bytes(a, b, n, e.dtype, e.pattern->join); });
  if (bytes)
    std::memcpy(e.result.data() + bytes_of(e.piece_begins[static_cast<std::size_t>(rank_)], e.dtype), root, bytes);
  e.stage = Exchange::Stage::joined;
}

bool Link::gathers(const Exchange& e) { return e.pattern->join == Join::gather; }

void Link::advance(Exchange& e) {
  if (e.stage == Exchange::Stage::scattering && is_done(e.scatter, "exchange")) join_segments(e);
  if (e.stage == Exchange::Stage::gathering && is_done(e.gather, "exchange")) e.stage = Exchange::Stage::done;
}

void Link::poll() {
  bool earlier_gathers[kChannels] = {true, true};  // the order of gatherings is that of the tickets
  for (auto& [ticket, e] : exchanges_) {
    advance(*e);
    bool& may = earlier_gathers[static_cast<std::size_t>(e->pattern->channel)];
    if (e->stage == Exchange::Stage::scattering) may = false;
    if (e->stage != Exchange::Stage::joined || !may) {
      if (e->stage == Exchange::Stage::joined) may = false;
      continue;
    }
    e->stage = Exchange::Stage::gathering;
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, e->result.data(), e->piece_counts.data(),
                          e->piece_begins.data(), type_of(e->dtype), gather_[e->pattern->channel], &e->gather),
          "exchange");
  }
}

bool Link::drained() {
  poll();
  std::erase_if(exchanges_, [](const auto& e) { return e.second->stage == Exchange::Stage::done; });
  return exchanges_.empty();
}

void Link::finish(std::int64_t ticket, std::byte* result) {
  check_alive();
  const auto at = exchanges_.find(ticket);
  if (at == exchanges_.end())
    throw ValueError("mpi: exchange: there is none with the ticket " + std::to_string(ticket) +
                     "; each is waited for once");
  Exchange& e = *at->second;
  until(
      [&] {
        poll();
        return e.stage == Exchange::Stage::done;
      },
      "exchange");
  if (!e.result.empty()) std::memcpy(result, e.result.data(), e.result.size());
  spares_.push_back(std::move(at->second));
  exchanges_.erase(at);
  constexpr std::size_t kMostSpares = 64;
  if (spares_.size() > kMostSpares) spares_.pop_front();
}

}  // namespace ferrite::mpi::detail
