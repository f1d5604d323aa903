/// The shards of a batch on all ranks: their sums, gradients, buffers and states.
#include "ferrite/distributed/detail/joint_step.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/replicas.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::mpi::detail {

/// Runs body(0), body(1), ... on the calling thread. A body that calls `meet` waits there while the next one starts on
/// its own thread; when all have met, each gets the joined value. Only one runs at a time, always in the order of their
/// numbers, so that what they compute, send and record has one order. Recorders outside see all of them.
class Team {
 public:
  using Body = std::function<void(int)>;
  using JoinAll = std::function<Tensor(const Tensors&)>;
  Team(int members, Body body, JoinAll join)
      : states_(static_cast<std::size_t>(members)),
        given_(states_.size()),
        body_(std::move(body)),
        join_(std::move(join)) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs all bodies. Throws the first exception of a body, and ValueError when one ends while others wait.
  void run();
  /// Called in a body: returns the join of the tensors that all members pass in this meeting.
  Tensor meet(int member, const Tensor& x);

 private:
  enum class State : std::uint8_t { unstarted, running, waiting, released, done };
  struct Abandoned {};
  int find(State s) const;
  void work(int member);
  void begin(int member);
  void go_on(std::unique_lock<std::mutex>& lock);
  void stop_all(std::exception_ptr error);

  std::vector<State> states_;
  Tensors given_;
  Body body_;
  JoinAll join_;
  Tensor joined_;
  std::vector<Recorder*> outer_;
  bool flush_denormals_ = false;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

// ---- the shards of a process ---------------------------------------------------------------------------

int Team::find(State s) const {
  const auto at = std::ranges::find(states_, s);
  return at == states_.end() ? -1 : static_cast<int>(at - states_.begin());
}

void Team::stop_all(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  turn_.notify_all();
}

/// Runs a member, then those that no thread has begun, on this thread.
void Team::work(int member) {
  while (member >= 0) {
    std::exception_ptr error;
    try {
      body_(member);
    } catch (const Abandoned&) {
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    states_[static_cast<std::size_t>(member)] = State::done;
    if (error) stop_all(error);
    if (error_) {
      turn_.notify_all();
      return;
    }
    member = find(State::unstarted);
    if (member >= 0) {
      states_[static_cast<std::size_t>(member)] = State::running;
    } else {
      go_on(lock);
    }
  }
}

/// Starts a member on its own thread, with the caller's recorders.
void Team::begin(int member) {
  states_[static_cast<std::size_t>(member)] = State::running;
  threads_.emplace_back([this, member] {
    std::optional<FlushDenormals> flush;
    if (flush_denormals_) flush.emplace();
    std::vector<std::unique_ptr<Recording>> recordings;
    for (Recorder* r : outer_) recordings.push_back(std::make_unique<Recording>(*r));
    work(member);
    while (!recordings.empty()) recordings.pop_back();
  });
}

/// Passes the turn to the next member. The lock must be held.
void Team::go_on(std::unique_lock<std::mutex>&) {
  if (find(State::released) < 0 && find(State::waiting) >= 0) {
    if (find(State::done) >= 0) {
      stop_all(std::make_exception_ptr(ValueError(
          "mpi: step: the shards do not call Replicas::sum equally often: shard " + std::to_string(find(State::done)) +
          " of this rank ended while others wait; make the loss of every shard of "
          "the same operations")));
      return;
    }
    try {
      joined_ = join_(given_);
    } catch (...) {
      stop_all(std::current_exception());
      return;
    }
    std::ranges::fill(states_, State::released);
  }
  if (const int next = find(State::released); next >= 0) states_[static_cast<std::size_t>(next)] = State::running;
  turn_.notify_all();
}

Tensor Team::meet(int member, const Tensor& x) {
  std::unique_lock lock(mutex_);
  if (error_) throw Abandoned();
  given_[static_cast<std::size_t>(member)] = x;
  State& own = states_[static_cast<std::size_t>(member)];
  own = State::waiting;
  if (const int next = find(State::unstarted); next >= 0) {
    begin(next);
  } else {
    go_on(lock);
  }
  turn_.wait(lock, [&] { return own == State::running || error_; });
  if (error_) throw Abandoned();
  return joined_;
}

void Team::run() {
  const auto& recorders = ferrite::detail::frame().recorders;
  outer_.assign(recorders.begin(), recorders.end());
  flush_denormals_ = FlushDenormals::active();
  if (states_.empty()) return;
  states_[0] = State::running;
  work(0);
  {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] {
      return error_ || static_cast<std::size_t>(std::ranges::count(states_, State::done)) == states_.size();
    });
  }
  for (std::thread& t : threads_) t.join();
  if (error_) std::rethrow_exception(error_);
}

// ---- buckets of gradients ------------------------------------------------------------------------------

namespace {

Tensor add(const Tensor& a, const Tensor& b) { return a + b; }

}  // namespace

std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& order,
                               std::int64_t bytes) {
  std::vector<Bucket> all;
  std::int64_t filled = 0;
  for (const std::size_t i : order) {
    const Parameter& p = parameters[i];
    const bool another = all.empty() || filled >= bytes || parameters[all.back().parameters[0]].dtype() != p.dtype();
    if (another) all.emplace_back(), filled = 0;
    all.back().parameters.push_back(i);
    all.back().numel += p.numel();
    filled += p.numel() * size_of(p.dtype());
  }
  return all;
}

Gradients::Gradients(const std::vector<Parameter>& parameters, const Route& route, const Tree& tree, const Leaves& own)
    : parameters_(parameters), route_(route), reached_(parameters.size()), alone_(parameters.size()) {
  for (std::size_t i = 0; i < parameters.size(); ++i) trees_.emplace_back(tree, own, add);
}

void Gradients::plan(const std::vector<Bucket>& buckets, const std::vector<char>& known) {
  buckets_ = &buckets;
  known_ = &known;
  bucket_of_.assign(parameters_.size(), buckets.size());
  missing_.clear();
  missing_in_all_ = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    missing_.push_back(buckets[b].parameters.size());
    missing_in_all_ += missing_.back();
    for (const std::size_t i : buckets[b].parameters) bucket_of_[i] = b;
  }
}

void Gradients::arrived(int shard, std::size_t parameter, const Tensor& gradient) {
  if (bucket_of_[parameter] == buckets_->size() || (!known_->empty() && !(*known_)[parameter]))
    throw ValueError("mpi: step: the loss did not depend on parameter '" + parameters_[parameter].name() +
                     "' in the first step, and does now; compute with the same parameters in every step, or make "
                     "another DataParallel");
  reached_[parameter] = 1;
  give(shard, parameter, gradient);
}

void Gradients::give(int shard, std::size_t parameter, const Tensor& gradient) {
  LocalTree& tree = trees_[parameter];
  tree.give(shard, gradient);
  if (!tree.complete()) return;
  --missing_[bucket_of_[parameter]];
  --missing_in_all_;
  send_complete();
}

/// Sends the complete buckets, in their order, which is the same on every rank.
void Gradients::send_complete() {
  while (sent_.size() < buckets_->size() && missing_[sent_.size()] == 0) {
    const Bucket& bucket = (*buckets_)[sent_.size()];
    if (missing_in_all_ > 0) ++early_;
    if (route_.alone) {
      for (const std::size_t i : bucket.parameters) alone_[i] = trees_[i].take()[0];
      sent_.emplace_back();
      continue;
    }
    std::vector<std::vector<Tensor>> nodes;  // for each node the parameters' flat gradients
    for (const std::size_t i : bucket.parameters) {
      const Tensors own = trees_[i].take();
      nodes.resize(own.size());
      for (std::size_t k = 0; k < own.size(); ++k) nodes[k].push_back(reshape(own[k], {-1}));
    }
    Tensors whole;
    for (const auto& flat : nodes)
      whole.push_back(flat.size() == 1 ? flat[0] : concat(std::span<const Tensor>(flat), 0));
    sent_.push_back(start(route_, whole, bucket.numel));
  }
}

void Gradients::fill(int shard) {
  for (const Bucket& bucket : *buckets_)
    for (const std::size_t i : bucket.parameters)
      if (!trees_[i].has(shard)) give(shard, i, zeros(parameters_[i].shape(), parameters_[i].dtype()));
}

Tensors Gradients::finish(const Tensor& count, const std::vector<char>& known) {
  Tensors all(parameters_.size());
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    const Bucket& bucket = (*buckets_)[b];
    const Tensor divisor = cast(count, parameters_[bucket.parameters[0]].dtype());
    if (route_.alone) {
      for (const std::size_t i : bucket.parameters)
        if (known[i]) all[i] = alone_[i] / divisor;
      continue;
    }
    const Tensor mean = wait(route_, sent_[b]) / divisor;
    std::int64_t begin = 0;
    for (const std::size_t i : bucket.parameters) {
      const std::int64_t end = begin + parameters_[i].numel();
      if (known[i]) all[i] = reshape(slice(mean, 0, begin, end), parameters_[i].shape());
      begin = end;
    }
  }
  return all;
}

// ---- variables as one shard sees them ------------------------------------------------------------------

void KnownVariables::add(const Variable& v) {
  if (!place.try_emplace(v.identity(), written.size()).second) return;
  written.push_back(v);
  counts.push_back(v.kind() == VariableKind::state && v.dtype() == Dtype::i64 && v.shape().rank() == 0);
}

ShardView::ShardView(const KnownVariables& known, const Tensors& start, Arrived arrived)
    : known_(known), values_(start), wrote_(start.size()), arrived_(std::move(arrived)) {}

void ShardView::read(const Variable& variable, Tensor& value) {
  if (const auto at = known_.place.find(variable.identity()); at != known_.place.end()) {
    value = values_[at->second];
    return;
  }
  const auto at = known_.parameter.find(variable.identity());
  if (at == known_.parameter.end() || !arrived_ || value.tape_id() == 0) return;
  const auto& listening = ferrite::detail::frame().recorders;
  if (std::none_of(listening.begin(), listening.end(), [&](const Recorder* r) { return r->holds(value); })) return;
  const std::size_t i = at->second;
  Tensor& hooked = hooked_[i];
  if (!hooked.defined()) {
    order_.push_back(i);
    hooked = hook_gradient(value, [this, i](const Tensor& g) {
      arrived_(i, g);
      return Tensor();
    });
  }
  value = hooked;
}

bool ShardView::write(const Variable& variable, const Tensor& value) {
  const auto at = known_.place.find(variable.identity());
  if (at == known_.place.end())
    throw ValueError("mpi: step: the loss writes '" + variable.name() +
                     "', which is not a variable of the model; name it in DataParallelOptions::variables");
  values_[at->second] = value.unmarked();
  wrote_[at->second] = 1;
  return true;
}

// ---- the step ------------------------------------------------------------------------------------------

namespace {

Tensor larger(const Tensor& a, const Tensor& b) { return maximum(a, b); }

Pattern pattern_of(const World& world, int shards, Join join, int channel) {
  Pattern p{.join = join, .channel = channel, .tree = Tree(shards)};
  const int each = shards / world.size();
  for (int r = 0; r < world.size(); ++r) p.nodes.push_back(p.tree.nodes_in({r * each, (r + 1) * each}));
  return p;
}

void check_options(const World& world, const JointOptions& o) {
  const std::string who = o.who;
  if (o.shards < 1 || o.shards % world.size() != 0)
    throw ValueError(who + ": " + std::to_string(world.size()) +
                     " ranks do not divide the shards: " + std::to_string(o.shards) +
                     "; choose `shards` as a multiple of every number of ranks that the job may have");
  if (o.bucket_bytes < 1)
    throw ValueError(who + ": bucket_bytes must be positive, got " + std::to_string(o.bucket_bytes));
}

void check_own(const OwnRows& batch, const Rows& own) {
  if (batch.rows < 1 || batch.tensors.empty())
    throw ValueError("mpi: step: the batch has no rows: " + std::to_string(batch.rows));
  for (const Tensor& t : batch.tensors)
    if (t.rank() < 1 || t.shape()[0] != own.size())
      throw ShapeError("mpi: step: this rank has " + std::to_string(own.size()) + " of " + std::to_string(batch.rows) +
                       " rows, and was given " + t.shape().str() + "; see DataParallel::own_rows");
}

Sum checked_sum(Sum sum) {
  for (const Tensor* t : {&sum.sum, &sum.count})
    if (!t->defined() || t->numel() != 1)
      throw ShapeError("mpi: step: sum and count must hold one element, got " +
                       (t->defined() ? t->spec().str() : std::string("an undefined tensor")) +
                       "; sum the losses of the shard");
  if (!has_gradient(sum.sum.dtype()))
    throw DtypeError("mpi: step: the sum must be f32 or f64, got " + sum.sum.spec().str());
  return sum;
}

}  // namespace

JointStep::JointStep(const World& world, const nn::Module& model, const std::vector<Parameter>& trained,
                     const JointOptions& options)
    : world_(world), parameters_(trained), options_(options), tree_(options.shards) {
  check_options(world, options);
  const int each = options.shards / world.size();
  own_ = {world.rank() * each, (world.rank() + 1) * each};
  for (const auto& b : model.named_buffers()) known_.add(b.variable);
  for (const auto& s : model.named_states()) known_.add(s.variable);
  for (const Variable& v : options.variables) known_.add(v);
  for (std::size_t i = 0; i < parameters_.size(); ++i) known_.parameter[parameters_[i].identity()] = i;
  const auto& link = world.link();
  gradients_ = route_of(link, pattern_of(world, options.shards, Join::sum, 0));
  sums_ = route_of(link, pattern_of(world, options.shards, Join::sum, 1));
  maxima_ = route_of(link, pattern_of(world, options.shards, Join::maximum, 1));
  std::vector<Variable> all = known_.written;
  for (const auto& p : model.named_parameters()) all.push_back(p.variable);
  for (const Parameter& p : parameters_) all.push_back(p);
  broadcast(world, all);
}

/// Agrees on the buckets in the first step, for all later ones. Gradients become final in the reverse of the order in
/// which rank 0 first read the parameters.
void JointStep::agree_on_buckets(const std::vector<std::size_t>& order) {
  if (agreed_) return;
  const std::size_t n = parameters_.size();
  std::vector<std::int64_t> list(n, -1);
  std::ranges::copy(order.rbegin(), order.rend(), list.begin());
  const Tensor root = world_.broadcast(Tensor::from(list, {static_cast<std::int64_t>(n)}));
  std::vector<std::size_t> all;
  for (const std::int64_t i : root.values<std::int64_t>())
    if (i >= 0) all.push_back(static_cast<std::size_t>(i));
  buckets_ = buckets_of(parameters_, all, options_.bucket_bytes);
  agreed_ = true;
}

/// Agrees in the first step, for all later ones, on the parameters that have a gradient in some shard. The others are
/// left alone, as without ranks.
void JointStep::agree_on_reached(const Gradients& collected) {
  if (!reached_.empty() || parameters_.empty()) return;
  std::vector<std::int64_t> here;
  for (const char r : collected.reached()) here.push_back(r);
  const Tensor all = world_.sum(Tensor::from(here, {static_cast<std::int64_t>(here.size())}));
  for (const std::int64_t n : all.values<std::int64_t>()) reached_.push_back(n > 0);
}

/// Returns the values of variables with which a shard starts.
Tensors JointStep::start_of(const Tensors& values, int shard) const {
  Tensors start = values;
  for (std::size_t i = 0; i < start.size(); ++i)
    if (known_.counts[i] && shard > 0) start[i] = start[i] + (std::int64_t{shard} << 40);
  return start;
}

/// Returns the variables that a step wrote, concatenated: the floats as f64, or the integers as i64.
Tensor JointStep::tail_of(const Tensors& values, const std::vector<std::size_t>& written, bool floats,
                          int shard) const {
  std::vector<Tensor> parts;
  for (const std::size_t i : written) {
    const Tensor& v = values[i];
    if (has_gradient(v.dtype()) != floats) continue;
    const Tensor flat = reshape(cast(v, floats ? Dtype::f64 : Dtype::i64), {-1});
    parts.push_back(known_.counts[i] && shard > 0 ? flat - (std::int64_t{shard} << 40) : flat);
  }
  if (parts.empty()) return {};
  return parts.size() == 1 ? parts[0] : concat(std::span<const Tensor>(parts), 0);
}

void JointStep::assign_variables(const std::vector<std::size_t>& written, const Tensor& sum, const Tensor& most,
                                 std::int64_t shards) {
  std::int64_t at_sum = 2, at_most = 0;
  for (const std::size_t i : written) {
    const Variable& v = known_.written[i];
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

/// The shards of this rank in one step.
class JointStep::Shards {
 public:
  Shards(JointStep& step, const OwnRows& batch, const ShardFunction& f, bool with_gradients)
      : step_(step),
        batch_(batch),
        f_(f),
        with_gradients_(with_gradients),
        first_row_(step.own_rows(batch.rows).begin),
        collected_(step.parameters_, step.gradients_, step.tree_, step.own_) {
    for (const Variable& v : step.known_.written) values_.push_back(v.value());
    wrote_.resize(values_.size());
    for (int s = step.own_.begin; s < step.own_.end; ++s)
      if (rows_of_shard(batch.rows, step.options_.shards, s).size() > 0) running_.push_back(s);
    if (running_.empty()) running_.push_back(step.own_.begin);
    results_.resize(running_.size());
  }

  /// Computes the shards, and begins to send gradients.
  void run() {
    const auto body = [&](int member) { run_shard(member); };
    const auto join_all = [&](const Tensors& given) { return join_sums(given); };
    team_ = std::make_unique<Team>(static_cast<int>(running_.size()), body, join_all);
    team_->run();
    for (std::size_t i = 0; i < wrote_.size(); ++i)
      if (wrote_[i]) written_.push_back(i);
  }

  /// The joined sums, counts and written variables of all shards of all ranks.
  struct Ends {
    Tensor sums, mosts;
  };
  Ends join_ends() const {
    LocalTree tails(step_.tree_, step_.own_, add), mosts(step_.tree_, step_.own_, larger);
    bool any_integer = false;
    for (int s = step_.own_.begin; s < step_.own_.end; ++s) {
      const auto at = std::ranges::find(running_, s);
      const bool here = at != running_.end();
      const Result* r = here ? &results_[static_cast<std::size_t>(at - running_.begin())] : nullptr;
      const bool counts = here && rows_of_shard(batch_.rows, step_.options_.shards, s).size() > 0;
      const Tensors now = here ? r->values : step_.start_of(values_, s);
      const Tensor floats = step_.tail_of(now, written_, true, s), integers = step_.tail_of(now, written_, false, s);
      const std::int64_t n = 2 + (floats.defined() ? floats.numel() : 0);
      Tensor tail = zeros({n}, Dtype::f64);
      if (counts) {
        std::vector<Tensor> parts = {reshape(cast(r->sum->sum, Dtype::f64), {1}),
                                     reshape(cast(detach(r->sum->count), Dtype::f64), {1})};
        if (floats.defined()) parts.push_back(floats);
        tail = concat(std::span<const Tensor>(parts), 0);
      }
      tails.give(s - step_.own_.begin, tail);
      if (integers.defined()) mosts.give(s - step_.own_.begin, integers), any_integer = true;
    }
    return {exchanged(step_.sums_, tails.take()), any_integer ? exchanged(step_.maxima_, mosts.take()) : Tensor()};
  }

  const std::vector<std::size_t>& written() const { return written_; }
  Gradients& collected() { return collected_; }
  Dtype dtype() const { return results_[0].sum->sum.dtype(); }

 private:
  struct Result {
    std::optional<Sum> sum;
    Tensors values;
  };

  void run_shard(int member) {
    const int s = running_[static_cast<std::size_t>(member)];
    const nn::Replicas replicas([&](const Tensor& x) { return team_->meet(member, x); });
    ShardBatch b;
    b.shard = s;
    b.rows = rows_of_shard(batch_.rows, step_.options_.shards, s);
    for (const Tensor& t : batch_.tensors)
      b.tensors.push_back(slice(t, 0, b.rows.begin - first_row_, b.rows.end - first_row_));
    if (!b.tensors.empty()) b.x = b.tensors[0];
    if (b.tensors.size() > 1) b.y = b.tensors[1];
    b.context.replicas = &replicas;
    if (!with_gradients_) {
      ShardView view(step_.known_, step_.start_of(values_, s), {});
      const Recording recording(view);
      return keep(member, view, checked_sum(f_(b)));
    }
    Tape tape;
    ShardView view(step_.known_, step_.start_of(values_, s), [&](std::size_t i, const Tensor& g) {
      collected_.arrived(s - step_.own_.begin, i, g);
      if (!step_.gradients_.alone) step_.world_.link()->poll();
    });
    const Recording recording(view);
    const Sum sum = checked_sum(f_(b));
    begin_backward(view.order());
    keep(member, view, sum);
    (void)tape.grad(sum.sum, step_.parameters_);
    collected_.fill(s - step_.own_.begin);
  }

  void keep(int member, const ShardView& view, const Sum& sum) {
    Result& result = results_[static_cast<std::size_t>(member)];
    result.values = view.values();
    for (std::size_t i = 0; i < wrote_.size(); ++i) wrote_[i] |= view.wrote(i);
    result.sum.emplace(sum.sum.unmarked(), sum.count.unmarked());
  }

  /// Agrees on the buckets, before the first backward pass.
  void begin_backward(const std::vector<std::size_t>& order) {
    if (std::ranges::any_of(results_, [](const Result& r) { return r.sum.has_value(); })) return;
    step_.agree_on_buckets(order);
    collected_.plan(step_.buckets_, step_.reached_);
    for (int s = step_.own_.begin; s < step_.own_.end; ++s)
      if (std::ranges::find(running_, s) == running_.end()) collected_.fill(s - step_.own_.begin);
  }

  /// Returns the sum over all ranks of the tensors that this rank's shards pass when they meet.
  Tensor join_sums(const Tensors& given) const {
    LocalTree local(step_.tree_, step_.own_, add);
    for (int s = step_.own_.begin; s < step_.own_.end; ++s) {
      const auto at = std::ranges::find(running_, s);
      local.give(s - step_.own_.begin, at == running_.end()
                                           ? zeros({given[0].numel()}, given[0].dtype())
                                           : reshape(given[static_cast<std::size_t>(at - running_.begin())], {-1}));
    }
    return reshape(exchanged(step_.sums_, local.take()), given[0].shape());
  }

  JointStep& step_;
  const OwnRows& batch_;
  const ShardFunction& f_;
  bool with_gradients_;
  std::int64_t first_row_;
  Tensors values_;  ///< values of the known variables before the step
  std::vector<int> running_;
  std::vector<Result> results_;
  std::vector<char> wrote_;
  std::vector<std::size_t> written_;
  Gradients collected_;
  std::unique_ptr<Team> team_;
};

JointStep::Joined JointStep::run(const OwnRows& batch, const ShardFunction& f, const Asked& asked) {
  refused_count_ = false;
  check_own(batch, own_rows(std::max<std::int64_t>(batch.rows, 0)));
  if (!f) throw ValueError("mpi: step: the function is null");
  for (const Recorder* r : ferrite::detail::frame().recorders)
    if (r->differentiates()) throw TapeError("mpi: step: called under a tape; end that first, or pause it by NewFrame");
  Shards shards(*this, batch, f, asked.gradients);
  shards.run();
  const Shards::Ends ends = shards.join_ends();
  if (asked.gradients) agree_on_reached(shards.collected());
  Joined joined;
  joined.loss = reshape(slice(ends.sums, 0, 0, 1), {});
  joined.count = reshape(slice(ends.sums, 0, 1, 2), {});
  refused_count_ = true;
  joined.count = checked(joined.count, asked.least_count, std::numeric_limits<double>::max(),
                         "mpi: step: the count of all shards");
  refused_count_ = false;
  joined.dtype = shards.dtype();
  if (asked.gradients) {
    joined.gradients = shards.collected().finish(joined.count, reached_);
    sent_early_ = shards.collected().sent_early();
  }
  assign_variables(shards.written(), ends.sums, ends.mosts, std::min<std::int64_t>(options_.shards, batch.rows));
  return joined;
}

OwnRows JointStep::cut(const Tensors& batch) const {
  if (batch.empty()) return {{}, 0};
  const std::int64_t rows = batch[0].rank() ? batch[0].shape()[0] : 0;
  OwnRows cut_out{{}, rows};
  if (rows == 0) return cut_out;
  const Rows own = own_rows(rows);
  for (const Tensor& t : batch) {
    if (t.rank() < 1 || t.shape()[0] != rows)
      throw ShapeError("mpi: step: tensors of a batch differ in their rows: " + batch[0].shape().str() + " and " +
                       t.shape().str());
    cut_out.tensors.push_back(slice(t, 0, own.begin, own.end));
  }
  return cut_out;
}

Rows JointStep::own_rows(std::int64_t rows) const {
  return {rows_of_shard(rows, options_.shards, own_.begin).begin,
          rows_of_shard(rows, options_.shards, own_.end - 1).end};
}

}  // namespace ferrite::mpi::detail
