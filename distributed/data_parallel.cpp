/// Training steps on all ranks: joined gradients, then the update.
#include "ferrite/distributed/data_parallel.h"

#include "ferrite/distributed/detail/joint_step.h"

namespace ferrite::mpi {

struct DataParallel::State {
  detail::JointStep joint;
  std::function<void(const Tensors& gradients)> update;
  double clip_norm;

  template <class O>
  State(const World& world, const nn::Module& model, O& optimizer, const DataParallelOptions& o)
      : joint(world, model, optimizer.parameters(), {"mpi::DataParallel", o.shards, o.bucket_bytes, o.variables}),
        update([&optimizer](const Tensors& g) { optimizer.step(g); }),
        clip_norm(o.clip_norm) {}
};

namespace {

const DataParallelOptions& checked_options(const DataParallelOptions& o) {
  ferrite::detail::check_not_negative("mpi::DataParallel: clip_norm", {o.clip_norm});
  return o;
}

}  // namespace

DataParallel::DataParallel(const World& world, const nn::Module& model, nn::Optimizer& optimizer,
                           const DataParallelOptions& options)
    : state_(std::make_unique<State>(world, model, optimizer, checked_options(options))) {
  std::vector<Variable> states;
  for (const auto& s : optimizer.states()) states.push_back(s.variable);
  broadcast(world, states);
}
DataParallel::DataParallel(const World& world, const nn::Module& model, const ShardedOptimizer& optimizer,
                           const DataParallelOptions& options)
    : state_(std::make_unique<State>(world, model, optimizer, checked_options(options))) {}
DataParallel::~DataParallel() = default;

Tensor DataParallel::step(const Tensors& batch, const ShardFunction& loss) const {
  return step(state_->joint.cut(batch), loss);
}
Tensor DataParallel::step(const OwnRows& batch, const ShardFunction& loss) const {
  detail::JointStep::Joined joined = state_->joint.run(batch, loss, {});
  if (state_->clip_norm > 0) joined.gradients = nn::clip_grad_norm(joined.gradients, state_->clip_norm).grads;
  state_->update(joined.gradients);
  return cast(joined.loss / joined.count, joined.dtype);
}

Sum DataParallel::evaluate(const Tensors& batch, const ShardFunction& f) const {
  return evaluate(state_->joint.cut(batch), f);
}
Sum DataParallel::evaluate(const OwnRows& batch, const ShardFunction& f) const {
  const detail::JointStep::Joined joined = state_->joint.run(batch, f, {.gradients = false});
  return {joined.loss, joined.count};
}

Rows DataParallel::own_rows(std::int64_t rows) const { return state_->joint.own_rows(rows); }
const World& DataParallel::world() const noexcept { return state_->joint.world(); }
int DataParallel::shards() const noexcept { return state_->joint.shards(); }
std::int64_t DataParallel::buckets() const noexcept { return state_->joint.buckets(); }
std::int64_t DataParallel::buckets_sent_early() const noexcept { return state_->joint.sent_early(); }

}  // namespace ferrite::mpi
