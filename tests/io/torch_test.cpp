/// PyTorch files: reading what torch.save wrote, value for value, and writing.
#include "ferrite/io/torch.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/tensor/ops.h"
#include "same_files.h"
#include "support/fixtures.h"
#include "temporary_folder.h"
#include "torch_builder.h"

namespace {

using ferrite::Dtype;
using ferrite::IoError;
using ferrite::Tensor;
using io_test::check_same;
using io_test::TemporaryFolder;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace tt = boost::test_tools;

fs::path fixtures() { return support::fixture_path("torch"); }

io::TensorFile wanted(const std::string& name) { return io::read_safetensors(fixtures() / (name + ".safetensors")); }
io::TensorFile read(const std::string& name, std::string_view key = "") {
  return io::read_torch(fixtures() / (name + ".pt"), key);
}

auto says(const std::string& part) {
  return [part](const IoError& error) {
    BOOST_TEST_INFO("the error says: " << error.what());
    BOOST_TEST(std::string(error.what()).find(part) != std::string::npos);
    return true;
  };
}

std::vector<io::NamedTensor> tensors_of(const io::TensorFile& file) {
  std::vector<io::NamedTensor> tensors;
  for (const std::string_view name : file.names()) tensors.push_back({std::string(name), file.tensor(name)});
  return tensors;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(torch)

BOOST_AUTO_TEST_CASE(every_fixture_reads_value_for_value) {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".safetensors" || name == "unsupported" || name == "beside") continue;
    BOOST_TEST_CONTEXT(name) { check_same(read(name), wanted(name)); }
    ++seen;
  }
  BOOST_TEST(seen == 23);
}

BOOST_AUTO_TEST_CASE(names_are_in_the_order_of_the_file) {
  const io::TensorFile file = read("many");
  BOOST_TEST(file.size() == 1500u);
  for (std::size_t i = 0; i < file.size(); ++i) {
    const std::string name = "layer." + std::to_string(i) + ".weight";
    BOOST_REQUIRE_EQUAL(file.names()[i], name);
    if (i % 50 == 0) BOOST_TEST(file.tensor(name).item() == static_cast<float>(i));
  }
}

BOOST_AUTO_TEST_CASE(a_key_names_a_part) {
  const io::TensorFile whole = read("checkpoint");
  const io::TensorFile model = read("checkpoint", "model");
  BOOST_TEST(model.size() == 18u);
  for (const std::string_view name : model.names())
    check_same(model.tensor(name), whole.tensor("model." + std::string(name)), name);

  const io::TensorFile state = read("checkpoint_4", "optimizer.state.0");
  BOOST_TEST(state.size() == 3u);
  BOOST_TEST(state.contains("exp_avg"));
  const io::TensorFile one = read("checkpoint", "model.0.weight_ih_l0");
  BOOST_TEST(one.size() == 1u);
  check_same(one.tensor("tensor"), model.tensor("0.weight_ih_l0"), "one tensor");
  check_same(read("list", "1.1").tensor("x"), Tensor::from({1.0f, 1.0f, 1.0f}), "in a list");
}

BOOST_AUTO_TEST_CASE(a_module_loads_it) {
  const ferrite::nn::Linear from_torch(8, 2);
  const ferrite::nn::Linear from_safetensors(8, 2);
  const io::LoadOptions options{.prefix = "1.", .convert = false};
  io::load(from_torch, read("legacy"), options);
  io::load(from_safetensors, wanted("legacy"), options);
  check_same(from_torch.weight.peek(), from_safetensors.weight.peek(), "weight");
  check_same(from_torch.bias.peek(), from_safetensors.bias.peek(), "bias");
}

BOOST_AUTO_TEST_CASE(a_key_that_names_nothing) {
  BOOST_CHECK_EXCEPTION(read("checkpoint", "modle"), IoError,
                        says("no part of this name: 'modle'; there are 'model', "));
  BOOST_CHECK_EXCEPTION(read("checkpoint", "model.1"), IoError, says("no part of this name: 'model.1'; there are '0."));
  BOOST_CHECK_EXCEPTION(read("checkpoint", "epoch"), IoError, says("holds no tensors: it is an integer"));
  BOOST_CHECK_EXCEPTION(read("bare", "x"), IoError, says("no part of this name: 'x'"));
}

/// A Namespace, paths, arrays, objects and a whole module next to the weights: values that are not read are skipped.
BOOST_AUTO_TEST_CASE(weights_beside_what_only_python_can_build) {
  for (const std::string name : {"beside", "beside_4"}) BOOST_TEST_CONTEXT(name) {
      for (const std::string part : {"model", "ema"}) {
        const io::TensorFile file = read(name, part), expected = wanted("beside");
        BOOST_TEST(file.size() == (part == "model" ? 2U : 1U));
        for (const std::string_view n : file.names())
          check_same(file.tensor(n), expected.tensor(part + "." + std::string(n)), n);
      }
      const auto refuses = [&](const std::string& key, const std::string& message) {
        BOOST_CHECK_EXCEPTION(read(name, key), IoError, says(message));
      };
      refuses("", "'args': the file names something that is not read: 'argparse.Namespace' at byte");
      refuses("", "; or name the part that you want by its key");
      refuses("args", "'argparse.Namespace' at byte");
      refuses("args.lr", "'argparse.Namespace' at byte");
      refuses("array", "turn NumPy arrays and numbers into tensors");
      refuses("net", "is this a whole pickled module? save model.state_dict() instead");
      refuses("sparse", "save x.to_dense()");
      for (const std::string key : {"path", "object", "pairs", "deque", "date", "fraction", "function"})
        refuses(key, "the file names something that is not read: '");
    }
}

/// Enums and scalars are read as x.value and x.item().
BOOST_AUTO_TEST_CASE(enums_and_numpy_scalars_are_values) {
  const io::Metadata expected = wanted("beside").metadata();
  BOOST_TEST(expected.size() == 22U);
  for (const std::string name : {"beside", "beside_4"}) {
    const io::Metadata found = read(name, "values").metadata();
    for (const auto& [key, value] : expected) BOOST_TEST_CONTEXT(name << " " << key) {
        BOOST_REQUIRE(found.contains(key));
        BOOST_TEST(found.at(key) == value);
      }
    BOOST_TEST(found.size() == expected.size());
  }
}

BOOST_AUTO_TEST_CASE(complex_tensors_are_real_ones_with_two_parts) {
  const io::TensorFile file = read("complex"), real = wanted("complex");
  BOOST_TEST(file.info("transposed").dtype == "float32");
  BOOST_CHECK(file.tensor("double").dtype() == Dtype::f64);
  for (const char* name : {"plain", "transposed", "scalar", "double", "empty"})
    check_same(file.tensor(name), real.tensor(name), name);
}

BOOST_AUTO_TEST_CASE(other_dtypes_are_listed_but_not_read) {
  const io::TensorFile file = read("unsupported");
  check_same(file.tensor("a"), wanted("unsupported").tensor("a"), "a");
  BOOST_TEST(!file.info("f8").loads_as.has_value());
  BOOST_TEST(file.tensor("u16").to_vector<std::int32_t>() == (std::vector<std::int32_t>{1, 1}));
  BOOST_CHECK_EXCEPTION(file.tensor("f8"), IoError, says("unsupported dtype: float8_e4m3fn"));
}

BOOST_AUTO_TEST_CASE(what_we_write_we_read) {
  for (const char* name : {"protocol_2", "dtypes", "views", "shapes", "names", "tied", "empty"}) {
    const std::vector<io::NamedTensor> tensors = tensors_of(read(name));
    const std::vector<std::byte> bytes = io::serialize_torch(tensors);
    const io::TensorFile again = io::parse_torch(bytes);
    BOOST_TEST_CONTEXT(name) {
      check_same(again, io::parse_safetensors(io::serialize_safetensors(tensors)));
      BOOST_TEST((io::serialize_torch(tensors_of(again)).size() > 0));
      BOOST_TEST((io::serialize_torch(tensors) == bytes));
    }
  }
}

BOOST_AUTO_TEST_CASE(big_endian_values) {
  using namespace torch_builder;
  const std::string storage("\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\x40\x80\0\0", 16);
  const std::string file =
      zip({{"a/data.pkl", named(good_tensor())}, {"a/byteorder", "big"}, {"a/data/0", storage}, {"a/version", "3\n"}});
  const io::TensorFile read = io::parse_torch(std::as_bytes(std::span(file)));
  check_same(read.tensor("a"), Tensor::from({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2}), "a");
}

/// Returns 0, 1, 2, 3 as f32.
std::string counting_storage() {
  const std::array<float, 4> values = {0, 1, 2, 3};
  return {reinterpret_cast<const char*>(values.data()), sizeof(values)};
}

BOOST_AUTO_TEST_CASE(views_of_storages_in_the_older_form) {
  using namespace torch_builder;
  TensorParts parts;
  parts.numel = integer(4) + tuple(text("7") + integer(1) + integer(3));
  parts.offset = integer(1);
  parts.size = tuple(integer(2));
  parts.stride = tuple(integer(1));
  const std::string keys = pickle("]" + text("0") + "a");
  const std::string file = legacy(named(parts.str()), keys, little_endian(4, 8) + counting_storage());
  check_same(io::parse_torch(std::as_bytes(std::span(file))).tensor("a"), Tensor::from({2.0f, 3.0f}), "a");
}

BOOST_AUTO_TEST_CASE(a_damaged_storage_is_refused) {
  using namespace torch_builder;
  std::string file = checkpoint(named(good_tensor()), counting_storage());
  const std::size_t at = file.find(counting_storage());
  BOOST_REQUIRE(at != std::string::npos);
  file[at + 5] ^= 1;
  BOOST_CHECK_EXCEPTION(io::parse_torch(std::as_bytes(std::span(file))), IoError,
                        says("the contents are damaged: CRC"));
}

BOOST_AUTO_TEST_CASE(memoize_counts_entries_and_not_puts) {
  using namespace torch_builder;
  const std::string put_twice(
      "Nq\0"
      "0"
      "]q\0"
      "0",
      8);
  const std::string file = checkpoint(pickle(put_twice + "}\x94" + text("a") + good_tensor() + "s0h\1"));
  BOOST_TEST(io::parse_torch(std::as_bytes(std::span(file))).contains("a"));
}

BOOST_AUTO_TEST_CASE(the_longest_name_counts_in_a_key) {
  using namespace torch_builder;
  TensorParts one;
  one.size = tuple(integer(1));
  one.stride = tuple(integer(1));
  const std::string inner = "}" + text("b") + good_tensor() + "s";
  const std::string data_pkl = pickle("}(" + text("a.b") + one.str() + text("a") + inner + "u");
  const std::string file = checkpoint(data_pkl);
  BOOST_TEST(io::parse_torch(std::as_bytes(std::span(file)), "a.b").tensor("tensor").numel() == 1);
  BOOST_TEST(io::parse_torch(std::as_bytes(std::span(file)), "a").tensor("b").numel() == 4);
}

BOOST_AUTO_TEST_CASE(shared_memory_is_written_once) {
  const Tensor big = Tensor::from(std::vector<float>(10'000, 1.5f), {100, 100});
  const std::vector<io::NamedTensor> tied = {{"a", big}, {"b", big}, {"c", ferrite::transpose(big)}};
  const std::vector<std::byte> bytes = io::serialize_torch(tied);
  BOOST_TEST(bytes.size() < 42'000u);
  check_same(io::parse_torch(bytes).tensor("c"), ferrite::contiguous(big), "c");
}

BOOST_AUTO_TEST_CASE(a_small_view_does_not_drag_its_storage_along) {
  const Tensor big = Tensor::from(std::vector<float>(10'000, 1.5f), {100, 100});
  const Tensor column = ferrite::transpose(big).view({100}, {100}, 0);
  const std::vector<std::byte> bytes = io::serialize_torch(std::vector<io::NamedTensor>{{"a", column}});
  BOOST_TEST(bytes.size() < 3'000u);
  BOOST_TEST(io::parse_torch(bytes).tensor("a").numel() == 100);
}

BOOST_AUTO_TEST_CASE(many_storages) {
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < 1500; ++i)
    tensors.push_back({"layer." + std::to_string(i), Tensor::from({static_cast<float>(i), 1.0f})});
  const std::vector<std::byte> bytes = io::serialize_torch(tensors);
  const io::TensorFile file = io::parse_torch(bytes);
  BOOST_TEST(file.size() == 1500u);
  check_same(file.tensor("layer.1234"), tensors[1234].tensor, "1234");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written) {
  const Tensor one = Tensor::from({1.0f});
  const auto write = [](std::vector<io::NamedTensor> tensors) { return io::serialize_torch(tensors); };
  BOOST_CHECK_EXCEPTION(write({{"a", one}, {"a", one}}), IoError, says("a name occurs twice: 'a'"));
  BOOST_CHECK_EXCEPTION(write({{std::string("a\0b", 3), one}}), IoError, says("a name holds a NUL"));
  BOOST_CHECK_EXCEPTION(write({{"\xff", one}}), IoError, says("a name is not UTF-8"));
  BOOST_CHECK_EXCEPTION(write({{"a", Tensor()}}), IoError, says("'a' has no values"));
}

BOOST_AUTO_TEST_CASE(a_file_on_the_disk) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2});
  io::write_torch(folder / "model.pt", std::vector<io::NamedTensor>{{"x", ferrite::transpose(x)}});
  BOOST_TEST(folder.leftovers() == 0);
  const io::TensorFile file = io::read_torch(folder / "model.pt");
  BOOST_TEST(file.where() == (folder / "model.pt").string());
  check_same(file.tensor("x"), ferrite::contiguous(ferrite::transpose(x)), "x");
  BOOST_CHECK_EXCEPTION(io::read_torch(folder / "none.pt"), IoError, says("none.pt: cannot open the file"));
  std::ofstream(folder / "empty.pt");
  std::ofstream(folder / "text.pt") << "hello";
  BOOST_CHECK_EXCEPTION(io::read_torch(folder / "empty.pt"), IoError, says("not a file of torch.save: it is empty"));
  BOOST_CHECK_EXCEPTION(io::read_torch(folder / "text.pt"), IoError, says("it begins with 68 65 6c 6c 6f"));
  BOOST_CHECK_EXCEPTION(io::read_torch(folder.path()), IoError, says("not a regular file: it is a folder"));
}

BOOST_AUTO_TEST_SUITE_END()
