// One named test case for every operation in the registry: nothing can be added untested.
#include <boost/test/unit_test.hpp>
#include <set>

#include "cases.h"

namespace {

using boost::unit_test::make_test_case;
using boost::unit_test::framework::current_auto_test_suite;

/// Runs while the program starts, like the macros that register fixed cases.
const bool registered = [] {
  for (const ferrite::Primitive* op : ferrite::primitives()) {
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

BOOST_AUTO_TEST_CASE(names_are_unique_and_found) {
  BOOST_TEST(registered);
  std::set<std::string_view> names;
  for (const ferrite::Primitive* op : ferrite::primitives()) {
    BOOST_TEST(names.insert(op->name).second, "two operations are named " << op->name);
    BOOST_TEST((ferrite::find_primitive(op->name) == op));
    BOOST_TEST(!op->summary.empty());
  }
  BOOST_TEST((ferrite::find_primitive("no such operation") == nullptr));
}
