/// Boost.Test itself, compiled with a program for a system on which there is no library of it.
#define BOOST_TEST_NO_MAIN
#include <boost/test/included/unit_test.hpp>
