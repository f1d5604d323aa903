/// Modules in files: names, shapes, transposes, and everything that may not fit.
#include <boost/test/unit_test.hpp>

#include "ferrite/io/module_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"
#include "small_modules.h"
#include "temporary_folder.h"

namespace {

using namespace io_test;
namespace tt = boost::test_tools;

}  // namespace

BOOST_AUTO_TEST_SUITE(module_file)

BOOST_AUTO_TEST_CASE(saved_and_loaded_to_the_bit) {
  const TemporaryFolder folder;
  const Net net;
  io::save(net, folder / "net.safetensors");
  const Net other;
  clear(other);
  BOOST_TEST(!equal_modules(net, other));
  const io::LoadReport report = io::load(other, folder / "net.safetensors");
  BOOST_TEST(equal_modules(net, other));
  BOOST_TEST(report.missing.empty());
  BOOST_TEST(report.unexpected.empty());
}

/// A header whose length is 128 or so begins as a pickle does.
BOOST_AUTO_TEST_CASE(headers_of_every_length_are_recognised) {
  const TemporaryFolder folder;
  for (int k = 1; k < 140; ++k) {
    const Dense net(2, 1, 1);
    const std::string prefix(static_cast<std::size_t>(k), 'a');
    io::save(net, folder / "x.safetensors", {.prefix = prefix});
    BOOST_CHECK_NO_THROW(io::load(net, folder / "x.safetensors", {.prefix = prefix}));
  }
}

BOOST_AUTO_TEST_CASE(loaded_from_arrays_of_numpy) {
  const Net net;
  const std::vector<std::byte> bytes = io::serialize_npz(io::contents(net).tensors);
  const Net other;
  clear(other);
  io::load(other, io::parse_npz(bytes));
  BOOST_TEST(equal_modules(net, other));
}

/// [[10, 11, 12], [13, 14, 15]] in memory is [[10, 13], [11, 14], [12, 15]] in the file.
BOOST_AUTO_TEST_CASE(matrices_are_turned_on_the_way_out) {
  const Net net;
  const io::TensorFile file = file_of(net);
  const Tensor weight = file.tensor("body.weight");
  BOOST_TEST(weight.shape().str() == "[3, 2]");
  BOOST_TEST(weight.to_vector<float>() == list({10, 13, 11, 14, 12, 15}), tt::per_element());
  BOOST_TEST(file.tensor("mean").to_vector<float>() == list({30, 31}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(matrices_are_turned_on_the_way_in) {
  const Net net;
  io::load(net, file_of(tensors_of_net()));
  BOOST_TEST(values(net.body.weight) == list({100, 102, 104, 101, 103, 105}), tt::per_element());
  BOOST_TEST(values(net.body.bias) == list({100, 101, 102}), tt::per_element());
  BOOST_TEST(net.steps.peek().item<std::int64_t>() == 9);
}

/// A square matrix has the same shape both ways: only its values show whether it is transposed.
BOOST_AUTO_TEST_CASE(square_matrices_are_turned_too) {
  const Dense square(2, 2, 1);
  const io::TensorFile file = file_of(square);
  BOOST_TEST(file.tensor("weight").to_vector<float>() == list({1, 3, 2, 4}), tt::per_element());
  io::load(square, file_of({{"weight", counting({2, 2}, 5)}, {"bias", counting({2}, 0)}}));
  BOOST_TEST(values(square.weight) == list({5, 7, 6, 8}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_wrong_shape_is_told_as_the_file_has_it) {
  const Net net;
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  replace(tensors, "body.weight", counting({3, 4}, 0));
  BOOST_TEST(error_of(net, file_of(tensors)) ==
             "m.safetensors: 'body.weight' has shape [3, 4], the model needs [3, 2]");
}

BOOST_AUTO_TEST_CASE(all_problems_come_in_one_error) {
  const Net net;
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  replace(tensors, "body.weight", counting({2, 3}, 0));
  replace(tensors, "mean", ferrite::zeros({2}, Dtype::i64));
  replace(tensors, "steps", counting({1}, 0));
  tensors[3].name = "head.bais";
  tensors.push_back({"extra", counting({4, 5}, 0)});
  BOOST_TEST(error_of(net, file_of(tensors)) ==
             "m.safetensors: does not fit the model: 6 problems\n"
             "  'body.weight' has shape [2, 3], the model needs [3, 2]\n"
             "  'mean' has dtype I64, the model needs f32\n"
             "  'steps' has dtype F32, the model needs i64\n"
             "  'head.bias' [1] is missing from the file; is it 'head.bais'?\n"
             "  'extra' [4, 5] is not in the model\n"
             "  'head.bais' [1] is not in the model");
}

BOOST_AUTO_TEST_CASE(one_missing_or_one_unexpected_name) {
  const Net net;
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  tensors.erase(tensors.begin());
  BOOST_TEST(error_of(net, file_of(tensors)) == "m.safetensors: 'body.weight' [3, 2] is missing from the file");
  tensors = tensors_of_net();
  tensors.push_back({"zzz", counting({1}, 0)});
  BOOST_TEST(error_of(net, file_of(tensors)) == "m.safetensors: 'zzz' [1] is not in the model");
}

BOOST_AUTO_TEST_CASE(a_prefix_in_the_file_is_suggested_and_can_be_given) {
  const Net net;
  const io::TensorFile file = file_of(Outer());
  const std::string text = error_of(net, file);
  BOOST_TEST_INFO(text);
  BOOST_TEST(text.ends_with("\nnames in the file begin with 'model.': did you mean to load with the prefix 'model.'?"));
  clear(net);
  io::load(net, file, {.prefix = "model."});
  BOOST_TEST(equal_modules(net, Net()));
}

BOOST_AUTO_TEST_CASE(a_prefix_in_the_model_is_told) {
  const std::string text = error_of(Outer(), file_of(Net()));
  BOOST_TEST_INFO(text);
  BOOST_TEST(
      text.ends_with("\nnames in the model begin with 'model.', those in the file do not: load that part of it"));
}

BOOST_AUTO_TEST_CASE(with_a_prefix_other_names_are_left_alone) {
  const TemporaryFolder folder;
  const Dense part(2, 3, 50);
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  io::load(part, file_of(tensors), {.prefix = "body."});
  BOOST_TEST(values(part.bias) == list({100, 101, 102}), tt::per_element());
  tensors.push_back({"body.more", counting({1}, 0)});
  BOOST_TEST(error_of(part, file_of(tensors), {.prefix = "body."}) ==
             "m.safetensors: 'body.more' [1] is not in the model");
}

BOOST_AUTO_TEST_CASE(save_writes_a_prefix) {
  const io::TensorFile file = file_of(Net(), {.prefix = "model."});
  BOOST_TEST(file.contains("model.body.weight"));
  const Outer outer;
  clear(outer);
  io::load(outer, file);
  BOOST_TEST(equal_modules(outer, Outer()));
}

BOOST_AUTO_TEST_CASE(loading_without_strict_reports_what_it_passed_over) {
  const Net net;
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  tensors[1].name = "unknown";
  const std::vector<float> bias = values(net.body.bias);
  const io::LoadReport report = io::load(net, file_of(tensors), {.strict = false});
  BOOST_TEST(report.missing == std::vector<std::string>{"body.bias"}, tt::per_element());
  BOOST_TEST(report.unexpected == std::vector<std::string>{"unknown"}, tt::per_element());
  BOOST_TEST(values(net.body.bias) == bias, tt::per_element());
  BOOST_TEST(values(net.mean) == list({100, 101}), tt::per_element());
  replace(tensors, "mean", counting({5}, 0));
  BOOST_TEST(error_of(net, file_of(tensors), {.strict = false}) ==
             "m.safetensors: 'mean' has shape [5], the model needs [2]");
}

BOOST_AUTO_TEST_CASE(a_hostile_file_does_not_make_an_endless_error) {
  std::vector<io::NamedTensor> tensors = tensors_of_net();
  for (int i = 0; i < 5000; ++i) tensors.push_back({"x" + std::to_string(i), counting({1}, 0)});
  const std::string text = error_of(Net(), file_of(tensors));
  BOOST_TEST(text.size() < 10'000u);
  BOOST_TEST(text.ends_with("\n  and 4900 more"));
}

BOOST_AUTO_TEST_CASE(loading_logs_what_it_did) {
  std::vector<std::string> lines;
  ferrite::set_log_sink([&](ferrite::LogLevel, std::string_view line) { lines.emplace_back(line); },
                        ferrite::LogLevel::debug);
  const Dense wide(2, 1, 1, doubles());
  io::load(wide, file_of({{"weight", counting({1, 2}, 0.5)}, {"bias", counting({1}, 3)}}));
  ferrite::set_log_sink({});
  const std::vector<std::string> wanted = {
      "m.safetensors: loaded 'weight', transposed, converted from F32 to f64",
      "m.safetensors: loaded 'bias', converted from F32 to f64",
      "m.safetensors: loaded 2 tensors, 1 transposed, 2 converted, 0 missing, 0 not used",
  };
  BOOST_TEST(lines == wanted, tt::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
