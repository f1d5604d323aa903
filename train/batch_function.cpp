/// Compiled programs of functions of batches.
#include "ferrite/train/detail/batch_function.h"

#include "ferrite/compile/compile.h"

namespace ferrite::train::detail {
namespace {

constexpr std::size_t kMostPrograms = 64;

std::vector<bool> with_lengths(const Batch& batch) {
  std::vector<bool> defined;
  for (const Tensor& l : batch.lengths) defined.push_back(l.defined());
  return defined;
}

Tensors operands(const Batch& batch) {
  Tensors all = batch.fields;
  for (const Tensor& l : batch.lengths)
    if (l.defined()) all.push_back(l);
  return all;
}

Batch batch_of(const Tensors& operands, const std::vector<bool>& with_lengths) {
  Batch batch;
  std::size_t next = 0;
  for (std::size_t i = 0; i < with_lengths.size(); ++i) batch.fields.push_back(operands[next++]);
  for (const bool defined : with_lengths) batch.lengths.push_back(defined ? operands[next++] : Tensor());
  return batch;
}

std::string types_of(const Batch& batch) {
  std::string types;
  for (const Tensor& x : operands(batch)) types += x.spec().str() + ' ';
  return types;
}

/// What has been planned before must still be what the function is; what is planned by the next call is. Which plan
/// that call takes, types alone do not tell: switches that a step reads decide as well, such as what is frozen.
template <class Program>
void verify(const Program& program, const Tensors& in) {
  try {
    program.verify(in);
  } catch (const ferrite::detail::NoPlanError&) {  // nothing to compare with
  }
}

}  // namespace

BatchFunction::Program& BatchFunction::program(const Batch& batch) {
  const std::vector<bool> which = with_lengths(batch);
  std::unique_ptr<Program>& p = programs_[which];
  if (!p)
    p = std::make_unique<Program>([this, which](const Tensors& in) { return f_(batch_of(in, which)); }, PlanOptions{});
  return *p;
}

bool BatchFunction::compiles(const std::string& types) {
  if (mode_ == Compile::never) return false;
  if (mode_ == Compile::always || compiled_.contains(types)) return true;
  if (compiled_.size() >= kMostPrograms || met_.insert(types).second) return false;
  compiled_.insert(types);
  return true;
}

bool BatchFunction::runs_compiled(const Batch& batch) const {
  return mode_ == Compile::always || (mode_ == Compile::automatic && compiled_.contains(types_of(batch)));
}

Tensors BatchFunction::operator()(const Batch& batch) {
  const std::string types = types_of(batch);
  if (!compiles(types)) return f_(batch);
  try {
    Program& p = program(batch);
    const Tensors in = operands(batch);
    if (mode_ == Compile::always && verified_.insert(types).second) verify(p, in);
    return p(in);
  } catch (const TraceError&) {
    if (mode_ == Compile::always) throw;
    mode_ = Compile::never;
    return f_(batch);
  }
}

}  // namespace ferrite::train::detail
