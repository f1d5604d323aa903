#pragma once
/// What an optimiser's step assigned so far, so that a step that throws can be undone.
#include "ferrite/tensor/cell.h"
#include "ferrite/tensor/pooled.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {

/// Remembers what cells held before they were assigned.
class Journal final : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Cell&, Tensor&) override {}
  bool write(const Cell& cell, const Tensor&) override {
    before_.push_back({cell, cell.peek()});
    return false;
  }
  /// Gives the cells what they held at first. Not while the journal records.
  void undo() const {
    for (auto e = before_.rbegin(); e != before_.rend(); ++e) e->cell.assign(e->value);
  }

 private:
  struct Entry {
    Cell cell;
    Tensor value;
  };
  ferrite::detail::PooledVector<Entry> before_;
};

}  // namespace ferrite::nn::detail
