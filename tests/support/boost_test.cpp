/// Compiles Boost.Test into a program, for systems without its library.
#define BOOST_TEST_NO_MAIN
#include <boost/test/included/unit_test.hpp>
