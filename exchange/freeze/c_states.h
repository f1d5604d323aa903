#pragma once
/// The states of a frozen program as members of its struct.
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/exchange/freeze/frozen_program.h"

namespace ferrite::exchange::detail {

/// Writes what concerns the states of a program: members, values before the first step, commits, saving.
class CStates {
 public:
  /// `names` are the members' names; `most_appended` is the largest number of frames that one call appends to a line.
  CStates(const std::vector<FrozenState>& states, std::vector<std::string> names, std::int64_t most_appended,
          bool wide_masks)
      : states_(states), names_(std::move(names)), most_appended_(most_appended), wide_masks_(wide_masks) {}

  std::size_t size() const { return states_.size(); }
  /// Returns the address of the first element of a state, as a step sees it.
  std::string where(std::size_t k) const;
  /// Returns the address of the place that takes the next value of a pair.
  std::string next_place(std::size_t k) const;
  std::int64_t saved_bytes() const;
  /// Returns the number of elements that vectors may read from the first one of a state, 0 if no more than its own.
  std::int64_t room(std::size_t k) const;

  void write_members(CText& to) const;
  /// Writes the check that those of the states first..first + n - 1 which grow have room.
  void write_room(CText& to, std::size_t first, std::size_t n) const;
  /// Writes the assignment of the k-th state after a step, whose next value lies at `next`; a line gets `appended`
  /// frames.
  void write_commit(CText& to, std::size_t k, const std::string& next, std::int64_t appended, CModule& module) const;
  void write_reset(CText& to, CModule& module) const;
  void write_save(CText& to) const;
  /// Writes the sum of the bits of all states, which are floats, continued in `sum`.
  void write_sum(CText& to, CModule& module) const;
  void write_restore(CText& to) const;

 private:
  std::int64_t frames(const FrozenState& s) const;
  std::string c_type_of(Dtype dtype) const;
  std::int64_t bytes(const FrozenState& s) const;
  /// Returns the member that counts the entries of the k-th state, which grows: the next one that counts.
  std::string counter_of(std::size_t k) const;
  /// Returns a state whose entries the k-th state counts; null if it counts something else.
  const FrozenState* counted_by(std::size_t k) const;

  const std::vector<FrozenState>& states_;
  std::vector<std::string> names_;
  std::int64_t most_appended_;
  bool wide_masks_;  ///< whether truth values take 64 bits
};

}  // namespace ferrite::exchange::detail
