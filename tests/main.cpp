#define BOOST_TEST_MODULE ferrite
#include <boost/test/unit_test.hpp>
