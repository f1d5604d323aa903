#pragma once
/// The statements of a frozen program.
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ferrite/exchange/freeze/c_module.h"
#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/exchange/freeze/frozen_program.h"

namespace ferrite::exchange::detail {

using ferrite::detail::LoweredAccess;
using ferrite::detail::LoweredInstruction;
using ferrite::detail::LoweredLoop;
using ferrite::detail::LoweredProgram;
using ferrite::detail::LoweredSlot;
using ferrite::detail::LoweredStep;
using ferrite::detail::LoweredWindow;

/// Where the elements of a value lie.
struct CPlace {
  std::string first{};    ///< the address of its first element, "n->h" or "work_f + 64"
  std::int64_t room = 0;  ///< elements that vectors may read from there; 0 if no more than those of the value

  /// Room for a vector from any element of the value.
  static constexpr std::int64_t kAnyRoom = std::numeric_limits<std::int64_t>::max();
};

/// The numbers of elements of working memory, by type.
struct CWork {
  std::map<Dtype, std::int64_t> elements;
  std::int64_t bytes() const;
  /// Returns whether it is small enough for the stack.
  bool on_stack() const { return bytes() <= kStackBytes; }
  /// Takes the larger number of elements of each type.
  void widen(const CWork& other);
  /// Returns the name of the array of a type, "work_f".
  static std::string name(Dtype dtype);
  /// Writes the arrays as members of the struct.
  void write_members(CText& to) const;
  /// Writes the names of the arrays in a function, or the arrays themselves.
  void write_names(CText& to, bool on_the_stack) const;

  static constexpr std::int64_t kStackBytes = 8 << 10;
  static constexpr std::int64_t kPastEnd = 16;  ///< elements that vectors may reach past the last one
};

/// A product of one row that the loop which reads it computes itself, column by column: a [K] . b [K, N].
struct ColumnProduct {
  LoweredWindow a, b;
  std::int64_t terms = 0;    ///< K, the columns of a
  std::int64_t columns = 0;  ///< N, the columns of b
  /// Windows on past frames whose elements are the first terms, before those of a. Their sums are computed ahead.
  std::vector<LoweredWindow> past{};
  std::int64_t past_terms = 0;
  std::string start{};   ///< where the sums over past frames lie
  std::int64_t row = 0;  ///< if not 0, every `row` columns of b start a new vector; only this product reads b

  static constexpr std::int64_t kFewTerms = 4;  ///< up to this many, a sum is computed where it is read
  /// The most bytes of weights that are padded to whole vectors: what a first-level cache holds.
  static constexpr std::int64_t kAlignedBytes = 30 << 10;
};

/// Writes the steps of a program as C. Values that have no place get one in working memory, which those that are not
/// needed at the same time share.
class CBody {
 public:
  CBody(CModule& module, const FrozenProgram& program);
  /// Writes a program that runs within a step of another one, and shares its working memory.
  CBody(CBody& outer, const FrozenProgram& program);

  const LoweredProgram& program() const { return program_; }
  const Spec& spec(ValueId v) const { return program_.graph.values[v]; }
  CModule& module() const { return module_; }
  /// Returns whether vectors run over the steps of a block.
  bool lanes() const { return frozen_.lanes; }
  /// Returns the windows that a value consists of, if it is a concatenation that is never written; else null.
  const std::vector<LoweredWindow>* joined(ValueId v) const;
  /// Says where a value lies that others make or read.
  void place(ValueId v, CPlace place) { places_[v] = std::move(place); }
  /// Returns whether a value has a place; constants get theirs when they are first read.
  bool has_place(ValueId v) const { return places_.contains(v) || constants_.contains(v); }
  const CPlace& place_of(ValueId v) const;
  bool is_constant(ValueId v) const { return constants_.contains(v); }
  /// Returns the constant that an operand shows as a whole and nothing else reads, else null. It may have any layout.
  const Tensor* own_constant(const LoweredWindow& w) const;
  /// Returns the address of an element of a value.
  std::string at(ValueId v, std::int64_t offset) const;
  /// Returns the name of an array of n elements that lives as long as the present step.
  std::string scratch(Dtype dtype, std::int64_t n);

  /// Writes all steps: those that append frames to `appends`, the others to `rest`, which may be the same text.
  void write(CText& appends, CText& rest);
  const CWork& work() const { return work_; }
  /// Starts this body's working memory where that of `others` ends.
  void begin_after(const CWork& others) { work_ = others; }
  /// Returns the product whose result is v, if the loop that reads it computes it; else null.
  const ColumnProduct* column_product(ValueId v) const;
  /// Returns whether a loop reads a value as an operand of such a product.
  bool multiplies(const LoweredLoop& loop, ValueId v) const;
  /// Returns whether some statement returns an error.
  bool may_fail() const { return may_fail_; }
  void fails() { (outer_ ? outer_->root() : *this).may_fail_ = true; }
  /// Returns a name that no other variable of the function has, "carry3".
  std::string fresh(std::string_view name) { return std::string(name) + std::to_string(++root().names_); }
  /// Throws ExportError for an operation that has no form in C.
  [[noreturn]] void refuse(const Graph::Node& n, std::string_view why) const;

 private:
  struct Hole {
    std::int64_t first, size;
  };
  std::int64_t take(Dtype dtype, std::int64_t n);
  void give(Dtype dtype, std::int64_t first, std::int64_t n);
  void place_constant(ValueId v) const;
  void find_constants();
  void find_column_products();
  void find_last_uses();
  void place_results(const LoweredStep& s, std::size_t step);
  void free_operands(std::size_t step);
  void write_step(const LoweredStep& s, CText& to);
  void write_layer(const LoweredStep& s, Scope& before, CText& to) const;
  CBody& root() { return outer_ ? outer_->root() : *this; }

  bool is_unwritten(const LoweredStep& s) const;
  void split_past(ColumnProduct& p);
  bool lay_out(ColumnProduct& p, const LoweredLoop& reader) const;
  std::vector<ValueId> past_products(const LoweredStep& s) const;
  void write_past(ValueId v, CText& to);
  void write_past_ahead(std::size_t step, CText& to);

  /// Products whose sums over past frames are computed before they are read: many where the sums are short.
  static constexpr int kAhead = 3, kShortAhead = 24;
  static constexpr std::int64_t kShortTerms = 16;

  CModule& module_;
  CBody* outer_ = nullptr;
  const FrozenProgram& frozen_;
  const LoweredProgram& program_;
  mutable std::map<ValueId, CPlace> places_;
  std::map<ValueId, Tensor> constants_;
  std::map<ValueId, int> reads_;             ///< how many operands of steps are windows on a value
  std::map<ValueId, std::int64_t> offsets_;  ///< of values in working memory
  std::vector<std::size_t> last_use_;
  std::map<ValueId, ColumnProduct> column_products_;
  std::map<ValueId, Hole> starts_;  ///< where sums over past frames lie
  std::set<ValueId> unwritten_;     ///< concatenations whose readers read the windows
  std::vector<Hole> scratch_;
  std::vector<Dtype> scratch_types_;
  std::map<Dtype, std::vector<Hole>> free_;
  CWork work_;
  bool may_fail_ = false;
  int names_ = 0;
};

/// Writes a loop (exchange/freeze/c_loop.cpp).
void write_loop(CBody& body, const LoweredLoop& loop, CText& to);
/// Writes an operation that runs alone (exchange/freeze/c_calls.cpp).
void write_call(CBody& body, const LoweredStep& step, CText& to);
/// Returns whether an operation that runs alone has a form in C.
bool has_call(const Primitive& op);

}  // namespace ferrite::exchange::detail
