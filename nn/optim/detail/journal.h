#pragma once
/// What an optimiser's step assigned so far, so that a step that throws can be undone.
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// Remembers what variables held before they were assigned.
class Journal final : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable& variable, const Tensor&) override {
    before_.push_back({variable, variable.peek()});
    return false;
  }
  /// Gives the variables what they held at first. Not while the journal records.
  void undo() const {
    for (auto e = before_.rbegin(); e != before_.rend(); ++e) e->variable.assign(e->value);
  }

 private:
  struct Entry {
    Variable variable;
    Tensor value;
  };
  ferrite::detail::PooledVector<Entry> before_;
};

}  // namespace ferrite::nn::detail
