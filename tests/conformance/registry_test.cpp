// One named test case for every operation in the registry: nothing can be added untested.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "../consumer/own_operations.h"
#include "cases.h"
#include "ferrite/compile/operations.h"
#include "ferrite/nn/operations.h"

namespace {

using boost::unit_test::make_test_case;
using boost::unit_test::framework::current_auto_test_suite;

std::vector<const ferrite::Primitive*> all() {
  return ferrite::detail::joined({ferrite::primitives(), ferrite::nn::operations(), ferrite::program_operations(),
                                  ferrite::composites(), ferrite::nn::composites()});
}

/// Those that a program wrote.
std::vector<const ferrite::Primitive*> own_operations() {
  namespace define = ferrite::define;
  return {&define::pointwise<own::Softsign>, &define::structured<own::Cumsum>, &define::structured<own::Diagonal>,
          &define::composite<own::LogCosh>};
}

/// Runs while the program starts, like the macros that register fixed cases.
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
