// GRU, LSTM and RNN of ONNX with every attribute and input, compared with ONNX Runtime
// (tests/data/make_onnx_recurrent_fixtures.py).
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;

namespace {

std::vector<std::byte> bytes_of(const Tensor& x) {
  std::vector<std::byte> bytes;
  for (const std::int64_t b : cast(x, Dtype::i64).to_vector<std::int64_t>()) bytes.push_back(static_cast<std::byte>(b));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_recurrent)

BOOST_AUTO_TEST_CASE(every_attribute_and_input_is_honoured) {
  const io::TensorFile file = support::fixture("onnx_recurrent.safetensors");
  std::istringstream names(std::string(file.metadata().at("cases")));
  std::size_t cases = 0;
  for (std::string name; names >> name; ++cases) {
    for (const bool frozen : {false, true}) {
      BOOST_TEST_CONTEXT(name << (frozen ? ", frozen" : "")) {
        const onnx::Model model = onnx::parse(bytes_of(file.tensor(name + "/model")), {.frozen = frozen});
        Tensors in;
        for (const onnx::Port& p : model.inputs()) in.push_back(file.tensor(name + "/x/" + p.name));
        const Tensors eager = model.run(in);
        const auto compiled = compile([&](const Tensors& x) { return model.run(x); });
        const Tensors planned = compiled(in);
        for (std::size_t i = 0; i < eager.size(); ++i) {
          BOOST_TEST(support::within(eager[i], file.tensor(name + "/y/" + model.outputs()[i].name), 2e-6));
          BOOST_TEST(support::identical(eager[i], planned[i]));
        }
      }
    }
  }
  BOOST_TEST(cases == 43U);
}

BOOST_AUTO_TEST_SUITE_END()
