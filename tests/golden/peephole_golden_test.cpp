// The LSTM with peepholes compared with ONNX Runtime (values) and PyTorch's autograd (gradients):
// tests/data/make_peephole_fixtures.py writes the cases.
#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

/// Returns the layer of a case with the weights of the file.
nn::PeepholeLstm loaded(const io::TensorFile& file, const std::string& name, nn::Form form, Dtype dtype) {
  const Shape shape = file.tensor(name + "/weight_ih_l0").shape();  // [4H, D]
  nn::PeepholeLstm net(shape[1], shape[0] / 4, {.form = form}, {.dtype = dtype});
  for (const auto& [parameter, cell] : net.named_parameters()) {
    const Tensor value = file.tensor(name + "/" + parameter);
    cell.assign(cast(value.rank() == 2 ? contiguous(transpose(value)) : value, dtype));
  }
  return net;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(peephole_golden)

BOOST_AUTO_TEST_CASE(values_and_gradients) {
  const io::TensorFile file = support::fixture("peephole_lstm.safetensors");
  for (const char* const name : {"small", "one", "odd"})
    for (const nn::Form form : {nn::Form::fused, nn::Form::scan, nn::Form::unrolled}) {
      const auto at = [&](const std::string& what) { return file.tensor(std::string(name) + "/" + what); };
      const nn::PeepholeLstm net = loaded(file, name, form, Dtype::f64);
      Tape tape;
      const Tensor x = tape.watch(at("x"));
      const nn::RecurrentResult r = net.run(x);
      BOOST_TEST(within(r.output, at("y"), 1e-14), name);
      BOOST_TEST(within(r.state, at("h"), 1e-14), name);
      BOOST_TEST(within(r.cell, at("c"), 1e-14), name);
      const Tensor loss = sum(r.output * at("dy"));
      BOOST_TEST(within(tape.grad(loss, {x}, {.retain = true})[0], at("g/x"), 1e-13), name);
      const Tensors gradients = tape.grad(loss, net.parameters());
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        const std::string& parameter = net.named_parameters()[k].name;
        const Tensor wanted = at("g/" + parameter);
        BOOST_TEST(within(gradients[k], wanted.rank() == 2 ? transpose(wanted) : wanted, 1e-13), name << parameter);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_stream_has_the_bits_of_the_whole) {
  const io::TensorFile file = support::fixture("peephole_lstm.safetensors");
  const nn::PeepholeLstm net = loaded(file, "odd", nn::Form::fused, Dtype::f32);
  const Tensor x = cast(file.tensor("odd/x"), Dtype::f32);  // [3, 7, 2]
  const Tensor whole = net(x);
  nn::Stream stream = net.stream(3);
  BOOST_TEST(stream.on_tensors() == 0U);
  std::vector<float> y(3 * 9);
  const auto run = [&] {
    for (std::int64_t t = 0; t < 7; ++t) {
      const Tensor row = contiguous(slice(x, 1, t, t + 1));
      stream.step(row.values<float>(), y);
      const Tensor wanted = contiguous(slice(whole, 1, t, t + 1));
      BOOST_TEST(std::equal(y.begin(), y.end(), wanted.values<float>().begin()), "step " << t);
    }
  };
  run();
  const Parameter peepholes = net.weights().weight_ch;
  const Tensor before = peepholes.value();
  peepholes.assign(before * 0.5F);
  stream.refresh();
  stream.reset();
  const Tensor first = contiguous(slice(x, 1, 0, 1));
  stream.step(first.values<float>(), y);
  const Tensor wanted = contiguous(slice(net(x), 1, 0, 1));
  BOOST_TEST(std::equal(y.begin(), y.end(), wanted.values<float>().begin()));
  BOOST_TEST(!identical(wanted, contiguous(slice(whole, 1, 0, 1))));
  peepholes.assign(before);
  stream.refresh();
  stream.reset();
  run();
  const nn::Stream copy = stream.clone();
  BOOST_TEST(identical(copy.save()[1], stream.save()[1]));
}

BOOST_AUTO_TEST_CASE(errors_name_the_vectors) {
  const auto says = [](const std::string& text) {
    return [=](const Error& e) { return std::string(e.what()).find(text) != std::string::npos; };
  };
  const RecurrentWeights<Tensor> w{.weight_ih = ones({2, 12}), .weight_hh = ones({3, 12}), .weight_ch = ones({4})};
  const Tensor x = ones({5, 1, 2}), state = zeros({1, 3});
  BOOST_CHECK_EXCEPTION(peephole_lstm_sequence(x, w, {state, state}), ShapeError,
                        says("weight_ch must be [9], got [4]"));
  BOOST_CHECK_EXCEPTION(peephole_lstm_sequence(x, {w.weight_ih, w.weight_hh}, {state, state}), ShapeError,
                        says("weight_ch"));
}

BOOST_AUTO_TEST_SUITE_END()
