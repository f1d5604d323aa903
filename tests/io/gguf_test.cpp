/// GGUF: every type of tensor compared bit for bit with the package gguf, metadata by type, and the writer's bytes.
#include <cstring>
#include <fstream>
#include <iterator>

#include "ferrite/io/any_file.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "temporary_folder.h"

namespace {

using ferrite::Dtype;
using ferrite::IoError;
using ferrite::Tensor;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
namespace fs = std::filesystem;
namespace io = ferrite::io;

fs::path fixtures() { return support::fixture_path("gguf"); }

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

io::TensorFile expected() { return io::read_safetensors(fixtures() / "expected.safetensors"); }

/// Returns the number of elements whose bits differ; a NaN equals any NaN.
std::size_t differing(const Tensor& a, const Tensor& b) {
  const auto x = a.values<float>(), y = b.values<float>();
  std::size_t n = 0;
  for (std::size_t i = 0; i < x.size(); ++i) n += support::same_bits(x[i], y[i]) ? 0U : 1U;
  return n;
}

io::GgufType type_by_name(const io::NamedTensor& t) {
  if (t.name == "f16") return io::GgufType::f16;
  if (t.name == "bf16") return io::GgufType::bf16;
  if (t.name == "q8_0") return io::GgufType::q8_0;
  return t.name == "q4_0" ? io::GgufType::q4_0 : io::GgufType::same;
}

std::vector<io::NamedTensor> one(const Tensor& x) { return {{"a", x}}; }
io::GgufTypeOf as(io::GgufType type) {
  return [type](const io::NamedTensor&) { return type; };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gguf)

BOOST_AUTO_TEST_CASE(every_type_has_the_bits_of_the_package) {
  const io::TensorFile file = io::read_gguf(fixtures() / "types.gguf");
  const io::TensorFile wanted = expected();
  BOOST_TEST(file.size() == 16u);
  for (const std::string_view name : file.names()) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(file.info(name).dtype == name);
      const Tensor x = file.tensor(name), y = wanted.tensor(name);
      BOOST_TEST(x.shape().str() == y.shape().str());
      BOOST_TEST(identical(x, y));
      if (x.dtype() == Dtype::f32) BOOST_TEST(differing(x, y) == 0u);
    }
  }
  BOOST_TEST(file.info("Q6_K").bytes == 2 * 12 * 210u);
  BOOST_TEST((file.info("Q6_K").stored_as == Dtype::f32));
  BOOST_TEST((file.info("BF16").stored_as == Dtype::bf16));
}

BOOST_AUTO_TEST_CASE(blocks_hold_numbers_at_the_corners) {
  // The fixture contains what it is made for: infinity, NaN, denormal numbers and both zeros.
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
    BOOST_TEST_CONTEXT(name) {
      std::size_t infinite = 0, nan = 0, zero = 0, finite = 0;
      const Tensor x = expected().tensor(name);
      for (const float v : x.values<float>()) {
        infinite += std::isinf(v) ? 1U : 0U, nan += std::isnan(v) ? 1U : 0U, zero += v == 0 ? 1U : 0U;
        finite += std::isfinite(v) ? 1U : 0U;
      }
      BOOST_TEST(infinite + nan > 0u);
      BOOST_TEST(nan > 0u);
      BOOST_TEST(zero > 0u);
      BOOST_TEST(finite > 100u);
    }
  }
}

BOOST_AUTO_TEST_CASE(metadata_has_the_types_of_the_file) {
  const io::GgufMetadata m = io::read_gguf_metadata(fixtures() / "types.gguf");
  BOOST_TEST(m.size() == 17u);
  BOOST_TEST(std::get<std::string>(m.at("general.architecture")) == "test");
  BOOST_TEST(std::get<bool>(m.at("test.bool")));
  BOOST_TEST((std::get<std::vector<bool>>(m.at("test.bools")) == std::vector<bool>{true, false}));
  BOOST_TEST(std::get<float>(m.at("test.f32")) == 0.1F);
  BOOST_TEST(std::get<double>(m.at("test.f64")) == 0.1);
  BOOST_TEST((std::get<std::vector<float>>(m.at("test.floats")) == std::vector<float>{0.5F, -1.5F}));
  BOOST_TEST(std::get<std::int8_t>(m.at("test.i8")) == -1);
  BOOST_TEST(std::get<std::int16_t>(m.at("test.i16")) == -2);
  BOOST_TEST(std::get<std::int32_t>(m.at("test.i32")) == -3);
  BOOST_TEST(std::get<std::int64_t>(m.at("test.i64")) == -(std::int64_t{1} << 40));
  BOOST_TEST((std::get<std::vector<std::int32_t>>(m.at("test.ints")) == std::vector<std::int32_t>{1, -2, 3}));
  BOOST_TEST(std::get<std::string>(m.at("test.text")) == "straße");
  BOOST_TEST((std::get<std::vector<std::string>>(m.at("test.tokens")) == std::vector<std::string>{"<s>", "", "a b"}));
  BOOST_TEST(std::get<std::uint8_t>(m.at("test.u8")) == 255);
  BOOST_TEST(std::get<std::uint16_t>(m.at("test.u16")) == 65535);
  BOOST_TEST(std::get<std::uint32_t>(m.at("test.u32")) == 0xFFFFFFFFU);
  BOOST_TEST(std::get<std::uint64_t>(m.at("test.u64")) == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(metadata_of_the_tensors_is_in_words) {
  const io::Metadata m = io::read_gguf(fixtures() / "types.gguf").metadata();
  BOOST_TEST(m.size() == 13u);  // without the lists
  BOOST_TEST(m.at("general.architecture") == "test");
  BOOST_TEST(m.at("test.bool") == "true");
  BOOST_TEST(m.at("test.f32") == "0.1");
  BOOST_TEST(m.at("test.i8") == "-1");
  BOOST_TEST(m.at("test.u64") == "18446744073709551615");
}

BOOST_AUTO_TEST_CASE(we_write_what_the_package_writes) {
  const Tensor values = expected().tensor("values");
  std::vector<io::NamedTensor> tensors;
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0"}) tensors.push_back({name, values});
  tensors.push_back({"vector", ferrite::slice(ferrite::select(values, 0, 0), 0, 0, 5)});
  const io::GgufMetadata metadata = io::read_gguf_metadata(fixtures() / "written.gguf");
  const std::string wanted = content(fixtures() / "written.gguf");
  const std::string written = text_of(io::serialize_gguf(tensors, metadata, type_by_name));
  BOOST_TEST(written.size() == wanted.size());
  BOOST_TEST((written == wanted));
}

BOOST_AUTO_TEST_CASE(what_is_read_is_written_again) {
  const TemporaryFolder folder;
  const io::TensorFile file = io::read_gguf(fixtures() / "types.gguf");
  std::vector<io::NamedTensor> tensors;
  for (const char* name : {"F32", "F16", "F64", "I8", "I32", "I64", "BF16"})
    tensors.push_back({name, file.tensor(name, io::Elements::as_stored)});
  tensors.push_back({"strided", ferrite::transpose(file.tensor("F32"))});
  tensors.push_back({"empty", ferrite::zeros({0, 3})});
  tensors.push_back({"scalar", Tensor::from<float>({2.5F}, {})});
  io::write_tensors(folder / "x.gguf", tensors, {{"general.architecture", "test"}});
  const io::TensorFile again = io::read_tensors(folder / "x.gguf");
  BOOST_TEST(again.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(identical(again.tensor(name, io::Elements::as_stored), ferrite::contiguous(tensor)));
    }
  }
  BOOST_TEST((again.metadata() == io::Metadata{{"general.architecture", "test"}}));
}

BOOST_AUTO_TEST_CASE(a_layer_is_loaded) {
  const TemporaryFolder folder;
  const ferrite::nn::Linear from(64, 8, {.seed = 1}), to(64, 8, {.seed = 2});
  const std::vector<io::NamedTensor> tensors = {{"weight", ferrite::contiguous(ferrite::transpose(from.weight.peek()))},
                                                {"bias", from.bias.peek()}};
  io::write_gguf(folder / "x.gguf", tensors, {});
  io::load(to, io::read_gguf(folder / "x.gguf"));
  BOOST_TEST(identical(to.weight.peek(), from.weight.peek()));
  BOOST_TEST(identical(to.bias.peek(), from.bias.peek()));
}

BOOST_AUTO_TEST_CASE(an_alignment_of_its_own_is_read_and_written) {
  const io::TensorFile file = io::read_gguf(fixtures() / "unsupported.gguf");
  BOOST_TEST(identical(file.tensor("a"), expected().tensor("F32")));
  BOOST_TEST(file.info("b").dtype == "IQ4_NL");
  BOOST_TEST(!file.info("b").loads_as.has_value());
  BOOST_CHECK_EXCEPTION(file.tensor("b"), IoError, says("'b': unsupported type: IQ4_NL"));
  const std::vector<io::NamedTensor> tensors = {{"x", ferrite::zeros({1})}, {"y", ferrite::ones({1})}};
  const std::vector<std::byte> bytes =
      io::serialize_gguf(tensors, {{"general.alignment", std::uint32_t{256}}, {"general.architecture", "test"}});
  BOOST_TEST(bytes.size() % 256 == 0u);
  BOOST_TEST(identical(io::parse_gguf(bytes).tensor("y"), ferrite::ones({1})));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_refused) {
  const auto refused = [](const Tensor& x, io::GgufType type, const char* message) {
    BOOST_CHECK_EXCEPTION(io::serialize_gguf(one(x), {}, as(type)), IoError, says(message));
  };
  using enum io::GgufType;
  refused(Tensor::from<float>({1e30F}, {1}), f16, "'a': holds a number that F16 cannot");
  refused(ferrite::full({32}, INFINITY), q8_0, "'a': holds infinity or NaN");
  refused(ferrite::full({32}, 1e30), q8_0, "'a': holds numbers whose scale f16 cannot hold");
  refused(ferrite::full({32}, 1e30), q4_0, "scale f16 cannot hold");
  refused(ferrite::zeros({2, 16}), q4_0, "'a': has rows of 16 elements, which are no whole blocks of 32: Q4_0");
  refused(ferrite::zeros({32}, Dtype::f64), q4_0, "'a': is no f32");
  refused(ferrite::zeros({1, 1, 1, 1, 1}), same, "'a': has too many dimensions");
  refused(ferrite::zeros({1}, Dtype::boolean), same, "'a': has a dtype that the format does not have");
  refused(Tensor(), same, "'a': has no values");
  const auto named = [](const std::string& name) { return std::vector<io::NamedTensor>{{name, ferrite::zeros({1})}}; };
  BOOST_CHECK_EXCEPTION(io::serialize_gguf(named(std::string(64, 'n'))), IoError, says("is too long: 64 bytes"));
  BOOST_CHECK_EXCEPTION(io::serialize_gguf(named("")), IoError, says("a name is empty"));
  BOOST_CHECK_EXCEPTION(io::serialize_gguf(named("\xff")), IoError, says("a name is not UTF-8"));
  std::vector<io::NamedTensor> twice = named("a");
  twice.push_back(twice[0]);
  BOOST_CHECK_EXCEPTION(io::serialize_gguf(twice), IoError, says("a name occurs twice: 'a'"));
  BOOST_CHECK_EXCEPTION(io::serialize_gguf(named("a"), {{"general.alignment", std::uint32_t{24}}}), IoError,
                        says("general.alignment is no u32 power of two"));
}

BOOST_AUTO_TEST_SUITE_END()
