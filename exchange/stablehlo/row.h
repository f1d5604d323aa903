#pragma once
/// The same instruction of all programs that are compared.
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/stablehlo/hlo_program.h"

namespace ferrite::exchange::detail {

class HloRow {
 public:
  /// One instruction for each of the sizes of `extents`.
  HloRow(const Extents& extents, std::vector<const HloInstruction*> all) : extents_(extents), all_(std::move(all)) {}

  std::size_t size() const { return all_.size(); }
  const HloInstruction& operator[](std::size_t program) const& { return *all_[program]; }
  const HloInstruction& first() const& { return *all_[0]; }
  const HloInstruction* operator->() const& { return all_[0]; }

  /// Throws ExportError, naming the operation and the layer to which the first one belongs.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Refuses instructions that differ in more than numbers.
  void check() const;
  /// Refuses attributes that differ.
  void check_attributes() const;

  /// What the extents of a result are.
  ExtentNumbers shape(std::size_t result = 0) const;
  /// What the numbers of an attribute are, what they are in each program, and whether they differ.
  ExtentNumbers list(std::string_view attribute) const;
  std::vector<Shape> lists(std::string_view attribute) const;
  bool differs(std::string_view attribute) const;
  /// What these numbers are, one list for each program; refuses what no arithmetic on the extents gives.
  ExtentNumbers explained(const std::vector<Shape>& lists, const std::string& what) const;

  const Extents& extents() const& { return extents_; }

 private:
  const Extents& extents_;
  std::vector<const HloInstruction*> all_;
};

}  // namespace ferrite::exchange::detail
