// Includes public headers in an unusual order: no header's declarations change the names of another.
#include "ferrite/nn/optim/adam_update.h"

#include "ferrite/nn/module.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(headers)

BOOST_AUTO_TEST_CASE(those_of_optimisers_may_come_before_those_of_modules) {
  const ferrite::nn::AdamConstants constants;
  BOOST_TEST(constants.beta1 == 0.9);
}

BOOST_AUTO_TEST_SUITE_END()
