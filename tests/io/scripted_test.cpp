/// Modules that torch.jit.save wrote: the parameters and buffers of state_dict(), bit for bit and by its names
/// (tests/data/torch_scripted, and tests/data/make_scripted_fixtures.py).
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gru.h"
#include "same_files.h"
#include "support/fixtures.h"
#include "torch_builder.h"

namespace {

using ferrite::IoError;
using io_test::check_same;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace tt = boost::test_tools;

fs::path fixtures() { return support::fixture_path("torch_scripted"); }

io::TensorFile wanted(const std::string& name) { return io::read_safetensors(fixtures() / (name + ".safetensors")); }
io::TensorFile read(const std::string& name, std::string_view key = "") {
  return io::read_torch(fixtures() / (name + ".pt"), key);
}

std::vector<std::string> names_of(const io::TensorFile& file) {
  const std::vector<std::string_view> names = file.names();
  return {names.begin(), names.end()};
}

auto says(const std::string& part) {
  return [part](const IoError& error) {
    BOOST_TEST_INFO("the error says: " << error.what());
    BOOST_TEST(std::string(error.what()).find(part) != std::string::npos);
    return true;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_scripted)

BOOST_AUTO_TEST_CASE(every_fixture_has_its_state_dict_value_for_value) {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string name = entry.path().stem().string();
    BOOST_TEST_CONTEXT(name) { check_same(read(name), wanted(name)); }
    ++seen;
  }
  BOOST_TEST(seen == 9);
}

/// A tensor that is neither a parameter nor a buffer is left out, as state_dict() leaves it out. A buffer that is not
/// persistent is included, since TorchScript does not record the difference.
BOOST_AUTO_TEST_CASE(of_all_attributes_parameters_and_buffers) {
  const std::vector<std::string> names = {"weight", "kept", "passing"};
  BOOST_TEST(names_of(read("attributes")) == names, tt::per_element());
  BOOST_TEST(read("empty").size() == 0u);
  BOOST_TEST(read("frozen").size() == 0u);  // its values are constants of the code
}

BOOST_AUTO_TEST_CASE(the_order_is_that_of_state_dict) {
  const std::vector<std::string> names = {"gru.weight_ih_l0", "gru.weight_hh_l0", "gru.bias_ih_l0",
                                          "gru.bias_hh_l0",   "out.weight",       "out.bias"};
  BOOST_TEST(names_of(read("recurrent")) == names, tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_key_names_a_module_in_it) {
  const io::TensorFile whole = read("tower"), stage = read("tower", "stages.0");
  BOOST_TEST(stage.size() == 6u);
  for (const std::string_view name : stage.names())
    check_same(stage.tensor(name), whole.tensor("stages.0." + std::string(name)), name);
  check_same(read("tower", "heads.mean.bias").tensor("tensor"), whole.tensor("heads.mean.bias"), "one tensor");
  check_same(read("attributes", "state").tensor("tensor"), ferrite::zeros({0}), "any attribute that is a tensor");
  BOOST_CHECK_EXCEPTION(read("tower", "stages.2"), IoError, says("the module has no part of this name: 'stages.2'"));
  BOOST_CHECK_EXCEPTION(read("tower", "heads.mean.bias.x"), IoError, says("no part of this name"));
  BOOST_CHECK_EXCEPTION(read("attributes", "training"), IoError, says("holds no module: it is a bool"));
}

BOOST_AUTO_TEST_CASE(modules_load_it) {
  const ferrite::nn::Gru gru(2, 3);
  const ferrite::nn::Linear out(3, 1);
  io::load(gru, fixtures() / "recurrent.pt", {.prefix = "gru."});
  io::load(out, read("recurrent", "out"));
  const io::TensorFile state = wanted("recurrent");
  for (const io::NamedTensor& own : io::contents(gru).tensors)
    check_same(own.tensor, state.tensor("gru." + own.name), own.name);
  for (const io::NamedTensor& own : io::contents(out).tensors)
    check_same(own.tensor, state.tensor("out." + own.name), own.name);
}

BOOST_AUTO_TEST_CASE(a_module_with_a_state_of_its_own_is_refused) {
  BOOST_CHECK_EXCEPTION(read("of_its_own"), IoError, says("save the weights: torch.save(model.state_dict(), path)"));
}

/// Old versions did not list buffers, so every tensor counts.
BOOST_AUTO_TEST_CASE(code_that_lists_no_buffers) {
  using namespace torch_builder;
  const std::string bytes =
      torch_builder::scripted(instance("Net", text("mean") + good_tensor() + text("weight") + good_tensor()),
                              "class Net(Module):\n  __parameters__ = [\"weight\", ]\n  mean : Tensor\n");
  const std::vector<std::string> names = {"mean", "weight"};
  BOOST_TEST(names_of(io::parse_torch(std::as_bytes(std::span(bytes)))) == names, tt::per_element());
}

/// Lists count for the class in which they are, and only if indented as PyTorch does.
BOOST_AUTO_TEST_CASE(lists_belong_to_their_class) {
  using namespace torch_builder;
  const std::string both = text("x") + good_tensor() + text("y") + good_tensor();
  const std::string code = module_class("First", "\"x\", ", "  def f(self) -> str:\n    __parameters__ = [\"y\", ]\n") +
                           module_class("Outer", "") + module_class("Second", "\"y\", ");
  const std::string bytes = torch_builder::scripted(
      instance("Outer", text("first") + instance("First", both) + text("second") + instance("Second", both)), code);
  const std::vector<std::string> names = {"first.x", "second.y"};
  BOOST_TEST(names_of(io::parse_torch(std::as_bytes(std::span(bytes)))) == names, tt::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
