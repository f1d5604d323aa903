/// npy and npz: files of NumPy (tests/data/numpy, and the script next to it), the writer's bytes, round trips.
#include "ferrite/io/numpy.h"

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "counting.h"
#include "ferrite/io/any_file.h"
#include "ferrite/tensor/ops.h"
#include "hostile_numpy.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/sanitized.h"
#include "temporary_folder.h"

namespace {

using ferrite::Dtype;
using ferrite::IoError;
using ferrite::Tensor;
using io_test::TemporaryFolder;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace tt = boost::test_tools;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

fs::path fixtures() { return support::fixture_path("numpy"); }

/// Returns element i of every fixture in C order, by the formula of make_numpy_fixtures.py; u1 counts from 0.
template <class T>
std::vector<T> expected(std::int64_t n, bool is_unsigned) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, bool>)
      values.push_back(i % 3 == 0);
    else if constexpr (std::is_floating_point_v<T>)
      values.push_back(static_cast<T>(i) / 2 - 3);
    else
      values.push_back(static_cast<T>(is_unsigned ? i : i - 5));
  }
  return values;
}

template <class T>
void check_elements(const Tensor& tensor, bool is_unsigned) {
  BOOST_TEST(tensor.to_vector<T>() == expected<T>(tensor.numel(), is_unsigned), tt::per_element());
}

void check_values(const Tensor& tensor, const std::string& spec, bool is_unsigned = false) {
  BOOST_TEST(tensor.spec().str() == spec);
  visit_computed(tensor.dtype(), [&](auto zero) { check_elements<decltype(zero)>(tensor, is_unsigned); });
}

auto says(const std::string& text) {
  return [text](const IoError& error) {
    BOOST_TEST_INFO("the error says: " << error.what());
    return std::string(error.what()).find(text) != std::string::npos;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numpy)

BOOST_AUTO_TEST_CASE(arrays_of_numpy) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"u2", "i32[2, 3]"},
      {"big_u2", "i32[2, 3]"},
      {"u4", "i64[2, 3]"},
      {"big_u4", "i64[2, 3]"},
      {"u8", "i64[2, 3]"},
      {"big_u8", "i64[2, 3]"},
      {"c8", "f32[2, 3, 2]"},
      {"big_c8", "f32[2, 3, 2]"},
      {"c16", "f64[2, 3, 2]"},
      {"fortran_c8", "f32[2, 3, 4, 2]"},
      {"complex_scalar", "f32[2]"},
      {"fortran_big_c16", "f64[3, 2, 2]"},
      {"complex_empty", "f32[2, 0, 2]"},
      {"same_f4", "f32[2, 3]"},
      {"same_f8", "f64[2, 3]"},
      {"same_i4", "i32[2, 3]"},
      {"same_i8", "i64[2, 3]"},
      {"same_b1", "bool[2, 3]"},
      {"same_scalar", "f32[]"},
      {"same_one_axis", "f32[5]"},
      {"same_empty", "f32[0, 3]"},
      {"f2", "f32[2, 3]"},
      {"same_eight_axes", "f64[1, 2, 1, 3, 1, 1, 2, 1]"},
      {"u1", "i32[2, 3]"},
      {"fortran_f4", "f32[2, 3, 4]"},
      {"fortran_b1", "bool[3, 5]"},
      {"fortran_empty", "f32[3, 0, 2]"},
      {"big_f2", "f32[2, 3]"},
      {"big_f4", "f32[2, 3]"},
      {"big_f8", "f64[2, 3]"},
      {"big_i4", "i32[2, 3]"},
      {"big_i8", "i64[2, 3]"},
      {"fortran_big_i4", "i32[2, 3]"},
      {"version_1", "f32[2, 3]"},
      {"version_2", "f32[2, 3]"},
      {"version_3", "f32[2, 3]"},
      {"same_long_header", "f32[0, 1000, 1000, 1000, 1000, 1000, 1, 1]"},
  };
  for (const auto& [name, spec] : files) BOOST_TEST_CONTEXT(name) {
      check_values(io::read_npy(fixtures() / (name + ".npy")), spec, name.find('u') == 0 || name.starts_with("big_u"));
    }
}

/// NumPy's arrays may hold numbers beyond those of i32, and of i64.
BOOST_AUTO_TEST_CASE(large_unsigned_numbers) {
  const auto read = [](const std::string& dtype, const std::string& bytes) {
    return io::parse_npy(as_bytes(numpy_test::npy(numpy_test::dict("'" + dtype + "'", "(1,)"), bytes)));
  };
  BOOST_TEST(read("<u2", "\xff\xff").item<std::int32_t>() == 65535);
  BOOST_TEST(read("<u4", "\xff\xff\xff\xff").item<std::int64_t>() == 4294967295);
  BOOST_TEST(read(">u8", "\x7f\xff\xff\xff\xff\xff\xff\xff").item<std::int64_t>() ==
             std::numeric_limits<std::int64_t>::max());
  BOOST_CHECK_EXCEPTION(read(">u8", std::string("\x80\0\0\0\0\0\0\0", 8)), IoError,
                        says("npy: an unsigned integer is above 2^63 - 1, the largest i64: 9223372036854775808"));
}

/// An archive reports complex numbers as what it returns: real ones with an axis of parts.
BOOST_AUTO_TEST_CASE(complex_members) {
  const std::string bytes = zip_test::archive_of({zip_test::stored("z.npy", numpy_test::array("'<c8'", "(3,)", 24))});
  const io::TensorFile file = io::parse_npz(as_bytes(bytes));
  BOOST_TEST(file.info("z").dtype == "<c8");
  BOOST_TEST((file.info("z").loads_as == Dtype::f32));
  BOOST_TEST(file.info("z").shape == (std::vector<std::int64_t>{3, 2}), tt::per_element());
  BOOST_TEST(file.tensor("z").spec().str() == "f32[3, 2]");
}

BOOST_AUTO_TEST_CASE(arrays_that_are_refused) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"c32", "'<c32'"}, {"objects", "'|O'"}, {"text", "'<U3'"}, {"times", "'<M8[s]'"}};
  for (const auto& [name, dtype] : files)
    BOOST_CHECK_EXCEPTION(
        io::read_npy(fixtures() / ("refused_" + name + ".npy")), IoError,
        says(".npy: unsupported dtype: " + dtype + "; supported are f4, f8, f2, c8, c16, i8, i4, i2, i1, u8"));
  BOOST_CHECK_EXCEPTION(io::read_npy(fixtures() / "refused_fields.npy"), IoError,
                        says(".npy: the dtype is structured: '[('x', '<f4'), ('y', '<i4')]"));
}

/// For the files same_* we write, for the tensor that we read, the bytes that NumPy wrote.
BOOST_AUTO_TEST_CASE(the_writer_gives_numpys_bytes) {
  int compared = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fixtures())) {
    if (!entry.path().filename().string().starts_with("same_")) continue;
    BOOST_TEST_CONTEXT(entry.path().filename().string())
    BOOST_TEST((text_of(io::serialize_npy(io::read_npy(entry.path()))) == content(entry.path())));
    ++compared;
  }
  BOOST_TEST(compared == 10);
}

BOOST_AUTO_TEST_CASE(archives_of_numpy) {
  for (const std::string kind : {"stored", "deflated", "streamed"}) BOOST_TEST_CONTEXT(kind) {
      const io::TensorFile file = io::read_npz(fixtures() / (kind + ".npz"));
      BOOST_TEST(file.names() == (std::vector<std::string_view>{"x", "y",
                                                                "stra\xc3\x9f"
                                                                "e",
                                                                "folder/name"}),
                 tt::per_element());
      check_values(file.tensor("x"), "f32[2, 3]");
      check_values(file.tensor("y"), "bool[4]");
      check_values(file.tensor("stra\xc3\x9f"
                               "e"),
                   "i64[]");
      check_values(file.tensor("folder/name"), "f64[3, 2]");
      BOOST_TEST(file.info("folder/name").dtype == ">f8");
      BOOST_TEST((file.info("folder/name").loads_as == Dtype::f64));
      BOOST_TEST(file.info("folder/name").shape == (std::vector<std::int64_t>{3, 2}), tt::per_element());
      BOOST_TEST(file.info("folder/name").bytes == 48u);
      BOOST_TEST(file.metadata().empty());
    }
  BOOST_TEST(io::read_npz(fixtures() / "empty.npz").size() == 0u);
  BOOST_TEST(io::read_tensors(fixtures() / "empty.npz").size() == 0u);
}

BOOST_AUTO_TEST_CASE(other_arrays_of_an_archive_can_be_had) {
  const io::TensorFile file = io::read_npz(fixtures() / "mixed.npz");
  check_values(file.tensor("x"), "f32[2, 3]");
  BOOST_TEST(!file.info("objects").loads_as.has_value());
  BOOST_TEST(file.info("text").dtype == "<U3");
  BOOST_CHECK_EXCEPTION(file.tensor("objects"), IoError, says("mixed.npz: 'objects': unsupported dtype: '|O'"));
  BOOST_CHECK_EXCEPTION(file.tensor("y"), IoError, says("mixed.npz: no tensor of this name: 'y'"));
}

BOOST_AUTO_TEST_CASE(arrays_round_trip_to_the_bit) {
  const float nan = std::bit_cast<float>(0x7fc12345u);
  const std::vector<Tensor> tensors = {
      Tensor::from({nan, -0.0f, 1e-45f, 3.4e38f}, {2, 2}),
      Tensor::from({0.1, -1e300}),
      Tensor::from({std::numeric_limits<std::int32_t>::min(), 7}),
      Tensor::from({std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 60}),
      Tensor::from({true, false, true}),
      ferrite::zeros({2, 0}),
      ferrite::zeros({}),
  };
  const TemporaryFolder folder;
  for (const Tensor& tensor : tensors) {
    const std::vector<std::byte> bytes = io::serialize_npy(tensor);
    BOOST_TEST((io::serialize_npy(io::parse_npy(bytes)) == bytes));
    io::write_npy(folder / "x.npy", tensor);
    BOOST_TEST((content(folder / "x.npy") == text_of(bytes)));
    BOOST_TEST(io::read_npy(folder / "x.npy").spec().str() == tensor.spec().str());
  }
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(strided_tensors_are_written_row_major) {
  const Tensor x = ferrite::transpose(Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2}));
  const Tensor back = io::parse_npy(io::serialize_npy(x));
  BOOST_TEST(back.spec().str() == "f32[2, 3]");
  BOOST_TEST(back.to_vector<float>() == (std::vector<float>{1, 3, 5, 2, 4, 6}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(archives_round_trip) {
  const std::vector<io::NamedTensor> tensors = {{"b", Tensor::from({1.0f, 2.0f})},
                                                {"a/\xc3\xa9", Tensor::from({true, false})},
                                                {"", ferrite::zeros({3, 0}, Dtype::i64)}};
  const TemporaryFolder folder;
  io::write_npz(folder / "x.npz", tensors);
  const std::vector<std::byte> bytes = io::serialize_npz(tensors);
  BOOST_TEST((content(folder / "x.npz") == text_of(bytes)));
  const io::TensorFile file = io::read_npz(folder / "x.npz");
  std::vector<io::NamedTensor> back;
  for (const std::string_view name : file.names()) back.push_back({std::string(name), file.tensor(name)});
  BOOST_TEST((io::serialize_npz(back) == bytes));
  BOOST_TEST((content(folder / "x.npz").find("\x93NUMPY") % 64 == 0));
  BOOST_TEST(io::parse_npz(io::serialize_npz({})).size() == 0u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_refused) {
  const TemporaryFolder folder;
  const Tensor x = ferrite::zeros({1});
  const auto write = [&](const std::vector<io::NamedTensor>& tensors) { io::write_npz(folder / "x.npz", tensors); };
  BOOST_CHECK_EXCEPTION(io::serialize_npy(Tensor()), IoError, says("serialize_npy: the tensor has no values"));
  BOOST_CHECK_EXCEPTION(write({{"a", Tensor()}}), IoError, says("x.npz: 'a': the tensor has no values"));
  BOOST_CHECK_EXCEPTION(write({{"a", x}, {"a", x}}), IoError, says("x.npz: a name occurs twice: 'a.npy'"));
  BOOST_CHECK_EXCEPTION(write({{"../a", x}}), IoError, says("x.npz: a member's name climbs out"));
  BOOST_CHECK_EXCEPTION(io::serialize_npz(std::vector<io::NamedTensor>{{"/a", x}}), IoError, says("serialize_npz: "));
  BOOST_TEST(fs::is_empty(folder.path()));
}

BOOST_AUTO_TEST_CASE(files_that_are_not_there) {
  const TemporaryFolder folder;
  BOOST_CHECK_EXCEPTION(io::read_npy(folder / "x.npy"), IoError, says("x.npy: cannot open the file"));
  BOOST_CHECK_EXCEPTION(io::read_npz(folder.path()), IoError, says("not a regular file: it is a folder"));
}

/// The limit beyond the bytes is the tensor, or for an archive a share of its directory and headers.
BOOST_AUTO_TEST_CASE(memory_is_bounded) {
  const std::string large = numpy_test::array("'>f8'", "(1000, 1000)", 8'000'000);
  Tensor tensor;
  const std::size_t one = counting::peak([&] { tensor = io::parse_npy(as_bytes(large)); });
  BOOST_TEST(one <= 8'000'000u + (1u << 20));

  std::vector<zip_test::Member> members;
  const std::string least = numpy_test::npy("{'descr':'','fortran_order':False,'shape':()}\n");
  const std::size_t count = support::unless_sanitized(20'000U, 2'000U);
  for (std::size_t i = 0; i < count; ++i) members.push_back(zip_test::packed(std::to_string(i) + ".npy", least));
  const std::string archive = zip_test::archive_of(members);
  const std::size_t many = counting::peak([&] { BOOST_TEST(io::parse_npz(as_bytes(archive)).size() == count); });
  const std::size_t headers = members.size() * (46 + 8 + least.size());
  BOOST_TEST(many <= 10 * headers);

  const std::string constant = zip_test::archive_of({zip_test::packed("a.npy", large)});
  BOOST_TEST(constant.size() < large.size() / 500);
  BOOST_TEST(support::identical(io::parse_npz(as_bytes(constant)).tensor("a"), tensor));
  const std::size_t none = counting::peak([&] {
    const io::TensorFile file = io::parse_npz(as_bytes(constant), "npz", {.most_inflated = 1 << 20});
    BOOST_CHECK_EXCEPTION(file.tensor("a"), IoError, says("'a.npy': inflates to more than is allowed"));
  });
  BOOST_TEST(none <= (1u << 20));
}

BOOST_AUTO_TEST_SUITE_END()
