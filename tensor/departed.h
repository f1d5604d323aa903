#pragma once
/// Hands recorders that end on another thread back to the thread whose frames hold them.
#include <memory>
#include <mutex>
#include <vector>

#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

/// The recorders that recorded on one thread and were ended by another. Their thread removes them from its frames when
/// it next begins a recording, or when it ends.
class Departed {
 public:
  /// Hands over a recorder, from any thread. When the thread that it recorded on has ended, the recorder ends here.
  void leave(std::shared_ptr<Recorder> recorder);
  /// Ends the recorders left so far, which removes them from the frames. Called by the thread itself; `last` when it
  /// ends.
  void take(bool last);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Recorder>> left_;
  bool over_ = false;
};

/// Returns the recorders that have left this thread.
const std::shared_ptr<Departed>& departed();

}  // namespace ferrite::detail
