/// Worlds of ranks, and their communication outside of training steps.
#include "ferrite/distributed/world.h"

#include <exception>

#include "ferrite/distributed/detail/link.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::mpi {
namespace {

std::shared_ptr<detail::Link> linked(int* argc, char*** argv, const WorldOptions& options) {
  if (options.timeout < std::chrono::milliseconds(10))
    throw ValueError("mpi::World: the timeout must be at least 10 ms: " + std::to_string(options.timeout.count()) +
                     " ms");
  return std::make_shared<detail::Link>(argc, argv, options.timeout);
}

/// Returns the pattern of a sum over the ranks, each of which is a leaf.
detail::Pattern of_ranks(int size) {
  detail::Pattern p{.channel = 1, .tree = detail::Tree(size)};
  for (int r = 0; r < size; ++r) p.nodes.push_back({{r, r + 1}});
  return p;
}

std::uint64_t hash_of(const std::vector<Variable>& variables) {
  std::string text;
  for (const Variable& v : variables) text += v.name() + v.spec().str() + "\n";
  return stream_of(text);
}

}  // namespace

World::World(int& argc, char**& argv, const WorldOptions& options)
    : link_(linked(&argc, &argv, options)), exceptions_(std::uncaught_exceptions()) {
  (void)link_->add(of_ranks(link_->size()));  // pattern 0
}
World::World(const WorldOptions& options)
    : link_(linked(nullptr, nullptr, options)), exceptions_(std::uncaught_exceptions()) {
  (void)link_->add(of_ranks(link_->size()));
}
World::~World() { detail::Link::end(std::move(link_), std::uncaught_exceptions() > exceptions_); }

int World::rank() const noexcept { return link_->rank(); }
int World::size() const noexcept { return link_->size(); }
int World::local_rank() const noexcept { return link_->local_rank(); }
int World::local_size() const noexcept { return link_->local_size(); }
std::chrono::milliseconds World::timeout() const noexcept { return link_->timeout(); }

Traffic World::traffic() const noexcept { return link_->traffic(); }

void World::barrier() const { link_->barrier(); }

Tensor World::broadcast(const Tensor& x, int root) const {
  if (root < 0 || root >= size())
    throw ValueError("mpi: broadcast: there is no rank " + std::to_string(root) + ": the world has " +
                     std::to_string(size()));
  const NewFrame frame;
  if (x.is_abstract()) throw TraceError("mpi: broadcast: the values of a traced tensor are read: " + x.spec().str());
  Tensor out = Tensor::empty(x.spec());
  std::byte* const bytes = define::Writer::raw(out);
  ferrite::detail::copy_to(bytes, x);
  link_->broadcast(bytes, static_cast<std::size_t>(x.numel() * size_of(x.dtype())), root);
  return out;
}

Tensor World::sum(const Tensor& x) const {
  const NewFrame frame;
  if (x.dtype() != Dtype::f32 && x.dtype() != Dtype::f64 && x.dtype() != Dtype::i64)
    throw DtypeError("mpi: sum: takes f32, f64 or i64, got " + x.spec().str() + "; cast it first");
  if (x.is_abstract()) throw TraceError("mpi: sum: the values of a traced tensor are read: " + x.spec().str());
  const Tensor own = contiguous(x);
  Tensor out = Tensor::empty(x.spec());
  link_->finish(link_->start(0, x.dtype(), x.numel(), {own.raw()}), define::Writer::raw(out));
  return out;
}

double World::sum(double x) const { return sum(Tensor::from({x})).item<double>(); }
bool World::any(bool yes) const { return sum(yes ? 1.0 : 0.0) > 0; }
bool World::all(bool yes) const { return !any(!yes); }

void broadcast(const World& world, const std::vector<Variable>& variables, int root) {
  const NewFrame frame;
  const Tensor own = Tensor::from({static_cast<std::int64_t>(hash_of(variables))});
  const bool differ = world.broadcast(own, root).item<std::int64_t>() != own.item<std::int64_t>();
  if (world.any(differ))
    throw ValueError("mpi: broadcast: the ranks have different variables: " + std::to_string(variables.size()) +
                     " on rank " + std::to_string(world.rank()) + "; build the same model and optimiser on every rank");
  for (const Variable& v : variables) v.assign(world.broadcast(v.peek(), root));
}

}  // namespace ferrite::mpi
