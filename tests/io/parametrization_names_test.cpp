// Normed weights of older checkpoints, with the names that torch.nn.utils.weight_norm and spectral_norm gave.
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/torch.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor numbers(const Shape& shape, std::uint64_t seed) { return uniform(shape, {seed}, 0.5, 2); }

io::TensorFile file_of(const std::vector<std::pair<std::string, Shape>>& entries) {
  std::vector<io::NamedTensor> tensors;
  for (const auto& [name, shape] : entries) tensors.push_back({name, numbers(shape, tensors.size() + 1)});
  return io::tensor_file_of(std::move(tensors), "old.pt");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parametrization_names)

/// The names are what PyTorch 2.13 writes for these three modules, in its order.
BOOST_AUTO_TEST_CASE(a_net_takes_an_old_checkpoint) {
  using B = dsl::Builder;
  const dsl::Network net = dsl::sequence(2)
                               .weight_norm([](B& b) { b.linear(3); })
                               .spectral_norm([](B& b) { b.conv1d(2, 1); })
                               .weight_norm([](B& b) { b.gru(2); }, {.parameter = "weight_hh_l0"})
                               .build();
  const io::TensorFile old = file_of({{"0.bias", {3}},
                                      {"0.weight_g", {3, 1}},
                                      {"0.weight_v", {3, 2}},
                                      {"1.bias", {2}},
                                      {"1.weight_orig", {2, 3, 1}},
                                      {"1.weight_u", {2}},
                                      {"1.weight_v", {3}},
                                      {"2.weight_ih_l0", {6, 2}},
                                      {"2.bias_ih_l0", {6}},
                                      {"2.bias_hh_l0", {6}},
                                      {"2.weight_hh_l0_g", {6, 1}},
                                      {"2.weight_hh_l0_v", {6, 2}}});
  io::load(net, io::with_parametrization_names(old));
  const auto value = [&](const std::string& name) {
    for (const auto& p : net.named_parameters())
      if (p.name == name) return p.variable.peek();
    for (const auto& b : net.named_buffers())
      if (b.name == name) return b.variable.peek();
    throw std::runtime_error("no variable " + name);
  };
  BOOST_TEST(identical(transpose(value("0.parametrizations.weight.original0"), 0, 1), numbers({3, 1}, 2)));
  BOOST_TEST(identical(transpose(value("0.parametrizations.weight.original1"), 0, 1), numbers({3, 2}, 3)));
  BOOST_TEST(identical(value("1.parametrizations.weight.original"), numbers({2, 3, 1}, 5)));
  BOOST_TEST(identical(value("1.parametrizations.weight.0._u"), numbers({2}, 6)));
  BOOST_TEST(identical(value("1.parametrizations.weight.0._v"), numbers({3}, 7)));
  BOOST_TEST(identical(transpose(value("2.parametrizations.weight_hh_l0.original0"), 0, 1), numbers({6, 1}, 11)));
  BOOST_TEST(identical(transpose(value("2.parametrizations.weight_hh_l0.original1"), 0, 1), numbers({6, 2}, 12)));
}

BOOST_AUTO_TEST_CASE(names_that_only_look_so_stay) {
  const io::TensorFile file =
      file_of({{"filter_g", {1}}, {"map_v", {1}}, {"grid_u", {1}}, {"best_orig", {1}}, {"weight", {1}}});
  const io::TensorFile result = io::with_parametrization_names(file);
  const auto renamed = result.names();
  for (const std::string name : {"filter_g", "map_v", "grid_u", "best_orig", "weight"})
    BOOST_TEST((std::find(renamed.begin(), renamed.end(), name) != renamed.end()), name);
  BOOST_CHECK_EXCEPTION((void)io::with_parametrization_names(
                            file_of({{"w_g", {1}}, {"w_v", {1}}, {"parametrizations.w.original0", {1}}})),
                        IoError, says("two tensors are renamed to one name: 'parametrizations.w.original0'"));
}

BOOST_AUTO_TEST_SUITE_END()
