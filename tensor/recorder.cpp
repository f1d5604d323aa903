#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace detail {
namespace {

struct Stack {
  Frame base;
  Frame* top = &base;
};
thread_local Stack stack;

void refresh(Frame& f) {
  f.tracing = false;
  for (const Recorder* r : f.recorders) f.tracing |= r->tracing();
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

Frame& frame() { return *stack.top; }

}  // namespace detail

NewFrame::NewFrame() {
  frame_.outer = detail::stack.top;
  detail::stack.top = &frame_;
}
NewFrame::NewFrame(Recorder& only) : NewFrame() { detail::add(frame_, &only); }
NewFrame::~NewFrame() { detail::stack.top = frame_.outer; }

Recording::Recording(Recorder& recorder) : recorder_(&recorder) { detail::add(detail::frame(), recorder_); }
Recording::~Recording() {
  for (detail::Frame* f = detail::stack.top; f; f = f->outer)
    if (detail::remove(*f, recorder_)) return;
}

Paused::Paused(Recorder& recorder)
    : recorder_(&recorder), frame_(&detail::frame()), was_there_(detail::remove(*frame_, recorder_)) {}
Paused::~Paused() {
  if (was_there_) detail::add(*frame_, recorder_);
}

}  // namespace ferrite
