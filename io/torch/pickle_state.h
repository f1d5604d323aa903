#pragma once
/// The state of the pickle machine: stack, marks, memo, values, all bounded.
#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/pickle.h"
#include "ferrite/io/torch/pickle_opcodes.h"

namespace ferrite::io::detail {

/// What a machine that reads a pickle works on: the bytes, a stack with marks on it, a memo, and the values, whose
/// tables only grow and may not outgrow the pickle.
class PickleState {
 protected:
  PickleState(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes.first(std::min(bytes.size(), kMostPickleBytes))), where_(where), pickle_(bytes_) {}

  using Kind = PickleKind;
  using Value = PickleValue;

  static constexpr std::size_t kFreeBytes = std::size_t{1} << 19;
  static constexpr std::size_t kMostLine = 1000;
  static constexpr std::size_t kMostDepth = std::size_t{1} << 20;
  static constexpr Value kAbsent{Kind::persistent, 0x0fffffff};

  [[noreturn]] void fail(const std::string& what, const std::string& remedy = "") const {
    refuse(where_, what + " at byte " + std::to_string(op_) + " of the pickle" + (remedy.empty() ? "" : "; ") + remedy);
  }

  Opcode opcode_at(std::size_t i) const { return static_cast<Opcode>(bytes_[i]); }

  std::span<const std::byte> take(std::uint64_t n) {
    if (n > bytes_.size() - at_)
      fail("the pickle is cut short: " + std::to_string(n) + " bytes wanted, " + std::to_string(bytes_.size() - at_) +
           " are left");
    at_ += static_cast<std::size_t>(n);
    return bytes_.subspan(at_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const std::span<const std::byte> digits = take(width);
    for (std::size_t i = width; i-- > 0;) value = (value << 8) | std::to_integer<std::uint64_t>(digits[i]);
    return value;
  }

  // ---- the tables, which may not outgrow the pickle ----

  void charge(std::size_t bytes) {
    spent_ += bytes;
    if (spent_ > kFreeBytes + 8 * at_)
      fail("the values need more memory than a file of this size warrants: above " + std::to_string(spent_) + " bytes");
  }

  std::uint32_t place(Value value) {
    charge(sizeof(Value));
    pickle_.pool_.push_back(value);
    return static_cast<std::uint32_t>(pickle_.pool_.size() - 1);
  }

  std::uint32_t new_node() {
    charge(sizeof(PickleNode));
    const auto number = static_cast<std::uint32_t>(pickle_.nodes_.size());
    pickle_.nodes_.push_back({0, 0, 0, number});
    return number;
  }

  /// Appends a value to a container; its last piece grows while nothing follows it in the pool.
  void add_to(Value container, Value item) {
    PickleNode& head = pickle_.nodes_[container.place() & ~Pickle::kOrderedBit];
    std::uint32_t last = head.last;
    const PickleNode& tail = pickle_.nodes_[last];
    if (tail.count > 0 && tail.begin + tail.count != pickle_.pool_.size()) {
      const std::uint32_t piece = new_node();  // references into the deque stay valid
      pickle_.nodes_[last].next = piece;
      head.last = last = piece;
    }
    const std::uint32_t at = place(item);
    PickleNode& node = pickle_.nodes_[last];
    if (node.count++ == 0) node.begin = at;
  }

  // ---- the stack ----

  void push(Value value) {
    if (stack_.size() >= kMostDepth) fail("the stack of the pickle is too deep: " + std::to_string(stack_.size()));
    if (stack_.size() == deepest_) {
      ++deepest_;
      charge(sizeof(Value));
    }
    stack_.push_back(value);
  }
  void push(Kind kind, std::size_t place = 0) { push(Value(kind, static_cast<std::uint32_t>(place))); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Value pop() {
    if (stack_.size() <= floor()) fail("the stack of the pickle is empty where a value is needed");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Value top() const {
    if (stack_.size() <= floor()) fail("the stack of the pickle is empty where a value is needed");
    return stack_.back();
  }

  std::size_t pop_mark() {
    if (marks_.empty()) fail("the pickle closes a group that it has not opened");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }

  void push_tuple(std::size_t begin) {
    const std::size_t n = stack_.size() - begin;
    const std::uint32_t head = place(Value(Kind::tuple, static_cast<std::uint32_t>(n)));
    for (std::size_t i = begin; i < stack_.size(); ++i) place(stack_[i]);
    stack_.resize(begin);
    push(Kind::tuple, head);
  }

  void push_tuple_of(std::size_t n) {
    if (stack_.size() - floor() < n) fail("the stack of the pickle is empty where a value is needed");
    push_tuple(stack_.size() - n);
  }

  void expect(Value value, Kind kind, std::string_view action) const {
    if (value.kind() != kind)
      fail(std::string(action) + " needs " + std::string(with_article(kind)) + " and meets " +
           std::string(with_article(value.kind())));
  }

  std::span<const std::byte> bytes_;
  std::string where_;
  Pickle pickle_;
  std::size_t at_ = 0;
  std::size_t op_ = 0;  ///< where the opcode that is being run begins
  std::size_t spent_ = 0;
  std::size_t deepest_ = 0;     ///< the most that the stack has held
  std::size_t most_marks_ = 0;  ///< the same of the marks
  std::uint64_t memoized_ = 0;  ///< entries of the memo, the next number of MEMOIZE
  std::deque<Value> stack_;
  std::deque<std::uint32_t> marks_;
  std::deque<Value> memo_;
};

}  // namespace ferrite::io::detail
