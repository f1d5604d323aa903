// The constants of operations: structs that are carried generically and returned by position.
#include "ferrite/tensor/attributes.h"

#include <boost/test/unit_test.hpp>
#include <utility>
#include <vector>

#include "ferrite/tensor/primitive.h"
#include "support/compare.h"

using namespace ferrite;
using detail::AxisAttrs;
using detail::PadAttrs;
using detail::SliceAttrs;
using support::says;

namespace {

/// A constant of every type, and an optional one of every type.
struct Everything {
  bool flag = false;
  int narrow = 0;
  std::int64_t wide = 0;
  double real = 0;
  Dtype dtype = Dtype::f32;
  Scalar literal{};
  Shape list{};
  Label text{};
  Positions positions{};
  std::optional<bool> maybe_flag{};
  std::optional<int> maybe_narrow{};
  std::optional<Label> maybe_text{};
  static constexpr auto fields =
      attr_list(attr("flag", &Everything::flag), attr("narrow", &Everything::narrow), attr("wide", &Everything::wide),
                attr("real", &Everything::real), attr("dtype", &Everything::dtype),
                attr("literal", &Everything::literal), attr("list", &Everything::list), attr("text", &Everything::text),
                attr("positions", &Everything::positions), attr("maybe_flag", &Everything::maybe_flag),
                attr("maybe_narrow", &Everything::maybe_narrow), attr("maybe_text", &Everything::maybe_text));
  bool operator==(const Everything&) const = default;
};

/// The fields of another struct, and one more.
struct Longer : AxisAttrs {
  std::optional<double> more{};
  static constexpr auto fields = AxisAttrs::fields.with(attr("more", &Longer::more));
};

Everything some() {
  return {true,   -3,         std::int64_t{1} << 40,
          0.5,    Dtype::i64, 2.5,
          {2, 3}, "words",    Positions::of(std::vector<std::int64_t>{0, 9}),
          false,  {},         Label("more")};
}

using Given = std::vector<std::pair<std::string_view, AttrValue>>;
template <class S>
Attrs from(const Given& given) {
  return Attrs::from(attr_fields<S>, given, "test");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attrs)

BOOST_AUTO_TEST_CASE(every_type_of_constant_comes_back) {
  BOOST_TEST((Attrs(some()).as<Everything>() == some()));
  BOOST_TEST((Attrs(Everything{}).as<Everything>() == Everything{}));
}

BOOST_AUTO_TEST_CASE(constants_are_found_by_position_behind_missing_ones_too) {
  Everything e = some();
  e.maybe_flag = {}, e.maybe_narrow = 7;
  const Attrs a = e;
  BOOST_TEST((*a.at(2) == AttrValue(e.wide)));
  BOOST_TEST(!a.at(9));
  BOOST_TEST((*a.at(10) == AttrValue(std::int64_t{7})));
  BOOST_TEST((*a.at(11) == AttrValue(Label("more"))));
  BOOST_TEST(!a.at(12));
  BOOST_TEST((*Attrs(detail::Literals{.b = 2}).at(1) == AttrValue(Scalar(2))));
  BOOST_TEST(!Attrs(detail::Literals{.b = 2}).at(0));
}

BOOST_AUTO_TEST_CASE(what_is_not_set_is_not_printed) {
  BOOST_TEST(Attrs(some()).str() ==
             "flag=true narrow=-3 wide=1099511627776 real=0.5 dtype=i64 literal=2.5 list=[2, 3] text=words "
             "positions={0, 9} "
             "maybe_flag=false maybe_text=more");
  BOOST_TEST(Attrs().str() == "");
  BOOST_TEST(Attrs(detail::Literals{}).str() == "");
  BOOST_TEST(Attrs(detail::Literals{.b = 2}).str() == "b=2");
}

BOOST_AUTO_TEST_CASE(constants_are_equal_by_value) {
  const Attrs a = SliceAttrs{1, 0, 3, 1};
  BOOST_TEST((a == Attrs(SliceAttrs{1, 0, 3, 1})));
  BOOST_TEST((a != Attrs(SliceAttrs{1, 0, 3, 2})));
  BOOST_TEST(a.hash() == Attrs(SliceAttrs{1, 0, 3, 1}).hash());
  BOOST_TEST((Attrs(AxisAttrs{1}) != Attrs(detail::CastAttrs{})));
  BOOST_TEST((Attrs(detail::Literals{}) == Attrs()), "nothing is set in either");
  BOOST_TEST((Attrs(detail::Literals{.a = 1}) != Attrs(detail::Literals{.b = 1})));
  const Attrs zero = PadAttrs{{1}, {1}, 0.0}, minus = PadAttrs{{1}, {1}, -0.0};
  BOOST_TEST((zero == minus));
  BOOST_TEST(!zero.same_bits(minus));
  BOOST_TEST(zero.same_bits(zero));
}

BOOST_AUTO_TEST_CASE(a_struct_that_the_fields_begin_with_is_read_too) {
  const Attrs slice = SliceAttrs{2, 0, 3, 1};
  BOOST_TEST(slice.as<AxisAttrs>().axis == 2);
  BOOST_TEST(Attrs(Longer{{4}, 0.5}).as<AxisAttrs>().axis == 4);
  const auto back = Attrs(Longer{{4}, {}}).as<Longer>();
  BOOST_TEST(back.axis == 4);
  BOOST_TEST(!back.more);
}

BOOST_AUTO_TEST_CASE(constants_of_another_operation_are_refused) {
  const Attrs axis = AxisAttrs{1};
  BOOST_CHECK_EXCEPTION((void)axis.as<SliceAttrs>("slice"), Error,
                        says("slice: attributes of another operation: wants axis, begin, count, step, got axis"));
  BOOST_CHECK_EXCEPTION((void)axis.as<PadAttrs>("pad"), Error, says("wants before, after, value, got axis"));
  BOOST_CHECK_EXCEPTION((void)Attrs().as<AxisAttrs>("stack"), Error, says("stack: "));
  BOOST_TEST(!Attrs().as<detail::Literals>().a);
  const Tensor x = ones({2});
  const Tensor* const in[] = {&x};
  BOOST_CHECK_EXCEPTION((void)find_primitive("permute")->apply(in, axis), Error, says("permute: "));
  BOOST_CHECK_EXCEPTION((void)find_primitive("sum")->apply(in), Error, says("sum: "));
}

BOOST_AUTO_TEST_CASE(constants_given_by_name_come_into_the_order_of_their_struct) {
  const std::int64_t one = 1, two = 2, three = 3;
  const Attrs a = from<SliceAttrs>({{"step", three}, {"axis", one}, {"count", two}, {"begin", one}});
  BOOST_TEST((a == Attrs(SliceAttrs{1, 1, 2, 3})));
  BOOST_TEST((from<detail::Literals>({{"c", Scalar(1)}}) == Attrs(detail::Literals{.c = 1})));
  BOOST_TEST((from<detail::Literals>({}) == Attrs()));
}

BOOST_AUTO_TEST_CASE(wrong_constants_given_by_name_are_refused) {
  const std::int64_t one = 1;
  const std::pair<Given, const char*> cases[] = {
      {{{"axis", one}, {"step", one}}, "test: attribute 'step' is unknown; there are: axis"},
      {{}, "test: attribute 'axis' is missing"},
      {{{"axis", one}, {"axis", one}}, "test: attribute 'axis' is given twice"},
      {{{"axis", true}}, "test: attribute 'axis' must be an integer, got true or false"},
      {{{"axis", 1.0}}, "test: attribute 'axis' must be an integer, got a float"},
      {{{"axis", Scalar(1)}}, "test: attribute 'axis' must be an integer, got a literal"},
      {{{"axis", one << 32}}, "test: attribute 'axis' must be an integer of 32 bits, got 4294967296"}};
  for (const auto& [given, message] : cases)
    BOOST_CHECK_EXCEPTION((void)from<AxisAttrs>(given), ValueError, says(message));
}

BOOST_AUTO_TEST_CASE(every_record_names_its_constants_once) {
  for (const Primitive* op : primitives()) {
    BOOST_REQUIRE(op->attributes);
    for (std::size_t i = 0; i < op->attributes->size(); ++i)
      for (std::size_t j = 0; j < i; ++j) BOOST_TEST((*op->attributes)[i].name != (*op->attributes)[j].name, op->name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
