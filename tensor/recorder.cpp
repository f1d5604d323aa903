/// The stack of frames that says which recorders observe a thread.
#include "ferrite/tensor/recorder.h"

#include <cstddef>
#include <new>

#include "ferrite/tensor/departed.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite {
namespace detail {
namespace {

FERRITE_PER_THREAD constinit PerThread<Frame*> top(nullptr);

/// Room for the first frame of a thread.
struct FrameRoom {
  alignas(Frame) std::byte bytes[sizeof(Frame)];
};
FERRITE_PER_THREAD constinit PerThread<FrameRoom> room;

/// Returns the first frame of a thread, made on first use. It allocates no memory and is never destroyed, so that a
/// step of a stream may be the first thing that a thread does.
Frame& base() { return *(top() = ::new (static_cast<void*>(room().bytes)) Frame); }

/// Holds the recorders that have left the thread, until its end.
struct Leaving {
  std::shared_ptr<Departed> departed = std::make_shared<Departed>();
  Leaving() = default;
  ~Leaving() { departed->take(true); }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
};

void refresh(Frame& f) {
  f.tracing = false;
  f.differentiated = false;
  f.keeps_composites = !f.recorders.empty();
  for (const Recorder* r : f.recorders) {
    f.tracing |= r->tracing();
    f.differentiated |= r->differentiates();
    f.keeps_composites &= r->keeps_composites();
  }
}

bool remove(Frame& f, const Recorder* r) {
  InlineVector<Recorder*, 4> kept;
  for (Recorder* other : f.recorders)
    if (other != r) kept.push_back(other);
  const bool found = kept.size() != f.recorders.size();
  f.recorders = kept;
  refresh(f);
  return found;
}

void add(Frame& f, Recorder* r) {
  f.recorders.push_back(r);
  refresh(f);
}

}  // namespace

Frame& frame() {
  if (Frame* const f = top()) [[likely]]
    return *f;
  return base();
}

bool observed() { return observed(frame()); }

const std::shared_ptr<Departed>& departed() { return object_of_thread<Leaving>().departed; }

void Departed::leave(std::shared_ptr<Recorder> recorder) {
  const std::lock_guard lock(mutex_);
  if (!over_) left_.push_back(std::move(recorder));
}

void Departed::take(bool last) {
  std::vector<std::shared_ptr<Recorder>> ended;
  const std::lock_guard lock(mutex_);
  over_ |= last;
  ended.swap(left_);
}

bool read_flag(const std::shared_ptr<std::atomic<bool>>& flag) {
  const bool value = flag->load(std::memory_order_relaxed);
  for (Recorder* r : frame().recorders) r->flag(flag, value);
  return value;
}

}  // namespace detail

NewFrame::NewFrame() {
  frame_.outer = &detail::frame();
  detail::top() = &frame_;
}
NewFrame::NewFrame(Recorder& only) : NewFrame() { detail::add(frame_, &only); }
NewFrame::~NewFrame() { detail::top() = frame_.outer; }

NoTapes::NoTapes() {
  frame_.cut = true;
  frame_.scope = frame_.outer->scope;
  for (Recorder* r : frame_.outer->recorders)
    if (!r->differentiates()) detail::add(frame_, r);
}

Recording::Recording(Recorder& recorder) : recorder_(&recorder) { detail::add(detail::frame(), recorder_); }
Recording::~Recording() {
  for (detail::Frame* f = detail::top(); f; f = f->outer)
    if (detail::remove(*f, recorder_)) return;
}

Paused::Paused(Recorder& recorder)
    : recorder_(&recorder), frame_(&detail::frame()), was_there_(detail::remove(*frame_, recorder_)) {}
Paused::~Paused() {
  if (was_there_) detail::add(*frame_, recorder_);
}

}  // namespace ferrite
