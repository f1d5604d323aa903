#pragma once
/// Parts of loops in C: what all of them share, and the statements on points.
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/exchange/freeze/c_body.h"

namespace ferrite::exchange::detail {

/// The addresses that a loop reads and writes, as parameters of its function.
class LoopParameters {
 public:
  /// Returns the name of the parameter that stands for an address.
  std::string name(const std::string& address, Dtype dtype, bool written) {
    const auto [at, is_new] = names_.emplace(std::pair(address, written), "");
    if (!is_new) return at->second;
    at->second = (written ? "y" : "a") + std::to_string(written ? written_++ : read_++);
    parameters_ += std::string(parameters_.empty() ? "" : ", ") + (written ? "" : "const ") +
                   std::string(c_type(dtype)) + " *" + at->second;
    arguments_ += (arguments_.empty() ? "" : ", ") + address;
    return at->second;
  }
  const std::string& parameters() const { return parameters_; }
  const std::string& arguments() const { return arguments_; }

 private:
  std::map<std::pair<std::string, bool>, std::string> names_;
  std::string parameters_, arguments_;
  std::int64_t read_ = 0, written_ = 0;
};

/// The texts of a loop: its types, the addresses and names of its numbers, and operations on them. Numbers are vectors
/// if all of them are floats of one type.
class LoopText {
 public:
  LoopText(CBody& body, const LoweredLoop& loop, CText& to);
  const LoopParameters& parameters() const { return parameters_; }

 protected:
  /// Returns the address of an element of a value, a parameter.
  std::string at(ValueId v, std::int64_t offset) const;
  /// Returns the address of memory for a slot, a parameter.
  std::string row_of(std::size_t slot, std::int64_t n) const;
  /// Returns the address of an access after some axes of the domain.
  std::string address(const LoweredAccess& a, int axes) const;
  /// Returns the condition that the outer axes lie in a box; "" if they always do, "0" if never.
  std::string inside(const LoweredAccess& a, int axes, bool row) const;
  std::string suffix(Dtype dtype) const;
  std::string type(Dtype dtype) const;
  static std::string name(std::size_t slot) { return "t" + std::to_string(slot); }
  std::string number(const std::array<std::byte, 8>& n, Dtype dtype) const;
  /// Returns the number of lanes of a vector, and the number that it always divides.
  std::string lanes() const { return lanes_of(type_); }
  std::int64_t most_lanes() const { return most_lanes_of(type_); }
  /// Returns an operation on numbers.
  std::string applied(const LoweredInstruction& i, const std::vector<std::string>& in) const;
  void open_axes(int from, int to);
  void close_axes(int from, int to);

  CBody& body_;
  const LoweredLoop& loop_;
  CText& to_;
  mutable LoopParameters parameters_;
  bool vector_ = true;
  Dtype type_ = Dtype::f32;

 private:
  void choose_type();
  std::string cast_vector(const LoweredInstruction& i, const std::string& in) const;
  std::string applied_alone(const LoweredInstruction& i, const std::vector<std::string>& in) const;
  std::string integer(const LoweredInstruction& i, const std::vector<std::string>& in, Dtype dtype) const;
  std::string converted(const std::string& x, Dtype from, Dtype to) const;

  std::set<ValueId> written_;
};

/// Writes instructions on the points of a piece of the last axis.
class PointsWriter : public LoopText {
 public:
  using LoopText::LoopText;

 protected:
  /// Begins a piece of the last axis; vectors may be partial in it. `axis` is the first axis of rows that are kept.
  void begin_piece(std::int64_t begin, std::int64_t end, int axis);
  /// Writes how many lanes of the present vector are left.
  void write_left();
  void write_point(const LoweredInstruction& i);
  /// Defines a slot, which has another number outside of its box.
  void define(const std::string& to, std::size_t slot, const std::string& condition, const std::string& value,
              const std::string& outside);
  /// Returns a slot as an operand.
  std::string read(std::size_t slot) const;
  /// Returns the operands of an instruction.
  std::vector<std::string> operands(const LoweredInstruction& i) const;

  bool partial_ = false;
  std::string count_;       ///< the number of lanes that are used: all, or those that are left
  int present_ = 0;         ///< the level that is written
  std::vector<int> level_;  ///< by slot: the number of reductions that it waits for, one after the other
  std::map<std::size_t, std::string> spilled_;  ///< where slots are kept that a later level reads
  std::map<std::size_t, const LoweredInstruction*> all_loads_;

 private:
  std::string row_place(std::string at) const;
  std::string inside_here(const LoweredAccess& a) const;
  void keep(std::size_t slot, const std::string& memory);
  bool has_room(const LoweredAccess& a) const;
  std::string loaded(const LoweredAccess& a, Dtype dtype) const;
  void write_store(const LoweredInstruction& i);

  std::int64_t begin_ = 0, end_ = 0;
  int row_axis_ = 0;
};

/// Returns whether a loop computes products of one row, column by column.
bool has_columns(const CBody& body, const LoweredLoop& loop);
/// Writes such a loop, and returns the addresses that it reads and writes.
LoopParameters write_columns(CBody& body, const LoweredLoop& loop, CText& to);

}  // namespace ferrite::exchange::detail
