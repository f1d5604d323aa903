#pragma once
/// The shards of one process, which run one after the other and in turns where their forward passes meet.
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ferrite/tensor/recorder.h"

namespace ferrite::mpi::detail {

/// Runs body(0), body(1), ... on the calling thread. A body that calls `meet` waits there: the next one goes on, on a
/// thread of its own, and when all have come the joined value goes to each. Only one runs at a time, always in the
/// order of their numbers, so that what they compute, send and record has one order; recorders outside hear all of
/// them.
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

  /// Throws what the first body that throws throws, and ValueError where one ends while others wait.
  void run();
  /// In a body: the join of what all members give in this meeting.
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

}  // namespace ferrite::mpi::detail
