// RTNeural's own files: nets in both of its layouts with the outputs that its authors' Python computed.
#include <fstream>

#include "ferrite/io/json_weights.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "samples.h"
#include "support/compare.h"

using namespace ferrite;
using support::within;

namespace {

Tensor column(const std::string& name) {
  std::ifstream in(samples::folder() / "rtneural" / name);
  std::vector<float> values;
  for (float v = 0; in >> v;) values.push_back(v);
  BOOST_REQUIRE(!values.empty());
  return Tensor::from(values, {1, static_cast<std::int64_t>(values.size()), 1});
}

/// Checks the torch layout: one recurrent layer, then three, then a dense layer.
template <class L>
struct Deep : nn::Module {
  L first{1, 8};
  L rest;
  nn::Linear dense{8, 1};
  Deep(const std::string& name, L deep) : rest(std::move(deep)) {
    adopt(name, first);
    adopt(name + "2", rest);
    adopt("dense", dense);
  }
  Tensor operator()(const Tensor& x) const { return dense(rest(first(x))); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rtneural)

BOOST_AUTO_TEST_CASE(keras_layout) {
  SAMPLES_OR_SKIP();
  for (const std::string name : {"gru", "gru_1d", "lstm", "lstm_1d"}) BOOST_TEST_CONTEXT(name) {
      const auto net = io::read_rtneural(samples::folder() / "rtneural" / (name + ".json"));
      BOOST_TEST(within((*net)(column(name + "_x_python.csv")), column(name + "_y_python.csv"), 1e-6));
    }
}

BOOST_AUTO_TEST_CASE(torch_layout) {
  SAMPLES_OR_SKIP();
  const Deep<nn::Gru> gru("gru", nn::Gru(8, 8, nn::GruOptions{.layers = 3}));
  io::load(gru, io::read_json_weights(samples::folder() / "rtneural" / "gru_torch.json"));
  BOOST_TEST(within(gru(column("gru_torch_x_python.csv")), column("gru_torch_y_python.csv"), 1e-6));
  const Deep<nn::Lstm> lstm("lstm", nn::Lstm(8, 8, nn::LstmOptions{.layers = 3}));
  io::load(lstm, io::read_json_weights(samples::folder() / "rtneural" / "lstm_torch.json"));
  BOOST_TEST(within(lstm(column("lstm_torch_x_python.csv")), column("lstm_torch_y_python.csv"), 1e-6));
}

BOOST_AUTO_TEST_SUITE_END()
