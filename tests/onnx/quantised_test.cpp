// Operations that onnxruntime.quantization writes, compared with ONNX Runtime
// (tests/data/make_onnx_quantised_fixtures.py).
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::says;

namespace {

std::string bytes_of(const Tensor& x) {
  std::string bytes;
  for (const std::int64_t b : cast(x, Dtype::i64).to_vector<std::int64_t>()) bytes.push_back(static_cast<char>(b));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_quantised)

/// All integers are those of ONNX Runtime; floats agree to rounding.
BOOST_AUTO_TEST_CASE(quantised_operations_give_the_numbers_of_onnx_runtime) {
  const io::TensorFile file = support::fixture("onnx_quantised.safetensors");
  std::istringstream names(std::string(file.metadata().at("cases")));
  std::size_t cases = 0;
  for (std::string name; names >> name; ++cases) {
    for (const bool frozen : {false, true}) {
      BOOST_TEST_CONTEXT(name << (frozen ? ", frozen" : "")) {
        const onnx::Model model = parsed(bytes_of(file.tensor(name + "/model")), {.frozen = frozen});
        Tensors in;
        for (const onnx::Port& p : model.inputs()) in.push_back(file.tensor(name + "/x/" + p.name));
        const Tensors eager = model.run(in);
        const auto compiled = compile([&](const Tensors& x) { return model.run(x); });
        const Tensors planned = compiled(in);
        for (std::size_t i = 0; i < eager.size(); ++i) {
          const Tensor wanted = file.tensor(name + "/y/" + model.outputs()[i].name);
          if (wanted.dtype() == Dtype::i32)
            BOOST_TEST(support::identical(eager[i], wanted));
          else
            BOOST_TEST(support::within(eager[i], wanted, 2e-6));
          BOOST_TEST(support::identical(eager[i], planned[i]));
        }
      }
    }
  }
  BOOST_TEST(cases == 15U);
}

BOOST_AUTO_TEST_CASE(what_a_quantised_lstm_cannot_be_is_refused) {
  const std::string w = initialiser(tensor<std::int8_t>("w", 3, {1, 1, 4}, {1, 2, 3, 4})),
                    r = initialiser(tensor<std::int8_t>("r", 3, {1, 1, 4}, {1, 2, 3, 4})),
                    s = initialiser(tensor<float>("s", 1, {1}, {0.1F})),
                    imports = field(8, field(1, "com.microsoft") + number(2, 1));
  const auto run = [&](const std::string& more, const std::string& peepholes = "") {
    const std::string node =
        node_of("DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", peepholes, "s", "", "s", ""}, {"y"},
                field(7, "com.microsoft") + int_attribute("hidden_size", 1) + more);
    return parsed(model_of(graph(w + r + s + node, {"x"}, {"y"}), 17, imports)).run({ones({2, 1, 1})})[0];
  };
  BOOST_TEST(run("").shape() == Shape({2, 1, 1, 1}));
  const auto refuses = [&](const std::string& more, const std::string& why, const std::string& peepholes = "") {
    BOOST_CHECK_EXCEPTION((void)run(more, peepholes), onnx::OnnxError, says(why));
  };
  refuses(int_attribute("input_forget", 1), "input_forget is not supported");
  refuses(float_attribute("clip", 1), "clip is not supported");
  refuses("", "peepholes are not supported", "s");
  refuses(int_attribute("layout", 1), "attribute \"layout\" is not supported");
}

BOOST_AUTO_TEST_SUITE_END()
