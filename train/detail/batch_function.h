#pragma once
/// A function of batches that runs as written, or as a compiled program where that pays.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ferrite/compile/compile.h"
#include "ferrite/train/fit.h"

namespace ferrite::train::detail {

/// f(batch), whose tensors all depend on the batch and on variables. `Compile::automatic` compiles what comes again.
class BatchFunction {
 public:
  using F = std::function<Tensors(const Batch&)>;
  BatchFunction(F f, Compile mode) : f_(std::move(f)), mode_(mode) {}
  BatchFunction(BatchFunction&&) = delete;

  Tensors operator()(const Batch& batch);
  /// Whether a call with such a batch would run a program, which changes nothing when it throws.
  bool runs_compiled(const Batch& batch) const;
  /// The function itself.
  Tensors eager(const Batch& batch) const { return f_(batch); }
  /// From now on a program is compared with the function before it runs next: numbers that the function captures may
  /// have changed.
  void verify_next() { verified_.clear(); }

 private:
  using Program = Compiled<std::function<Tensors(const Tensors&)>>;
  /// Which fields have lengths: another list of tensors, another program.
  Program& program(const Batch& batch);
  bool compiles(const std::string& types);

  F f_;
  Compile mode_;
  std::map<std::vector<bool>, std::unique_ptr<Program>> programs_;
  std::set<std::string> met_, compiled_, verified_;
};

}  // namespace ferrite::train::detail
