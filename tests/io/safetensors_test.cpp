/// safetensors: values by dtype, the writer's bytes, and files of the reference writer.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "hostile_safetensors.h"
#include "support/fixtures.h"
#include "temporary_folder.h"

namespace {

using ferrite::Dtype;
using ferrite::IoError;
using ferrite::Tensor;
using hostile::file_of;
using io_test::TemporaryFolder;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace tt = boost::test_tools;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns a file of one tensor "x" of n elements, stored one byte off any alignment.
std::string packed(const std::string& dtype, const std::vector<std::uint16_t>& values) {
  std::string data(1 + 2 * values.size(), '\0');
  std::memcpy(data.data() + 1, values.data(), 2 * values.size());
  const std::string n = std::to_string(values.size());
  return file_of("{" + hostile::byte_at("pad", "[0,1]") + ",\"x\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + n +
                     "],\"data_offsets\":[1," + std::to_string(data.size()) + "]}}",
                 data);
}

std::vector<std::uint16_t> all_of_16_bits() {
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  return all;
}

/// Returns the value of an IEEE binary16 by its definition.
double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

Tensor strided() { return ferrite::transpose(Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2})); }

fs::path fixtures() { return support::fixture_path("safetensors"); }

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors)

BOOST_AUTO_TEST_CASE(every_f16_value_loads_exactly) {
  const std::string file = packed("F16", all_of_16_bits());
  const Tensor x = io::parse_safetensors(as_bytes(file)).tensor("x");
  BOOST_TEST(x.spec().str() == "f32[65536]");
  const std::span<const float> values = x.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = half(static_cast<std::uint16_t>(i));
    const bool same = std::isnan(wanted) ? std::isnan(values[i])
                                         : values[i] == wanted && std::signbit(values[i]) == std::signbit(wanted);
    BOOST_REQUIRE_MESSAGE(same, "F16 " << i << " became " << values[i] << ", not " << wanted);
  }
}

BOOST_AUTO_TEST_CASE(every_bf16_value_loads_exactly) {
  const std::string file = packed("BF16", all_of_16_bits());
  const Tensor x = io::parse_safetensors(as_bytes(file)).tensor("x");
  const std::span<const float> values = x.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) BOOST_REQUIRE(std::bit_cast<std::uint32_t>(values[i]) == i << 16);
}

BOOST_AUTO_TEST_CASE(u8_widens_to_i32) {
  const std::string file = file_of(R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", {"\0\x7f\xff", 3});
  const Tensor x = io::parse_safetensors(as_bytes(file)).tensor("x");
  BOOST_TEST(x.to_vector<std::int32_t>() == (std::vector<std::int32_t>{0, 127, 255}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(i8_and_i16_widen_to_i32) {
  const std::string i8 = file_of(R"({"x":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}})", {"\x80\x7f\xff", 3});
  const std::string i16 = file_of(R"({"x":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})", {"\x00\x80\xff\x7f", 4});
  const Tensor a = io::parse_safetensors(as_bytes(i8)).tensor("x");
  const Tensor b = io::parse_safetensors(as_bytes(i16)).tensor("x");
  BOOST_TEST(a.to_vector<std::int32_t>() == (std::vector<std::int32_t>{-128, 127, -1}), tt::per_element());
  BOOST_TEST(b.to_vector<std::int32_t>() == (std::vector<std::int32_t>{-32768, 32767}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(unaligned_f64_is_copied) {
  std::string data(9, 'x');
  const double value = -1.5e-300;
  std::memcpy(data.data() + 1, &value, 8);
  const std::string file =
      file_of("{" + hostile::byte_at("b", "[0,1]") + R"(,"a":{"dtype":"F64","shape":[],"data_offsets":[1,9]}})", data);
  BOOST_TEST(io::parse_safetensors(as_bytes(file)).tensor("a").item<double>() == value);
}

BOOST_AUTO_TEST_CASE(tensors_outlive_the_file) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  io::write_safetensors(path, std::vector<io::NamedTensor>{{"x", Tensor::from({1.0f, 2.0f})}});
  const Tensor x = io::read_safetensors(path).tensor("x");
  BOOST_TEST(x.to_vector<float>() == (std::vector<float>{1, 2}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(names_info_and_metadata) {
  const std::string file = file_of(R"({"__metadata__":{"b":"2","a":"\u00e9"},)"
                                   R"("late":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[8,10]},)"
                                   R"("early":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})",
                                   std::string(10, '\0'));
  const io::TensorFile read = io::parse_safetensors(as_bytes(file), "m.safetensors");
  BOOST_TEST(read.names() == (std::vector<std::string_view>{"early", "late"}), tt::per_element());
  BOOST_TEST(read.contains("late"));
  BOOST_TEST(!read.contains("lat"));
  BOOST_TEST(read.info("early").dtype == "BF16");
  BOOST_TEST((read.info("early").loads_as == Dtype::f32));
  BOOST_TEST(read.info("early").shape == (std::vector<std::int64_t>{2, 2}), tt::per_element());
  BOOST_TEST(read.info("late").bytes == 2u);
  BOOST_TEST(!read.info("late").loads_as.has_value());
  BOOST_TEST((read.metadata() == io::Metadata{{"a", "\xc3\xa9"}, {"b", "2"}}));
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_an_error_with_advice) {
  const std::string file = file_of("{" + hostile::byte_at("weight", "[0,1]") + "}", "x");
  const io::TensorFile read = io::parse_safetensors(as_bytes(file), "m.safetensors");
  const auto says = [](const std::string& text) {
    return [text](const IoError& error) { return error.what() == text; };
  };
  BOOST_CHECK_EXCEPTION(read.tensor("wieght"), IoError,
                        says("m.safetensors: no tensor of this name: 'wieght'; did you mean 'weight'?"));
  BOOST_CHECK_EXCEPTION(read.info("q"), IoError,
                        says("m.safetensors: no tensor of this name: 'q'; there are 'weight'"));
}

/// The header is what safetensors 0.8.0 (Python, numpy.save) wrote for tensors of zeros of these names, dtypes and
/// shapes.
BOOST_AUTO_TEST_CASE(the_writer_orders_and_escapes_as_the_reference) {
  const std::string odd = "q\"\\\n\x01\x7f/\xc3\xa9\xe2\x80\xa8";
  const std::vector<io::NamedTensor> tensors = {
      {"bo", ferrite::zeros({3}, Dtype::boolean)},
      {"i32", ferrite::zeros({3}, Dtype::i32)},
      {odd, ferrite::zeros({1})},
      {"f", ferrite::zeros({2, 2})},
      {"e", ferrite::zeros({0, 3})},
      {"a_f", ferrite::zeros({})},
      {"b64", ferrite::zeros({2}, Dtype::f64)},
      {"i64", ferrite::zeros({1}, Dtype::i64)},
  };
  const std::string header =
      R"({"i64":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"b64":{"dtype":"F64","shape":[2],"data_offsets":[8,24]},)"
      R"("a_f":{"dtype":"F32","shape":[],"data_offsets":[24,28]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[28,28]},)"
      R"("f":{"dtype":"F32","shape":[2,2],"data_offsets":[28,44]},)"
      "\"q\\\"\\\\\\n\\u0001\x7f/\xc3\xa9\xe2\x80\xa8\""
      R"(:{"dtype":"F32","shape":[1],"data_offsets":[44,48]},)"
      R"("i32":{"dtype":"I32","shape":[3],"data_offsets":[48,60]},"bo":{"dtype":"BOOL","shape":[3],"data_offsets":[60,63]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  BOOST_TEST(text_of(io::serialize_safetensors(tensors)) == file_of(padded, std::string(63, '\0')));
}

BOOST_AUTO_TEST_CASE(the_writer_puts_metadata_first) {
  const std::vector<io::NamedTensor> tensors = {{"x", ferrite::zeros({1})}};
  const std::string wanted = R"({"__metadata__":{"k":"v"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string text = text_of(io::serialize_safetensors(tensors, {{"k", "v"}}));
  BOOST_TEST(text.substr(8, wanted.size()) == wanted);
  BOOST_TEST(text.size() == 8 + (wanted.size() + 7) / 8 * 8 + 4);
}

BOOST_AUTO_TEST_CASE(nothing_makes_the_smallest_file) {
  BOOST_TEST(text_of(io::serialize_safetensors({})) == file_of("{}      "));
}

BOOST_AUTO_TEST_CASE(strided_tensors_are_written_row_major) {
  const std::vector<std::byte> bytes = io::serialize_safetensors(std::vector<io::NamedTensor>{{"x", strided()}});
  const Tensor x = io::parse_safetensors(bytes).tensor("x");
  BOOST_TEST(x.shape().str() == "[2, 3]");
  BOOST_TEST(x.to_vector<float>() == (std::vector<float>{1, 3, 5, 2, 4, 6}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_back_to_the_bit) {
  const float nan = std::bit_cast<float>(0x7fc12345u);
  const std::vector<io::NamedTensor> tensors = {
      {"f32", Tensor::from({nan, -0.0f, 1e-45f, 3.4e38f}, {2, 2})},
      {"f64", Tensor::from({0.1, -1e300})},
      {"i32", Tensor::from({std::numeric_limits<std::int32_t>::min(), 7})},
      {"i64", Tensor::from({std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 60})},
      {"bool", Tensor::from({true, false, true})},
      {"empty", ferrite::zeros({2, 0})},
  };
  const std::vector<std::byte> bytes = io::serialize_safetensors(tensors, {{"a", "1"}, {"b", "\n\"\xc3\xa9"}});
  const io::TensorFile file = io::parse_safetensors(bytes);
  std::vector<io::NamedTensor> back;
  for (const std::string_view name : file.names()) back.push_back({std::string(name), file.tensor(name)});
  BOOST_TEST(back.size() == tensors.size());
  BOOST_TEST((io::serialize_safetensors(back, file.metadata()) == bytes));
}

BOOST_AUTO_TEST_CASE(the_writer_refuses_what_no_reader_would_take) {
  const Tensor x = ferrite::zeros({1});
  const auto write = [](std::vector<io::NamedTensor> tensors, io::Metadata metadata = {}) {
    return io::serialize_safetensors(tensors, metadata);
  };
  BOOST_CHECK_THROW(write({{"a", x}, {"a", x}}), IoError);
  BOOST_CHECK_THROW(write({{"__metadata__", x}}), IoError);
  BOOST_CHECK_THROW(write({{std::string("a\0b", 3), x}}), IoError);
  BOOST_CHECK_THROW(write({{"\xff", x}}), IoError);
  BOOST_CHECK_THROW(write({{"a", Tensor()}}), IoError);
  BOOST_CHECK_THROW(write({{"a", x}}, {{"\xff", ""}}), IoError);
  BOOST_CHECK_THROW(write({{"a", x}}, {{"k", "\xff"}}), IoError);
}

/// The reference wrote these files (tests/data/safetensors, and the script next to them). All can be read; those of our
/// dtypes, with at most one key of metadata (the reference has no order), are written again byte for byte.
BOOST_AUTO_TEST_CASE(files_of_the_reference_writer) {
  const std::vector<std::string_view> ours = {"F32", "F64", "I32", "I64", "BOOL", "F16", "BF16", "I8"};
  int compared = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fixtures())) {
    if (entry.path().extension() != ".safetensors") continue;
    BOOST_TEST_CONTEXT(entry.path().filename().string()) {
      const io::TensorFile file = io::read_safetensors(entry.path());
      std::vector<io::NamedTensor> tensors;
      bool same_dtypes = true;
      for (const std::string_view name : file.names()) {
        same_dtypes = same_dtypes && std::ranges::find(ours, file.info(name).dtype) != ours.end();
        if (file.info(name).loads_as)
          tensors.push_back({std::string(name), file.tensor(name, io::Elements::as_stored)});
      }
      if (!same_dtypes || file.metadata().size() > 1) continue;
      const std::string original = content(entry.path());
      const bool empty_metadata = file.metadata().empty() && original.find("\"__metadata__\"") != std::string::npos;
      if (empty_metadata) continue;
      BOOST_TEST((text_of(io::serialize_safetensors(tensors, file.metadata())) == original));
      ++compared;
    }
  }
  BOOST_TEST(compared > 0);
}

BOOST_AUTO_TEST_SUITE_END()
