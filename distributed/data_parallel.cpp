/// Steps of all ranks: shards, their joined gradients, and the update.
#include "ferrite/distributed/data_parallel.h"

#include <algorithm>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/distributed/detail/buckets.h"
#include "ferrite/distributed/detail/shard_view.h"
#include "ferrite/distributed/detail/team.h"
#include "ferrite/nn/replicas.h"

namespace ferrite::mpi {
namespace {

using detail::Leaves;
using detail::LocalTree;
using detail::Route;

Tensor add(const Tensor& a, const Tensor& b) { return a + b; }
Tensor larger(const Tensor& a, const Tensor& b) { return maximum(a, b); }

std::uint64_t hash_of(const std::vector<Variable>& variables) {
  std::string text;
  for (const Variable& v : variables) text += v.name() + v.spec().str() + "\n";
  return stream_of(text);
}

}  // namespace

void broadcast(const World& world, const std::vector<Variable>& variables, int root) {
  const NewFrame frame;
  const Tensor own = Tensor::from({static_cast<std::int64_t>(hash_of(variables))});
  const bool differ = world.broadcast(own, root).item<std::int64_t>() != own.item<std::int64_t>();
  if (world.any(differ))
    throw ValueError("mpi: broadcast: the ranks have different variables: " + std::to_string(variables.size()) +
                     " on rank " + std::to_string(world.rank()) + "; build the same model and optimiser on every rank");
  for (const Variable& v : variables) v.assign(world.broadcast(v.peek(), root));
}

struct DataParallel::State {
  using Update = std::function<void(const Tensors& gradients)>;
  State(const World& w, const nn::Module& model, const std::vector<Parameter>& trained, Update u,
        const DataParallelOptions& given);

  const World& world;
  const std::vector<Parameter> parameters;  ///< those of the optimiser
  const Update update;
  const DataParallelOptions options;
  detail::Tree tree;
  Leaves own;
  detail::KnownVariables known;
  Route gradients, sums, maxima;
  bool agreed = false;
  std::vector<detail::Bucket> buckets;
  std::int64_t sent_early = 0;

  struct Joined {
    Tensor loss, count;  ///< f64, rank 0
    Tensors gradients;
    Dtype dtype = Dtype::f32;
  };
  Joined run(const Tensors& batch, std::int64_t rows, std::int64_t first_row, const ShardFunction& f,
             bool with_gradients);
  void assign_variables(const std::vector<std::size_t>& written, const Tensor& sum, const Tensor& most,
                        std::int64_t shards);
  void agree(const std::vector<std::size_t>& order);
  Tensors start_of(const Tensors& values, int shard) const;
  Tensor tail_of(const Tensors& values, const std::vector<std::size_t>& written, bool floats, int shard) const;
  OwnRows cut(const Tensors& batch) const;
};

namespace {

detail::Pattern pattern_of(const World& world, int shards, detail::Join join, int channel) {
  detail::Pattern p{.join = join, .channel = channel, .tree = detail::Tree(shards)};
  const int each = shards / world.size();
  for (int r = 0; r < world.size(); ++r) p.nodes.push_back(p.tree.nodes_in({r * each, (r + 1) * each}));
  return p;
}

void check_options(const World& world, const DataParallelOptions& o) {
  if (o.shards < 1 || o.shards % world.size() != 0)
    throw ValueError("mpi::DataParallel: " + std::to_string(world.size()) +
                     " ranks do not divide the shards: " + std::to_string(o.shards) +
                     "; choose DataParallelOptions::shards as a multiple of every number of "
                     "ranks that the job may have");
  if (o.bucket_bytes < 1)
    throw ValueError("mpi::DataParallel: bucket_bytes must be positive, got " + std::to_string(o.bucket_bytes));
  ferrite::detail::check_not_negative("mpi::DataParallel: clip_norm", {o.clip_norm});
}

}  // namespace

DataParallel::State::State(const World& w, const nn::Module& model, const std::vector<Parameter>& trained, Update u,
                           const DataParallelOptions& given)
    : world(w), parameters(trained), update(std::move(u)), options(given), tree(given.shards) {
  check_options(world, options);
  const int each = options.shards / world.size();
  own = {world.rank() * each, (world.rank() + 1) * each};
  for (const auto& b : model.named_buffers()) known.add(b.variable);
  for (const auto& s : model.named_states()) known.add(s.variable);
  for (const Variable& v : options.variables) known.add(v);
  for (std::size_t i = 0; i < parameters.size(); ++i) known.parameter[parameters[i].identity()] = i;
  const auto& link = world.link();
  gradients = route_of(link, pattern_of(world, options.shards, detail::Join::sum, 0));
  sums = route_of(link, pattern_of(world, options.shards, detail::Join::sum, 1));
  maxima = route_of(link, pattern_of(world, options.shards, detail::Join::maximum, 1));
  std::vector<Variable> all = known.written;
  for (const auto& p : model.named_parameters()) all.push_back(p.variable);
  for (const Parameter& p : parameters) all.push_back(p);
  broadcast(world, all);
}

/// The order in which gradients become final, reversed that in which rank 0 first read the parameters; the same for
/// good.
void DataParallel::State::agree(const std::vector<std::size_t>& order) {
  if (agreed) return;
  const std::size_t n = parameters.size();
  std::vector<std::int64_t> list(n, -1);
  std::ranges::copy(order.rbegin(), order.rend(), list.begin());
  const Tensor root = world.broadcast(Tensor::from(list, {static_cast<std::int64_t>(n)}));
  std::vector<std::size_t> all;
  for (const std::int64_t i : root.values<std::int64_t>())
    if (i >= 0) all.push_back(static_cast<std::size_t>(i));
  buckets = detail::buckets_of(parameters, all, options.bucket_bytes);
  agreed = true;
}

/// What a shard's calls find in the variables.
Tensors DataParallel::State::start_of(const Tensors& values, int shard) const {
  Tensors start = values;
  for (std::size_t i = 0; i < start.size(); ++i)
    if (known.counts[i] && shard > 0) start[i] = start[i] + (std::int64_t{shard} << 40);
  return start;
}

/// The variables that a step wrote in one row, floats as f64, integers as i64.
Tensor DataParallel::State::tail_of(const Tensors& values, const std::vector<std::size_t>& written, bool floats,
                                    int shard) const {
  std::vector<Tensor> parts;
  for (const std::size_t i : written) {
    const Tensor& v = values[i];
    if (has_gradient(v.dtype()) != floats) continue;
    const Tensor flat = reshape(cast(v, floats ? Dtype::f64 : Dtype::i64), {-1});
    parts.push_back(known.counts[i] && shard > 0 ? flat - (std::int64_t{shard} << 40) : flat);
  }
  if (parts.empty()) return {};
  return parts.size() == 1 ? parts[0] : concat(std::span<const Tensor>(parts), 0);
}

void DataParallel::State::assign_variables(const std::vector<std::size_t>& written, const Tensor& sum,
                                           const Tensor& most, std::int64_t shards) {
  std::int64_t at_sum = 2, at_most = 0;
  for (const std::size_t i : written) {
    const Variable& v = known.written[i];
    if (has_gradient(v.dtype())) {
      const Tensor mean = slice(sum, 0, at_sum, at_sum + v.numel()) / static_cast<double>(shards);
      v.assign(reshape(cast(mean, v.dtype()), v.shape()));
      at_sum += v.numel();
    } else {
      v.assign(reshape(cast(slice(most, 0, at_most, at_most + v.numel()), v.dtype()), v.shape()));
      at_most += v.numel();
    }
  }
}

DataParallel::State::Joined DataParallel::State::run(const Tensors& batch, std::int64_t rows, std::int64_t first_row,
                                                     const ShardFunction& f, bool with_gradients) {
  if (!f) throw ValueError("mpi: step: the function is null");
  for (const Recorder* r : ferrite::detail::frame().recorders)
    if (r->differentiates()) throw TapeError("mpi: step: called under a tape; end that first, or pause it by NewFrame");
  Tensors values;  // before the step
  for (const Variable& v : known.written) values.push_back(v.value());

  std::vector<int> running;
  for (int s = own.begin; s < own.end; ++s)
    if (rows_of_shard(rows, options.shards, s).size() > 0) running.push_back(s);
  if (running.empty()) running.push_back(own.begin);
  struct Result {
    std::optional<Sum> sum;
    Tensors values;
  };
  std::vector<Result> results(running.size());
  std::vector<char> wrote(values.size());
  detail::Gradients collected(parameters, gradients, tree, own);
  const auto begin_backward = [&](const std::vector<std::size_t>& order) {
    if (std::ranges::any_of(results, [](const Result& r) { return r.sum.has_value(); })) return;
    agree(order);
    collected.plan(buckets);
    for (int s = own.begin; s < own.end; ++s)
      if (std::ranges::find(running, s) == running.end()) collected.fill(s - own.begin);
  };

  std::unique_ptr<detail::Team> team;
  const auto join_all = [&](const Tensors& given) {
    LocalTree local(tree, own, add);
    for (int s = own.begin; s < own.end; ++s) {
      const auto at = std::ranges::find(running, s);
      local.give(s - own.begin, at == running.end()
                                    ? zeros({given[0].numel()}, given[0].dtype())
                                    : reshape(given[static_cast<std::size_t>(at - running.begin())], {-1}));
    }
    return reshape(exchanged(sums, local.take()), given[0].shape());
  };
  const auto body = [&](int member) {
    const int s = running[static_cast<std::size_t>(member)];
    Result& result = results[static_cast<std::size_t>(member)];
    const nn::Replicas replicas([&](const Tensor& x) { return team->meet(member, x); });
    ShardBatch b;
    b.shard = s;
    b.rows = rows_of_shard(rows, options.shards, s);
    for (const Tensor& t : batch) b.tensors.push_back(slice(t, 0, b.rows.begin - first_row, b.rows.end - first_row));
    if (!b.tensors.empty()) b.x = b.tensors[0];
    if (b.tensors.size() > 1) b.y = b.tensors[1];
    b.context.replicas = &replicas;
    const auto checked_sum = [&] {
      Sum sum = f(b);
      for (const Tensor* t : {&sum.sum, &sum.count})
        if (!t->defined() || t->numel() != 1)
          throw ShapeError("mpi: step: sum and count must hold one element, got " +
                           (t->defined() ? t->spec().str() : std::string("an undefined tensor")) +
                           "; sum the losses of the shard");
      if (!has_gradient(sum.sum.dtype()))
        throw DtypeError("mpi: step: the sum must be f32 or f64, got " + sum.sum.spec().str());
      return sum;
    };
    const auto keep = [&](const detail::ShardView& view, const Sum& sum) {
      result.values = view.values();
      for (std::size_t i = 0; i < wrote.size(); ++i) wrote[i] |= view.wrote(i);
      result.sum.emplace(sum.sum.unmarked(), sum.count.unmarked());
    };
    if (!with_gradients) {
      detail::ShardView view(known, start_of(values, s), {});
      const Recording recording(view);
      const Sum sum = checked_sum();
      return keep(view, sum);
    }
    Tape tape;
    detail::ShardView view(known, start_of(values, s), [&](std::size_t i, const Tensor& g) {
      collected.arrived(s - own.begin, i, g);
      if (!gradients.alone) world.link()->poll();
    });
    const Recording recording(view);
    const Sum sum = checked_sum();
    begin_backward(view.order());
    keep(view, sum);
    (void)tape.grad(sum.sum, parameters);
    collected.fill(s - own.begin);
  };
  team = std::make_unique<detail::Team>(static_cast<int>(running.size()), body, join_all);
  team->run();

  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < wrote.size(); ++i)
    if (wrote[i]) written.push_back(i);
  LocalTree tails(tree, own, add), mosts(tree, own, larger);
  bool any_integer = false;
  for (int s = own.begin; s < own.end; ++s) {
    const auto at = std::ranges::find(running, s);
    const bool here = at != running.end();
    const Result* r = here ? &results[static_cast<std::size_t>(at - running.begin())] : nullptr;
    const bool counts = here && rows_of_shard(rows, options.shards, s).size() > 0;
    const Tensors now = here ? r->values : start_of(values, s);
    const Tensor floats = tail_of(now, written, true, s), integers = tail_of(now, written, false, s);
    const std::int64_t n = 2 + (floats.defined() ? floats.numel() : 0);
    Tensor tail = zeros({n}, Dtype::f64);
    if (counts) {
      std::vector<Tensor> parts = {reshape(cast(r->sum->sum, Dtype::f64), {1}),
                                   reshape(cast(detach(r->sum->count), Dtype::f64), {1})};
      if (floats.defined()) parts.push_back(floats);
      tail = concat(std::span<const Tensor>(parts), 0);
    }
    tails.give(s - own.begin, tail);
    if (integers.defined()) mosts.give(s - own.begin, integers), any_integer = true;
  }
  const Tensor total = exchanged(sums, tails.take());
  const Tensor most = any_integer ? exchanged(maxima, mosts.take()) : Tensor();
  Joined joined;
  joined.loss = reshape(slice(total, 0, 0, 1), {});
  joined.count = checked(reshape(slice(total, 0, 1, 2), {}), std::numeric_limits<double>::min(),
                         std::numeric_limits<double>::max(), "mpi: step: the count of all shards");
  joined.dtype = results[0].sum->sum.dtype();
  if (with_gradients) {
    joined.gradients = collected.finish(joined.count);
    sent_early = collected.sent_early();
  }
  assign_variables(written, total, most, std::min<std::int64_t>(options.shards, rows));
  return joined;
}

OwnRows DataParallel::State::cut(const Tensors& batch) const {
  if (batch.empty()) return {{}, 0};
  const std::int64_t rows = batch[0].rank() ? batch[0].shape()[0] : 0;
  OwnRows cut_out{{}, rows};
  if (rows == 0) return cut_out;
  const std::int64_t begin = rows_of_shard(rows, options.shards, own.begin).begin,
                     end = rows_of_shard(rows, options.shards, own.end - 1).end;
  for (const Tensor& t : batch) {
    if (t.rank() < 1 || t.shape()[0] != rows)
      throw ShapeError("mpi: step: tensors of a batch differ in their rows: " + batch[0].shape().str() + " and " +
                       t.shape().str());
    cut_out.tensors.push_back(slice(t, 0, begin, end));
  }
  return cut_out;
}

namespace {

void check_own(const OwnRows& batch, const Rows& own) {
  if (batch.rows < 1 || batch.tensors.empty())
    throw ValueError("mpi: step: the batch has no rows: " + std::to_string(batch.rows));
  for (const Tensor& t : batch.tensors)
    if (t.rank() < 1 || t.shape()[0] != own.size())
      throw ShapeError("mpi: step: this rank has " + std::to_string(own.size()) + " of " + std::to_string(batch.rows) +
                       " rows, and was given " + t.shape().str() + "; see DataParallel::own_rows");
}

}  // namespace

DataParallel::DataParallel(const World& world, const nn::Module& model, nn::Optimizer& optimizer,
                           const DataParallelOptions& options)
    : state_(std::make_unique<State>(
          world, model, optimizer.parameters(), [&optimizer](const Tensors& g) { optimizer.step(g); }, options)) {
  std::vector<Variable> states;
  for (const auto& s : optimizer.states()) states.push_back(s.variable);
  broadcast(world, states);
}
DataParallel::DataParallel(const World& world, const nn::Module& model, const ShardedOptimizer& optimizer,
                           const DataParallelOptions& options)
    : state_(std::make_unique<State>(
          world, model, optimizer.parameters(), [&optimizer](const Tensors& g) { optimizer.step(g); }, options)) {}
DataParallel::~DataParallel() = default;

Tensor DataParallel::step(const Tensors& batch, const ShardFunction& loss) const {
  return step(state_->cut(batch), loss);
}
Tensor DataParallel::step(const OwnRows& batch, const ShardFunction& loss) const {
  State& s = *state_;
  const Rows own = own_rows(std::max<std::int64_t>(batch.rows, 0));
  check_own(batch, own);
  State::Joined joined = s.run(batch.tensors, batch.rows, own.begin, loss, true);
  if (s.options.clip_norm > 0) joined.gradients = nn::clip_grad_norm(joined.gradients, s.options.clip_norm).grads;
  s.update(joined.gradients);
  return cast(joined.loss / joined.count, joined.dtype);
}

Sum DataParallel::evaluate(const Tensors& batch, const ShardFunction& f) const {
  return evaluate(state_->cut(batch), f);
}
Sum DataParallel::evaluate(const OwnRows& batch, const ShardFunction& f) const {
  const Rows own = own_rows(std::max<std::int64_t>(batch.rows, 0));
  check_own(batch, own);
  const State::Joined joined = state_->run(batch.tensors, batch.rows, own.begin, f, false);
  return {joined.loss, joined.count};
}

Rows DataParallel::own_rows(std::int64_t rows) const {
  return {rows_of_shard(rows, shards(), state_->own.begin).begin,
          rows_of_shard(rows, shards(), state_->own.end - 1).end};
}
const World& DataParallel::world() const noexcept { return state_->world; }
int DataParallel::shards() const noexcept { return state_->options.shards; }
std::int64_t DataParallel::buckets() const noexcept { return static_cast<std::int64_t>(state_->buckets.size()); }
std::int64_t DataParallel::buckets_sent_early() const noexcept { return state_->sent_early; }

}  // namespace ferrite::mpi
