#pragma once
/// The function of a stream whose stages do not all run at each step.
#include <deque>
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/c_run.h"
#include "ferrite/exchange/freeze/frozen_stages.h"

namespace ferrite::exchange::detail {

/// Writes `nf_from(n, stage, x, y)`, which gives a row to a stage and passes what it makes of it on, and returns
/// NF_NOTHING unless the last stage gives a row.
class StagesWriter {
 public:
  StagesWriter(CModule& module, const std::vector<FrozenStage>& stages);

  /// Writes all stages; `ticks` are the states in which stages with windows count their rows, by stage.
  void write(const std::string& input, const std::string& output, const CStates& states,
             const std::vector<std::string>& ticks);
  std::string text(bool on_stack) const;
  /// Returns the function that feeds the padding after the last input, stage by stage.
  std::string finish() const;
  /// Returns the number of rows of padding after the last input, of all stages.
  std::int64_t finishing() const;
  const CWork& work() const { return work_; }

 private:
  const Spec& in(std::size_t k) const;
  const Spec& out(std::size_t k) const;
  void write_stage(std::size_t k, const std::string& tick);
  std::string parameters() const;

  CModule& module_;
  const std::vector<FrozenStage>& stages_;
  std::deque<RunWriter> runs_;
  std::vector<std::string> pads_;  ///< by stage: the array of a row of padding, "" without any
  std::string input_, output_, body_;
  CWork work_;
};

}  // namespace ferrite::exchange::detail
