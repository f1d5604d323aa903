#pragma once
/// Hands recorders that end on another thread back to the thread whose frames hold them.
#include <memory>
#include <mutex>
#include <vector>

#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

/// What recorded on a thread and was ended by another one: the thread takes it off its frames when it next begins a
/// recording, or with its end.
class Departed {
 public:
  /// From any thread. When the thread has ended, the recorder ends here.
  void leave(std::shared_ptr<Recorder> recorder);
  /// On the thread itself; `last` when it ends.
  void take(bool last);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Recorder>> left_;
  bool over_ = false;
};

/// That of this thread.
const std::shared_ptr<Departed>& departed();

}  // namespace ferrite::detail
