// Nets that PyTorch exports at opsets 9 to 23 have PyTorch's own numbers, eager, planned and fused.
// tests/onnx/torch_models.py writes them into a folder that FERRITE_TORCH_CASES names; without it this is skipped.
#include <boost/test/unit_test.hpp>
#include <iostream>

#include "case_folders.h"

BOOST_AUTO_TEST_SUITE(torch_nets)

BOOST_AUTO_TEST_CASE(nets_give_the_numbers_of_pytorch) {
  const char* const root = case_folders::folder_in("FERRITE_TORCH_CASES");
  if (!root) return;
  std::size_t nets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    BOOST_TEST_CONTEXT(entry.path().filename().string()) {
      const case_folders::Outcome o = case_folders::tried(entry.path());
      BOOST_TEST(o.refused == "");
      BOOST_TEST(o.wrong == "");
      BOOST_TEST(o.eager == "");
    }
    ++nets;
  }
  std::cout << nets << " nets of PyTorch, eager, planned and fused\n";
  BOOST_TEST(nets >= 100U);
}

BOOST_AUTO_TEST_SUITE_END()
