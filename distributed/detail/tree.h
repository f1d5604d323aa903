#pragma once
/// The binary tree in which the sums of all shards are joined, whichever ranks hold them.
#include <cstdint>
#include <vector>

namespace ferrite::mpi::detail {

/// A range of consecutive leaves [begin, end).
struct Leaves {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool operator==(const Leaves&) const = default;
};

/// A binary tree over leaves 0..n-1. Each node halves its leaves; of an odd number the second half is the larger.
class Tree {
 public:
  explicit Tree(int leaves) : leaves_(leaves) {}
  int leaves() const { return leaves_; }

  static int middle(const Leaves& node) { return node.begin + node.size() / 2; }
  /// Returns the largest nodes whose leaves all lie in a range, from left to right.
  std::vector<Leaves> nodes_in(const Leaves& range) const {
    std::vector<Leaves> found;
    collect({0, leaves_}, range, found);
    return found;
  }
  /// Returns whether two nodes are the halves of one node.
  bool are_halves(const Leaves& a, const Leaves& b) const {
    if (a.end != b.begin) return false;
    Leaves node{0, leaves_};
    while (node.size() > 1 && node != Leaves{a.begin, b.end}) {
      const int m = middle(node);
      if (b.end <= m) {
        node.end = m;
      } else if (a.begin >= m) {
        node.begin = m;
      } else {
        return false;
      }
    }
    return node == Leaves{a.begin, b.end} && middle(node) == a.end;
  }

 private:
  static void collect(const Leaves& node, const Leaves& range, std::vector<Leaves>& found) {
    if (node.end <= range.begin || node.begin >= range.end || node.size() == 0) return;
    if (node.begin >= range.begin && node.end <= range.end) {
      found.push_back(node);
      return;
    }
    const int m = middle(node);
    collect({node.begin, m}, range, found);
    collect({m, node.end}, range, found);
  }

  int leaves_;
};

/// Joins the values of the nodes `given`, which together cover all leaves, by join(a, b), which writes into a. at(i) is
/// the values of the i-th node and is overwritten. Returns the values of the root.
template <class At, class Join>
auto joined(const std::vector<Leaves>& given, const Leaves& node, std::size_t& next, const At& at, const Join& join)
    -> decltype(at(0)) {
  if (given[next] == node) return at(next++);
  const int m = Tree::middle(node);
  const auto left = joined(given, {node.begin, m}, next, at, join);
  const auto right = joined(given, {m, node.end}, next, at, join);
  join(left, right);
  return left;
}

}  // namespace ferrite::mpi::detail
