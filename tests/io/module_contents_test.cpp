/// Modules in files: dtypes, tied variables and the state of an optimiser.
#include <boost/test/unit_test.hpp>

#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "hostile_safetensors.h"
#include "small_modules.h"
#include "temporary_folder.h"

namespace {

using namespace io_test;
namespace tt = boost::test_tools;

}  // namespace

BOOST_AUTO_TEST_SUITE(module_contents)

BOOST_AUTO_TEST_CASE(floats_are_converted_unless_forbidden) {
  const Dense wide(2, 1, 1, doubles());
  const io::TensorFile narrow = file_of({{"weight", counting({1, 2}, 0.5)}, {"bias", counting({1}, 3)}});
  io::load(wide, narrow);
  BOOST_TEST(wide.weight.peek().to_vector<double>() == (std::vector<double>{0.5, 1.5}), tt::per_element());
  const Dense single(2, 1, 1);
  const io::TensorFile file = file_of(wide);
  io::load(single, file);
  BOOST_TEST(values(single.weight) == list({0.5, 1.5}), tt::per_element());
  BOOST_TEST(error_of(single, file, {.convert = false}) ==
             "m.safetensors: does not fit the model: 2 problems\n"
             "  'weight' has dtype F64, the model needs f32\n"
             "  'bias' has dtype F64, the model needs f32");
}

/// The number 1e39 would load as infinity.
BOOST_AUTO_TEST_CASE(numbers_beyond_the_dtype_of_the_parameter) {
  const Dense wide(2, 1, 1, doubles());
  wide.weight.assign(Tensor::from({1e39, -1e39}, wide.weight.shape()));
  const Dense single(2, 1, 1);
  const Tensor before = single.bias.peek();
  wide.bias.assign(wide.bias.peek() + 1);
  BOOST_TEST(error_of(single, file_of(wide)).find("m.safetensors: 'weight' holds a number that f32 cannot: 1e+39") ==
             0U);
  BOOST_TEST(values(single.bias) == before.to_vector<float>(), tt::per_element());
  wide.weight.assign(Tensor::from({HUGE_VAL, 1e-50}, wide.weight.shape()));
  io::load(single, file_of(wide));
  BOOST_TEST(values(single.weight) == list({HUGE_VALF, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(halves_become_the_dtype_of_the_parameter) {
  const std::string bytes = hostile::file_of(
      R"({"weight":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},"bias":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]}})",
      std::string("\x00\x3c\x00\xc0\x40\x40", 6));
  const io::TensorFile file = io::parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
  const Dense wide(2, 1, 1, doubles());
  io::load(wide, file);
  BOOST_TEST(wide.weight.peek().to_vector<double>() == (std::vector<double>{1, -2}), tt::per_element());
  BOOST_TEST(wide.bias.peek().item<double>() == 3);
  BOOST_TEST(error_of(Dense(2, 1, 1), file, {.convert = false}).find("'bias' has dtype BF16") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_unsupported_dtype_matters_only_where_it_is_wanted) {
  const std::string bytes = hostile::file_of(
      R"({"bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"weight":{"dtype":"F8_E4M3","shape":[1,4],"data_offsets":[4,8]}})",
      std::string(8, '\0'));
  const io::TensorFile file = io::parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
  const Dense dense(4, 1, 1);
  BOOST_TEST(error_of(dense, file) == "m.safetensors: 'weight' has dtype F8_E4M3, the model needs f32");
}

/// The values are the last thing that can fail, and nothing may have been assigned by then.
BOOST_AUTO_TEST_CASE(a_bad_bool_leaves_the_module_alone) {
  struct Flagged : nn::Module {
    Buffer early, flag;
    Flagged() {
      early = buffer("early", counting({1}, 1));
      flag = buffer("flag", Tensor::from({true}));
    }
  };
  const std::string bytes = hostile::file_of(
      R"({"early":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}})",
      std::string("\0\0\0\0\7", 5));
  const io::TensorFile file = io::parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
  BOOST_TEST(error_of(Flagged(), file) == "m.safetensors: 'flag': a BOOL is neither 0 nor 1: 7 at element 0");
}

BOOST_AUTO_TEST_CASE(tied_variables_are_written_once_and_come_back) {
  const Tied tied;
  const io::TensorFile file = file_of(tied);
  BOOST_TEST(file.size() == 2u);
  BOOST_TEST(
      (file.metadata() == io::Metadata{{"alias:second.weight", "first.weight"}, {"alias:second.bias", "first.bias"}}));
  const Tied other;
  clear(other);
  io::load(other, file);
  BOOST_TEST(equal_modules(tied, other));
}

/// A model that does not tie the two parameters reads both from the one entry.
BOOST_AUTO_TEST_CASE(an_alias_serves_a_model_that_is_not_tied) {
  struct Apart : nn::Module {
    Dense a{2, 2, 0}, b{2, 2, 0};
    Apart() {
      adopt("first", a);
      adopt("second", b);
    }
  };
  const Apart apart;
  io::load(apart, file_of(Tied()));
  BOOST_TEST(values(apart.a.weight) == list({1, 2, 3, 4}), tt::per_element());
  BOOST_TEST(values(apart.b.weight) == list({1, 2, 3, 4}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(two_entries_for_one_variable_must_agree) {
  const Tied tied;
  const Tensor weight = counting({2, 2}, 8), bias = counting({2}, 9);
  io::load(tied, file_of({{"first.weight", weight}, {"second.weight", weight}, {"second.bias", bias}}));
  BOOST_TEST(values(tied.a.bias) == list({9, 10}), tt::per_element());
  const io::TensorFile differing =
      file_of({{"first.weight", weight}, {"second.weight", counting({2, 2}, 0)}, {"first.bias", bias}});
  BOOST_TEST(error_of(tied, differing) ==
             "m.safetensors: 'first.weight' and 'second.weight' differ, in the model they are one parameter");
}

BOOST_AUTO_TEST_CASE(an_alias_to_nothing_is_a_missing_name) {
  const Dense dense(2, 1, 1);
  const io::TensorFile file = file_of({{"weight", counting({1, 2}, 0)}}, {{"alias:bias", "nothing"}});
  BOOST_TEST(error_of(dense, file) == "m.safetensors: 'bias' [1] is missing from the file");
}

BOOST_AUTO_TEST_CASE(optimiser_state_lives_in_the_same_file) {
  const TemporaryFolder folder;
  const std::vector<nn::Named<State>> states = {{"exp_avg.body.weight", State("m", counting({2, 3}, 1))},
                                                {"step", State("t", Tensor::from({std::int64_t{12}}))}};
  const Net net;
  io::save(net, folder / "all.safetensors", {.states = states, .metadata = {{"epoch", "3"}}});
  const io::TensorFile file = io::read_safetensors(folder / "all.safetensors");
  BOOST_TEST(file.tensor("optimizer.exp_avg.body.weight").shape().str() == "[2, 3]");
  BOOST_TEST(file.metadata().at("epoch") == "3");
  const Net alone;
  io::load(alone, file);
  const std::vector<nn::Named<State>> fresh = {{"exp_avg.body.weight", State("m", ferrite::zeros({2, 3}))},
                                               {"step", State("t", Tensor::from({std::int64_t{0}}))}};
  io::load(alone, file, {.states = fresh});
  BOOST_TEST(values(fresh[0].variable) == values(states[0].variable), tt::per_element());
  BOOST_TEST(fresh[1].variable.peek().item<std::int64_t>() == 12);
}

BOOST_AUTO_TEST_CASE(optimiser_state_that_does_not_fit) {
  const Net net;
  const std::vector<nn::Named<State>> states = {{"step", State("t", Tensor::from({std::int64_t{1}}))}};
  BOOST_TEST(error_of(net, file_of(net), {.states = states}) ==
             "m.safetensors: there is no optimiser state: no name begins with 'optimizer.'");
  const std::vector<nn::Named<State>> other = {{"step", State("t", Tensor::from({0.5f}))},
                                               {"rate", State("r", Tensor::from({0.5f}))}};
  BOOST_TEST(error_of(net, file_of(net, {.states = other}), {.states = states}) ==
             "m.safetensors: does not fit the model: 2 problems\n"
             "  'optimizer.step' has dtype F32, the model needs i64\n"
             "  'optimizer.rate' [1] is not in the model");
}

BOOST_AUTO_TEST_CASE(metadata_may_not_pose_as_an_alias) {
  BOOST_CHECK_THROW(io::contents(Net(), {.metadata = {{"alias:x", "y"}}}), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
