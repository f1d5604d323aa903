// The main function of Boost.Test, written out because the headers may have been precompiled without it.
#include <boost/test/unit_test.hpp>

int main(int argc, char* argv[]) {
  const auto begin = [] {
    boost::unit_test::framework::master_test_suite().p_name.value = "ferrite";
    return true;
  };
  return boost::unit_test::unit_test_main(begin, argc, argv);
}
