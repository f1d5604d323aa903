#pragma once
/// A precondition of tests on POSIX that take permissions away.
#include <unistd.h>

#include <boost/test/unit_test.hpp>

namespace io_test {

/// Returns whether permissions keep this user from files, as they do not keep root.
inline boost::test_tools::assertion_result is_bound_by_permissions(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(::geteuid() != 0);
  result.message() << "root may read and write everything";
  return result;
}

}  // namespace io_test
