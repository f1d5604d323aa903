/// PyTorch loads what we write. Needs a Python with torch and safetensors, named by FERRITE_PYTHON; skipped visibly
/// without it.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>

#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "ferrite/tensor/ops.h"
#include "temporary_folder.h"

namespace {

using ferrite::Tensor;
namespace io = ferrite::io;

boost::test_tools::assertion_result have_python(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(std::getenv("FERRITE_PYTHON") != nullptr);
  result.message() << "FERRITE_PYTHON names no Python that has torch";
  return result;
}

std::vector<io::NamedTensor> mixed() {
  const Tensor f = Tensor::from({1.0f, -2.5f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  return {{"f32", f},
          {"f64", Tensor::from({1.0, 2.0})},
          {"i32", Tensor::from({1, -2})},
          {"i64", Tensor::from({std::int64_t{1} << 40, std::int64_t{-3}})},
          {"bool", Tensor::from({true, false, true})},
          {"transposed", ferrite::transpose(f)},
          {"expanded", Tensor::from({1.0f, 2.0f}, {2, 1}).view({2, 300}, {1, 0}, 0)},
          {"bf16", ferrite::cast(f, ferrite::Dtype::bf16)},
          {"f16", ferrite::transpose(ferrite::cast(f, ferrite::Dtype::f16))},
          {"i8", ferrite::cast(f, ferrite::Dtype::i8)},
          {"scalar", Tensor::from({2.5f}, {})},
          {"empty", Tensor::from(std::vector<float>(), {0, 3})},
          {"", Tensor::from({1.0f})},
          {"straße.重み", Tensor::from({1.0f})},
          {std::string(300, 'n'), Tensor::from({1.0f})}};
}

std::vector<io::NamedTensor> tied() {
  const Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f});
  return {{"embedding", x}, {"decoder", x}, {"half", x.view({2}, {1}, 2)}};
}

std::vector<io::NamedTensor> many() {
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < 300; ++i)
    tensors.push_back({"layer." + std::to_string(i), Tensor::from(std::vector<float>(300, 0.5f), {300})});
  return tensors;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_written)

BOOST_AUTO_TEST_CASE(torch_load_accepts_our_files, *boost::unit_test::precondition(have_python)) {
  const io_test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<io::NamedTensor>& tensors) {
    io::write_torch(folder / (name + ".pt"), tensors);
    io::write_safetensors(folder / (name + ".safetensors"), tensors);
  };
  write("mixed", mixed());
  write("tied", tied());
  write("many", many());
  write("none", {});
  const std::string script = std::string(FERRITE_SOURCE_DIR) + "/tests/data/check_torch_written.py";
  const std::string command =
      std::string(std::getenv("FERRITE_PYTHON")) + " '" + script + "' '" + folder.path().string() + "'";
  BOOST_TEST(std::system(command.c_str()) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
