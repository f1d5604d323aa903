/// Members of a team take turns.
#include "ferrite/distributed/detail/team.h"

#include <algorithm>
#include <optional>

#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/error.h"

namespace ferrite::mpi::detail {

int Team::find(State s) const {
  const auto at = std::ranges::find(states_, s);
  return at == states_.end() ? -1 : static_cast<int>(at - states_.begin());
}

void Team::stop_all(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  turn_.notify_all();
}

/// A member, and then those that nobody has begun, on this thread.
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

/// A member on a thread of its own, seen by the recorders that see the caller.
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

/// Gives the turn to the next member; with the lock held.
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

}  // namespace ferrite::mpi::detail
