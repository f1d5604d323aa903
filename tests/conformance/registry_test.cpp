// One named test case for every operation in the registry: nothing can be added untested.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>
#include <stdexcept>

#include "../consumer/own_operations.h"
#include "cases.h"
#include "conformance/oracles/oracle.h"
#include "ferrite/compile/operations.h"
#include "ferrite/nn/operations.h"

namespace {

using boost::unit_test::make_test_case;
using boost::unit_test::framework::current_auto_test_suite;

std::vector<const ferrite::Primitive*> all() {
  return ferrite::detail::joined({ferrite::primitives(), ferrite::nn::operations(), ferrite::program_operations(),
                                  ferrite::composites(), ferrite::nn::composites()});
}

/// Returns the operations that a program has defined.
std::vector<const ferrite::Primitive*> own_operations() {
  namespace define = ferrite::define;
  return {&define::pointwise<own::Softsign>, &define::structured<own::Cumsum>, &define::structured<own::Diagonal>,
          &define::composite<own::LogCosh>};
}

/// An operation without an oracle.
struct Successor {
  static constexpr auto name = "own_successor", onnx = "", stablehlo = "", summary = "x + 1";
  static constexpr std::size_t arity = 1;
  static constexpr ferrite::define::Types types = ferrite::define::Types::floats;

  template <class T>
  static T of(T x) {
    return x + 1;
  }
};

/// The other operations of the program define their own oracles.
const oracles::Added of_own = oracles::add<own::Softsign, own::Cumsum, own::Diagonal, own::LogCosh>();

/// Registers the test cases while the program starts, like the macros that register fixed cases.
const bool registered = [] {
  std::vector<const ferrite::Primitive*> tried = all();
  for (const ferrite::Primitive* op : own_operations()) tried.push_back(op);
  for (const ferrite::Primitive* op : tried) {
    const auto check = [op] {
      if (op->is_pointwise()) {
        conformance::check_pointwise(*op);
      } else {
        conformance::check_structured(*op);
      }
    };
    current_auto_test_suite().add(make_test_case(check, std::string(op->name), __FILE__, __LINE__));
  }
  return true;
}();

}  // namespace

/// Every operation has exactly one oracle, and no oracle is left of an operation that is gone.
BOOST_AUTO_TEST_CASE(every_record_has_one_oracle) {
  std::multiset<std::string_view> names;
  for (const oracles::Oracle& o : oracles::all()) names.insert(o.name);
  for (const std::vector<const ferrite::Primitive*>& list : {all(), own_operations()})
    for (const ferrite::Primitive* op : list) {
      BOOST_TEST(names.erase(op->name) == 1U, op->name << " needs one oracle; see tests/conformance/oracles/oracle.h");
      BOOST_TEST((oracles::of(*op).scalar != nullptr) == op->is_pointwise(), op->name);
    }
  for (const std::string_view name : names) BOOST_ERROR("the oracle '" << name << "' belongs to no record");
}

BOOST_AUTO_TEST_CASE(an_operation_of_a_program_needs_no_oracle) {
  const ferrite::Primitive& op = ferrite::define::pointwise<Successor>;
  BOOST_TEST(op.is_pointwise());
  BOOST_TEST(!op.is_composite());
  BOOST_TEST(ferrite::define::pointwise_call<Successor>(ferrite::full({}, 2.0)).item<float>() == 3.0F);
  BOOST_CHECK_EXCEPTION((void)oracles::of(op), std::out_of_range, [](const std::out_of_range& e) {
    return std::string_view(e.what()) == "own_successor has no oracle; add one to tests/conformance/oracles";
  });
}

BOOST_AUTO_TEST_CASE(names_are_unique_and_found) {
  BOOST_TEST(registered);
  std::set<std::string_view> names;
  for (const ferrite::Primitive* op : all()) {
    BOOST_TEST(names.insert(op->name).second, "two operations are named " << op->name);
    const auto own = ferrite::primitives();
    const bool found = std::find(own.begin(), own.end(), op) != own.end();
    BOOST_TEST((ferrite::find_primitive(op->name) == (found ? op : nullptr)));
    BOOST_TEST(!op->summary.empty());
  }
  BOOST_TEST((ferrite::find_primitive("no such operation") == nullptr));
}
