// Layers without a product in their loop, compared with the PyTorch packages that define them: values, last states and
// all gradients, from the packages' own files of weights (tests/data/make_linear_recurrence_fixtures.py).
#include <functional>
#include <map>
#include <memory>

#include "ferrite/autograd/tape.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/torch.h"
#include "ferrite/nn/recurrent/lru.h"
#include "ferrite/nn/recurrent/mamba.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/s5.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using Made = std::unique_ptr<nn::SequenceLayer>;
using Make = std::function<Made(const nn::Init&)>;

template <class L, class... Arguments>
Make make(Arguments... arguments) {
  return [=](const nn::Init& init) { return std::make_unique<L>(arguments..., init); };
}

const std::map<std::string, Make> kCases = {
    {"min_gru", make<nn::MinGru>(5, 5)},
    {"min_gru_wide", make<nn::MinGru>(4, 10)},
    {"min_gru_projected", make<nn::MinGru>(4, 12, nn::MinGruOptions{.proj_size = 4})},
    {"min_gru_step", make<nn::MinGru>(5, 5)},
    {"min_lstm", make<nn::MinLstm>(5, 5)},
    {"min_lstm_projected", make<nn::MinLstm>(4, 8, nn::MinLstmOptions{.proj_size = 4})},
    {"min_lstm_step", make<nn::MinLstm>(5, 5)},
    {"s5", make<nn::S5>(3, 6)},
    {"s5_state", make<nn::S5>(4, 8, nn::S5Options{.blocks = 2})},
    {"s5_bilinear", make<nn::S5>(3, 4, nn::S5Options{.bilinear = true})},
    {"s5_bidirectional", make<nn::S5>(3, 4, nn::S5Options{.bidirectional = true})},
    {"s5_scaled", make<nn::S5>(3, 4, nn::S5Options{.step_scale = 2})},
    {"lru", make<nn::Lru>(3, 5)},
    {"lru_zero", make<nn::Lru>(4, 19)},
    {"rg_lru", make<nn::RgLru>(nn::RgLruOptions{6, 2})},
    {"rg_lru_state", make<nn::RgLru>(nn::RgLruOptions{5, 1})},
    {"mamba", make<nn::Mamba>(nn::MambaOptions{.features = 4, .state = 3})},
    {"mamba_wide", make<nn::Mamba>(nn::MambaOptions{
                       .features = 5, .state = 2, .expand = 1, .kernel_size = 2, .dt_rank = 3, .bias = true})},
};

void check_case(const std::string& name, Dtype dtype, double tolerance) {
  const io::TensorFile file = support::fixture("linear_recurrences.safetensors");
  const auto given = [&](const std::string& what) { return cast(file.tensor(name + "." + what), dtype); };
  const Made layer = kCases.at(name)({.seed = 1, .dtype = dtype});
  io::load(*layer, support::fixture_path("linear_recurrences/" + name + ".pt"));
  Tape tape;
  const Tensor x = tape.watch(given("x"));
  const Tensor state = file.contains(name + ".state") ? tape.watch(given("state")) : Tensor();
  const nn::RecurrentResult r = layer->run(x, {.state = state});
  BOOST_TEST(within(r.output, given("y"), tolerance));
  if (file.contains(name + ".last")) BOOST_TEST(within(r.state, given("last"), tolerance));
  std::vector<Tensor> of = {x};
  if (state.defined()) of.push_back(state);
  for (const auto& p : layer->named_parameters()) of.push_back(p.variable.value());
  const Tensors g = tape.grad(sum(r.output * given("dy")), of);
  BOOST_TEST(within(g[0], given("dx"), tolerance));
  if (state.defined()) BOOST_TEST(within(g[1], given("dstate"), tolerance));
  std::size_t k = state.defined() ? 2 : 1;
  for (const auto& p : layer->named_parameters()) {
    const Tensor wanted = given("d/" + p.name), got = g[k++];
    const bool transposed = p.variable.layout() == FileLayout::transposed;
    BOOST_TEST_CONTEXT(p.name) { BOOST_TEST(within(transposed ? transpose(got) : got, wanted, tolerance)); }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_recurrences_golden)

BOOST_AUTO_TEST_CASE(equal_their_packages_in_f64) {
  for (const auto& [name, unused] : kCases) BOOST_TEST_CONTEXT(name) {
      check_case(name, Dtype::f64, 1e-12);
    }
}
BOOST_AUTO_TEST_CASE(equal_their_packages_in_f32) {
  for (const auto& [name, unused] : kCases) BOOST_TEST_CONTEXT(name) {
      check_case(name, Dtype::f32, 1e-6);
    }
}

BOOST_AUTO_TEST_SUITE_END()
