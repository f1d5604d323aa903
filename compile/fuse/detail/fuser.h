#pragma once
#include "ferrite/compile/fuse/fusion.h"

namespace ferrite::detail {

/// Walks a graph backwards, so that every reader of a value has its place before the value itself is placed.
///
/// A group runs where its last node stands. A value joins the earliest group that reads it, if all others read it
/// later; that keeps the order of groups free of cycles without any search.
class Fuser {
 public:
  Fuser(const Graph& g, const FusionOptions& options);
  Fused run();

 private:
  struct Use {
    std::size_t group;
    int expression;
    std::size_t operand;
  };
  /// Where an elementwise result may be computed.
  struct Verdict {
    std::size_t group = kNoNode;
    IndexMap map{};
    Box region{};
    bool store = false;
    bool in_parts = false;  ///< through several views that together read each element at most once
  };

  void visit(std::size_t i);
  void visit_elementwise(std::size_t i);
  void visit_view(std::size_t i);
  void visit_reduction(std::size_t i);
  void visit_across(std::size_t i);
  void visit_join(std::size_t i);
  void visit_single(std::size_t i);

  bool is_read(ValueId v) const;
  bool is_empty(ValueId v) const;
  std::size_t new_group(std::size_t position, const Shape& extents);
  void copy_group(std::size_t i, ValueId target, ValueId source, std::size_t beside = kNoNode);
  void read_alone(std::size_t reader, ValueId v);
  const Window& window_of(ValueId v);
  void refuse(ValueId v, const std::string& why);

  Verdict earliest_group(ValueId v);
  std::vector<const IndexMap*> maps_in(ValueId v, std::size_t group) const;
  bool covers_in_parts(ValueId v, std::size_t group) const;
  bool fills_in_parts(ValueId v, std::size_t group) const;
  Verdict vertical(ValueId v);
  bool reduces_rows(std::size_t i, Verdict& verdict);
  bool declare_rows(Group& group, const IndexMap& map, std::int64_t elements);
  bool new_rows(std::size_t i, Verdict& verdict);
  void find_rows();
  void write_parts_in_place();
  bool write_in_place(const GroupOutput& output, std::size_t at, const std::vector<std::size_t>& maker);
  void attach_products();
  std::size_t epilogue_of(ValueId v) const;
  bool reads_rows_of(ValueId v, std::size_t at) const;
  bool delays_nothing(std::size_t from, std::size_t to) const;
  std::optional<IndexMap> map_of_rows(std::size_t i, Verdict& verdict);
  static void follow_cuts(Group& group);
  Verdict horizontal(const Graph::Node& n, ValueId v) const;
  std::size_t beside(ValueId in, const Shape& shape, std::size_t until) const;
  std::size_t earliest_use(ValueId v) const;
  Expression& join(std::size_t i, ValueId v, const Verdict& verdict);
  void add_operands(std::size_t group, int expression);
  void add_operand(std::size_t group, int expression, ValueId v, const IndexMap& map);
  bool resolve_once(Group& group, GroupOperand& operand, ValueId& v);
  ValueId source_of(ValueId v) const;

  const Graph& g_;
  const FusionOptions& options_;
  std::vector<std::size_t> producer_;
  std::vector<std::size_t> result_;              ///< which of its node's results a value is
  std::vector<std::vector<Use>> uses_;           ///< by value: reads inside groups
  std::vector<std::size_t> first_reader_;        ///< by value: first operation that reads it alone
  std::vector<char> needed_;                     ///< by value: an output of the program
  std::vector<char> must_copy_;                  ///< by value: a view that must be in memory
  std::vector<std::int64_t> rows_behind_;        ///< by value: elements of the rows it was reduced from, 0 for none
  std::vector<std::vector<std::size_t>> users_;  ///< by value: groups that read it from memory
  Fused out_;
};

}  // namespace ferrite::detail
