// The arithmetic of shards: their rows, the nodes of the tree, the order of a data set. No ranks run.
#include "ferrite/distributed/shards.h"

#include <set>

#include "ferrite/distributed/detail/tree.h"
#include "support/compare.h"

using namespace ferrite;
using mpi::detail::Leaves;
using mpi::detail::Tree;

BOOST_AUTO_TEST_SUITE(shards)

BOOST_AUTO_TEST_CASE(shards_are_consecutive_and_nearly_equal) {
  for (const std::int64_t rows : {0, 1, 7, 12, 29, 1000})
    for (const int n : {1, 5, 12}) {
      std::int64_t next = 0;
      for (int s = 0; s < n; ++s) {
        const mpi::Rows r = mpi::rows_of_shard(rows, n, s);
        BOOST_TEST(r.begin == next);
        BOOST_TEST(r.size() == rows / n + (s < rows % n ? 1 : 0));
        next = r.end;
      }
      BOOST_TEST(next == rows);
    }
  BOOST_CHECK_THROW((void)mpi::rows_of_shard(3, 2, 2), ValueError);
  BOOST_CHECK_THROW((void)mpi::rows_of_shard(-1, 2, 0), ValueError);
  BOOST_CHECK_THROW((void)mpi::rows_of_shard(1, 0, 0), ValueError);
}

/// A rank holds as few nodes as possible, and joining those of all ranks adds in the order of one process.
BOOST_AUTO_TEST_CASE(ranks_join_to_the_tree_of_one) {
  for (const int n : {1, 2, 3, 5, 6, 7, 12, 24}) {
    const Tree tree(n);
    std::vector<std::string> sums;
    for (int ranks = 1; ranks <= n; ++ranks) {
      if (n % ranks != 0) continue;
      std::vector<Leaves> all;
      std::vector<std::string> texts;
      for (int r = 0; r < ranks; ++r) {
        const std::vector<Leaves> own = tree.nodes_in({r * n / ranks, (r + 1) * n / ranks});
        for (std::size_t i = 1; i < own.size(); ++i) BOOST_TEST(!tree.are_halves(own[i - 1], own[i]));
        all.insert(all.end(), own.begin(), own.end());
      }
      for (const Leaves& node : all) {  // as the tree over the node's leaves alone has it
        std::vector<std::string> leaves;
        std::vector<Leaves> singles;
        for (int i = node.begin; i < node.end; ++i) leaves.push_back(std::to_string(i)), singles.push_back({i, i + 1});
        std::size_t next = 0;
        texts.push_back(*mpi::detail::joined(
            singles, node, next, [&](std::size_t i) { return &leaves[i]; },
            [](std::string* a, const std::string* b) { *a = "(" + *a + "+" + *b + ")"; }));
      }
      std::size_t next = 0;
      sums.push_back(*mpi::detail::joined(
          all, {0, n}, next, [&](std::size_t i) { return &texts[i]; },
          [](std::string* a, const std::string* b) { *a = "(" + *a + "+" + *b + ")"; }));
      BOOST_TEST(sums.back() == sums.front());
    }
  }
  BOOST_TEST(Tree(12).are_halves({0, 3}, {3, 6}));
  BOOST_TEST(!Tree(12).are_halves({3, 6}, {6, 9}));
  BOOST_TEST(!Tree(12).are_halves({1, 2}, {3, 4}));
}

BOOST_AUTO_TEST_CASE(an_epoch_has_the_same_rows_for_any_number_of_ranks) {
  const mpi::Epoch epoch(31, {.batch_rows = 10, .seed = 4}, 2);
  BOOST_TEST(epoch.steps() == 4);
  BOOST_TEST(epoch.rows_in(3) == 1);
  std::multiset<std::int64_t> seen;
  for (std::int64_t k = 0; k < epoch.steps(); ++k) {
    const std::vector<std::int64_t> whole = epoch.rows(k, 0, 1);
    seen.insert(whole.begin(), whole.end());
    for (const int ranks : {2, 3, 12}) {
      std::vector<std::int64_t> parts;
      for (int r = 0; r < ranks; ++r)
        for (const std::int64_t i : epoch.rows(k, r, ranks)) parts.push_back(i);
      BOOST_TEST(parts == whole, boost::test_tools::per_element());
    }
  }
  BOOST_TEST(seen.size() == 31U);
  BOOST_TEST((std::set<std::int64_t>(seen.begin(), seen.end()).size() == 31U));
  BOOST_TEST((mpi::Epoch(31, {.batch_rows = 10, .seed = 4}, 3).rows(0, 0, 1) != epoch.rows(0, 0, 1)));
  BOOST_TEST(mpi::Epoch(31, {.batch_rows = 10, .drop_last = true}).steps() == 3);
  BOOST_TEST(mpi::Epoch(5, {.batch_rows = 2, .shuffle = false}).rows(1, 0, 1).front() == 2);
  BOOST_CHECK_THROW((void)epoch.rows(4, 0, 1), ValueError);
  BOOST_CHECK_THROW((void)epoch.rows(0, 0, 5), ValueError);
  BOOST_CHECK_THROW(mpi::Epoch(5, {}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
