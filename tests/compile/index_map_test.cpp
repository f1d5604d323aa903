// Index maps compared with an evaluator that goes through every view element by element.
#include "ferrite/compile/fuse/index_map.h"

#include <random>

#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/oracle.h"
#include "programs.h"

using namespace ferrite;
using namespace ferrite::detail;

namespace {

/// A random chain of views of a tensor that holds the positions of its elements; padding holds -1.
struct Chain {
  Graph g;
  std::vector<ValueId> values;  ///< values of the chain, input first

  explicit Chain(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int low, int high) {
      return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
    };
    Shape shape;
    for (int i = pick(1, 3); i > 0; --i) shape.push_back(pick(1, 4) * pick(1, 2));
    g = trace(
        [&](const Tensors& in) {
          Tensor x = in[0];
          for (int i = pick(1, 7); i > 0; --i) {
            const int axis = pick(0, x.rank() - 1);
            const std::int64_t n = x.shape()[axis];
            Shape zero = Shape::filled(x.rank(), 0);
            switch (pick(0, 6)) {
              case 0: x = transpose(x, axis, pick(0, x.rank() - 1)); break;
              case 1: x = flip(x, {axis}); break;
              case 2: x = n > 1 ? slice(x, axis, pick(0, 1), kEnd, pick(1, 2)) : x; break;
              case 3: {
                Shape before = zero;
                before[axis] = pick(0, 2);
                zero[axis] = pick(0, 2);
                x = pad(x, before, zero, -1);
                break;
              }
              case 4: x = reshape(x, {-1}); break;
              case 5: x = n % 2 == 0 && x.rank() < 5 ? halved(x, axis) : unsqueeze(x, axis); break;
              default: x = x.rank() < 5 ? expanded(x, axis) : x; break;
            }
            if (x.rank() > 6 || x.numel() > 2000) x = reshape(x, {-1});
          }
          return Tensors{x};
        },
        std::vector<Spec>{{shape, Dtype::i64}});
    values.push_back(g.inputs[0]);
    for (const Graph::Node& n : g.nodes) values.push_back(n.out[0]);
  }
  static Tensor halved(const Tensor& x, int axis) {
    Shape s = x.shape();
    s[axis] /= 2;
    s.insert(axis + 1, 2);
    return reshape(x, s);
  }
  static Tensor expanded(const Tensor& x, int axis) {
    Shape s = x.shape();
    s.insert(axis, 2);
    return expand(unsqueeze(x, axis), s);
  }
};

/// Returns the position of the element of point i in row-major order.
std::int64_t position(const IndexMap& m, const Shape& i) {
  Shape index = m.offset;
  for (int k = 0; k < m.axis.rank(); ++k)
    if (m.axis[k] >= 0) index[static_cast<int>(m.axis[k])] += m.coefficient[k] * i[k];
  std::int64_t at = 0;
  for (int a = 0; a < m.shape.rank(); ++a) at = at * m.shape[a] + index[a];
  return at;
}

/// Composes the chain from its end to its beginning; returns false if a view does not compose.
bool compose(const Chain& c, Domain& domain, IndexMap& map, std::vector<Box>& boxes) {
  Followers followers{{&map}, {}};
  boxes.reserve(c.g.nodes.size());
  for (std::size_t i = c.g.nodes.size(); i-- > 0;) {
    const Graph::Node& n = c.g.nodes[i];
    const Shape& operand = c.g.values[n.in[0]].shape;
    if (n.op == ops::pad) {
      map = through_pad(map, n.attrs.as<PadAttrs>().before, operand);
      const auto box = valid(map, domain.extents());
      if (!box) return false;
      boxes.push_back(*box);
      followers.boxes.push_back(&boxes.back());
    } else if (const auto rule = rule_of_view(c.g, n, 0)) {
      map = through(map, *rule);
    } else {
      const auto inner = through_reshape(domain, followers, map, operand);
      if (!inner) return false;
      map = *inner;
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(index_maps)

BOOST_AUTO_TEST_CASE(chains_of_views_address_the_right_elements) {
  int composed = 0;
  int all = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Chain c(seed);
    if (c.g.nodes.empty() || c.g.values[c.g.outputs[0]].shape.numel() == 0) continue;
    ++all;
    const Shape out = c.g.values[c.g.outputs[0]].shape;
    Domain domain(out);
    IndexMap map = IndexMap::identity(out);
    std::vector<Box> boxes;
    if (!compose(c, domain, map, boxes)) continue;
    ++composed;
    const Tensor in[] = {reshape(arange(c.g.values[c.values[0]].shape.numel()), c.g.values[c.values[0]].shape)};
    const std::vector<std::int64_t> wanted = replay(c.g, in)[0].to_vector<std::int64_t>();
    std::size_t k = 0;
    bool good = domain.extents().numel() == out.numel();
    for_each_index(domain.extents(), [&](const Shape& i) {
      bool inside = true;
      for (const Box& b : boxes)
        for (int a = 0; a < i.rank(); ++a) inside = inside && i[a] >= b.begin[a] && i[a] < b.end[a];
      good = good && (inside ? position(map, i) : -1) == wanted[k++];
    });
    BOOST_TEST(good, "seed " << seed << "\n" << c.g.str());
  }
  BOOST_TEST(composed > 0.85 * all, composed << " of " << all << " chains compose");
}

BOOST_AUTO_TEST_CASE(valid_boxes_are_where_indices_are_in_range) {
  IndexMap m = IndexMap::identity({4});
  m.offset = {-3};
  m.axis = {0};
  m.coefficient = {2};
  const Shape extents{10};
  const auto box = valid(m, extents);
  BOOST_REQUIRE(box.has_value());
  for (std::int64_t i = 0; i < 10; ++i)
    BOOST_TEST((2 * i - 3 >= 0 && 2 * i - 3 < 4) == (i >= box->begin[0] && i < box->end[0]));
  m.coefficient = {-1};
  m.offset = {5};
  const auto falling = valid(m, extents);
  for (std::int64_t i = 0; i < 10; ++i)
    BOOST_TEST((5 - i >= 0 && 5 - i < 4) == (i >= falling->begin[0] && i < falling->end[0]));
  m.offset = {-100};
  BOOST_TEST(valid(m, extents)->end[0] == 0);  // the range is empty
}

BOOST_AUTO_TEST_CASE(an_axis_that_a_box_cuts_unevenly_is_not_split) {
  Domain d({12});
  Box box{{1}, {12}};
  const Followers followers{{}, {&box}};
  BOOST_TEST(!d.cut(0, 4, followers));
  box.begin[0] = 4;
  BOOST_TEST(d.cut(0, 4, followers));
  BOOST_TEST((box == Box{{1, 0}, {3, 4}}));
  BOOST_TEST((d.extents() == Shape{3, 4}));
}

BOOST_AUTO_TEST_SUITE_END()
