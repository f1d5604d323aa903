/// Mapped safetensors files: which tensors are views of the file, which are copied, and what a mapped file costs and
/// survives.
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/io/any_file.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/system/files.h"
#include "hostile_safetensors.h"
#include "small_modules.h"
#include "support/compare.h"
#include "support/sanitized.h"
#include "temporary_folder.h"

namespace {

using namespace io_test;
using ferrite::detail::system_calls;
using support::identical;
namespace fs = std::filesystem;

constexpr io::ReadOptions kMap{.map = true};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::size_t page() { return ferrite::detail::page_bytes(); }

/// Returns the bytes of this process that are in memory.
std::size_t resident() {
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, pages = 0;
  in >> all >> pages;
  BOOST_REQUIRE(in);
  return pages * page();
}

/// Returns the entry of an F32 tensor in a header.
std::string entry(const std::string& name, std::uint64_t n, std::uint64_t begin) {
  return "\"" + name + R"(":{"dtype":"F32","shape":[)" + std::to_string(n) + R"(],"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(begin + 4 * n) + "]}";
}

/// Returns a file of F32 tensors "x" and "y" of nx and ny elements, counted from 1, whose data begin at byte `data_at`.
std::string two(std::size_t nx, std::size_t ny, std::size_t data_at) {
  std::string header = "{" + entry("x", nx, 0) + "," + entry("y", ny, 4 * nx) + "}";
  BOOST_REQUIRE(header.size() + 8 <= data_at);
  header.resize(data_at - 8, ' ');
  std::vector<float> values(nx + ny);
  std::iota(values.begin(), values.end(), 1.0F);
  std::string data(4 * values.size(), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return hostile::file_of(header, data);
}

/// Returns whether two readings of a file return the same memory for a tensor, without a copy.
bool on_the_file(const io::TensorFile& file, std::string_view name, io::Elements elements) {
  const Tensor a = file.tensor(name, elements), b = file.tensor(name, elements);
  return a.raw() == b.raw();
}

boost::test_tools::assertion_result has_statm(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(fs::exists("/proc/self/statm"));
  result.message() << "this system does not tell the memory of a process";
  return result;
}

void* refusing_map(std::size_t, int) {
  errno = ENODEV;
  return nullptr;
}

const ferrite::detail::SystemCalls real = system_calls();

fs::path growing;
void* unused_map(std::size_t, int) { throw std::logic_error("mapped"); }
std::ptrdiff_t growing_read(int fd, void* bytes, std::size_t n) {
  std::ofstream(growing, std::ios::app) << "x";
  return real.read(fd, bytes, n);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mapped)

BOOST_AUTO_TEST_CASE(tensors_in_their_own_dtype_stand_on_the_file) {
  const TemporaryFolder folder;
  const fs::path path = folder / "all.safetensors";
  std::vector<io::NamedTensor> tensors;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::bf16, Dtype::f16, Dtype::i8})
    tensors.push_back({std::string(name_of(dtype)), counting({3, 8}, 1, dtype)});
  tensors.push_back({"bool", ferrite::ones({70}, Dtype::boolean)});
  tensors.push_back({"none", ferrite::zeros({0, 3})});
  tensors.push_back({"one", Tensor::from({5.0F}, {})});
  io::write_safetensors(path, tensors);
  const io::TensorFile file = io::read_safetensors(path, kMap), whole = io::read_safetensors(path);
  BOOST_TEST(file.names() == whole.names(), boost::test_tools::per_element());
  for (const io::NamedTensor& t : tensors) {
    for (const io::Elements elements : {io::Elements::for_computing, io::Elements::as_stored})
      BOOST_TEST(identical(file.tensor(t.name, elements), whole.tensor(t.name, elements)), t.name);
    const bool copied = t.tensor.dtype() == Dtype::boolean || t.tensor.numel() == 0;
    BOOST_TEST(on_the_file(file, t.name, io::Elements::as_stored) == !copied, t.name);
    BOOST_TEST(!on_the_file(whole, t.name, io::Elements::as_stored), t.name);
  }
  BOOST_TEST(!on_the_file(file, "bf16", io::Elements::for_computing));
  BOOST_TEST(identical(io::read_tensors(path, kMap).tensor("f32"), whole.tensor("f32")));
  BOOST_TEST(on_the_file(io::read_tensors(path, kMap), "f32", io::Elements::as_stored));
}

// Files of other writers may have data anywhere: after an odd header, or after other bytes.
BOOST_AUTO_TEST_CASE(unaligned_tensors_are_copied) {
  const TemporaryFolder folder;
  for (std::size_t at = 160; at < 168; ++at) {
    const fs::path path = folder / (std::to_string(at) + ".safetensors");
    put(path, two(5, 7, at));
    const io::TensorFile file = io::read_safetensors(path, kMap);
    BOOST_TEST(on_the_file(file, "x", io::Elements::as_stored) == (at % 4 == 0), at);
    BOOST_TEST(identical(file.tensor("x"), counting({5}, 1)));
    BOOST_TEST(identical(file.tensor("y") * 2, counting({7}, 6) * 2));
  }
}

// After the file's end its last page has zeros, and after the page there may be nothing.
BOOST_AUTO_TEST_CASE(a_tensor_at_the_end_of_the_last_page_is_copied) {
  const TemporaryFolder folder;
  for (std::size_t behind = 0; behind <= 160; behind += 4) {
    const std::size_t n = 25, at = 256;
    const fs::path path = folder / (std::to_string(behind) + ".safetensors");
    put(path, two((page() - at - behind) / 4 - n, n, at));
    BOOST_REQUIRE(fs::file_size(path) == page() - behind);
    const io::TensorFile file = io::read_safetensors(path, kMap);
    // The 100 bytes of elements are two lines of 64, and kernels read one more line.
    BOOST_TEST(on_the_file(file, "y", io::Elements::as_stored) == (behind >= 192 - 4 * n), behind << " bytes behind");
    BOOST_TEST(on_the_file(file, "x", io::Elements::as_stored));
    const double first = static_cast<double>((page() - at - behind) / 4 - n + 1);
    BOOST_TEST(identical(ferrite::exp(file.tensor("y") / 1000), ferrite::exp(counting({25}, first) / 1000)));
  }
}

BOOST_AUTO_TEST_CASE(files_are_judged_as_when_they_are_read, *boost::unit_test::timeout(120)) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  const auto outcome = [&](const io::ReadOptions& options) -> std::string {
    try {
      const io::TensorFile file = io::read_safetensors(path, options);
      std::string all;
      for (const std::string_view name : file.names()) all += file.tensor(name).spec().str();
      return all;
    } catch (const IoError& e) {
      return e.what();
    }
  };
  for (const hostile::Case& c : hostile::all()) {
    put(path, c.bytes);
    BOOST_TEST(outcome(kMap) == outcome({}), c.name);
  }
}

BOOST_AUTO_TEST_CASE(a_file_of_2_gb_takes_no_memory, *boost::unit_test::precondition(has_statm)) {
  const TemporaryFolder folder;
  const fs::path path = folder / "large.safetensors";
  constexpr std::uint64_t n = std::uint64_t{1} << 29;
  put(path, two(16, 16, 256));
  std::string header = "{" + entry("small", 16, 0) + "," + entry("large", n, 64) + "}";
  header.resize(248, ' ');
  {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out << hostile::file_of(header);
  }
  fs::resize_file(path, 256 + 64 + 4 * n);  // sparse: zeros that take no space
  BOOST_REQUIRE(fs::file_size(path) > std::uint64_t{2} << 30);
  ferrite::trim();
  const std::size_t before = resident();
  const io::TensorFile file = io::read_safetensors(path, kMap);
  BOOST_TEST(identical(file.tensor("small"), counting({16}, 1)));
  const Tensor large = file.tensor("large");
  BOOST_TEST(large.numel() == static_cast<std::int64_t>(n));
  BOOST_TEST(ferrite::slice(large, 0, 16, 17).item() == 0);
  BOOST_TEST(ferrite::select(large, 0, -1).item() == 0);
  const std::size_t after = resident();
  BOOST_TEST_MESSAGE("resident: " << before << " bytes before, " << after << " after");
  BOOST_TEST(after < before + (std::size_t{4} << 20));
  if (!support::kSanitized) BOOST_TEST(after < std::size_t{50} << 20);
}

// Parameters, moments and counters are views of the file; a write to it would end the test.
BOOST_AUTO_TEST_CASE(training_from_a_mapped_file_leaves_the_file) {
  const TemporaryFolder folder;
  const fs::path path = folder / "gru.safetensors";
  const Tensor x = ferrite::uniform({3, 6, 4}, {.seed = 3}, -1, 1);
  const auto step = [&](const nn::Gru& gru, nn::Optimizer& optimiser) {
    ferrite::Tape tape;
    optimiser.step(tape.grad(ferrite::sum(gru(x) * gru(x)), gru.parameters()));
  };
  {
    const nn::Gru gru(4, 8, {.layers = 2}, {.seed = 1});
    nn::Adam adam(gru.parameters());
    step(gru, adam);
    io::save(gru, path, {.states = adam.states()});
  }
  const std::string before = content(path);
  std::vector<std::vector<std::byte>> trained;
  for (const bool map : {false, true}) {
    const nn::Gru gru(4, 8, {.layers = 2}, {.seed = 2});
    nn::Adam adam(gru.parameters());
    const io::TensorFile file = io::read_safetensors(path, {.map = map});
    io::load(gru, file, {.states = adam.states()});
    const nn::Named<Parameter>& last = gru.named_parameters().back();
    const Tensor in_file = file.tensor(last.name);
    BOOST_TEST(last.name == "bias_hh_l1");
    BOOST_TEST((last.variable.peek().raw() == in_file.raw()) == map);
    for (int i = 0; i < 5; ++i) step(gru, adam);
    trained.push_back(snapshot(gru));
  }
  BOOST_TEST((trained[0] == trained[1]), "training from a mapped file gives other weights");
  BOOST_TEST((content(path) == before), "training has written to the file");
}

BOOST_AUTO_TEST_CASE(clones_train_apart_from_a_mapped_module) {
  const TemporaryFolder folder;
  const fs::path path = folder / "gru.safetensors";
  io::save(nn::Gru(4, 8, {}, {.seed = 1}), path);
  const std::string before = content(path);
  const nn::Gru gru(4, 8);
  io::load(gru, path, {.read = {.map = true}});
  const std::vector<std::byte> loaded = snapshot(gru);
  const Tensor x = ferrite::uniform({2, 5, 4}, {.seed = 2}, -1, 1);
  {
    const std::unique_ptr<nn::Layer> clone = gru.clone();
    nn::Adam adam(clone->parameters());
    for (int i = 0; i < 3; ++i) {
      ferrite::Tape tape;
      const Tensor y = (*clone)(x);
      adam.step(tape.grad(ferrite::sum(y * y), clone->parameters()));
    }
    BOOST_TEST((snapshot(*clone) != loaded));
  }
  ferrite::trim();
  BOOST_TEST((snapshot(gru) == loaded), "the clone has changed the module");
  BOOST_TEST((content(path) == before), "training has written to the file");
}

BOOST_AUTO_TEST_CASE(compiled_training_and_momentum_leave_the_file) {
  const TemporaryFolder folder;
  const fs::path path = folder / "net.safetensors";
  const Net source;
  io::save(source, path);
  const std::string before = content(path);
  std::vector<std::vector<std::byte>> trained;
  for (const bool map : {false, true}) {
    Net net;
    clear(net);
    io::load(net, path, {.read = {.map = map}});
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.01, .momentum = 0.9});
    const auto step = ferrite::compile([&](const Tensor& x) {
      ferrite::Tape tape;
      const Tensor h = ferrite::matmul(x, net.body.weight.value()) + net.body.bias.value();
      const Tensor y = ferrite::matmul(h, net.head.weight.value()) + net.head.bias.value();
      const Tensor loss = ferrite::mean(y * y);
      sgd.step(tape.grad(loss, net.parameters()));
      return loss;
    });
    for (int i = 0; i < 4; ++i) (void)step(counting({5, 2}, -4) / 100);
    trained.push_back(snapshot(net));
  }
  BOOST_TEST((trained[0] == trained[1]), "training from a mapped file gives other weights");
  BOOST_TEST((content(path) == before), "training has written to the file");
}

BOOST_AUTO_TEST_CASE(threads_may_read_it_together_and_let_it_go) {
  const TemporaryFolder folder;
  const fs::path path = folder / "gru.safetensors";
  const nn::Gru source(4, 8, {}, {.seed = 1});
  io::save(source, path);
  const Tensor x = ferrite::uniform({2, 5, 4}, {.seed = 2}, -1, 1);
  const Tensor wanted = source(x);
  const io::TensorFile file = io::read_safetensors(path, kMap);
  std::vector<Tensor> results(4);
  std::vector<std::thread> threads;
  for (Tensor& result : results)
    threads.emplace_back([&result, &x, copy = file] {
      const nn::Gru gru(4, 8);
      io::load(gru, copy);
      result = gru(x);
    });
  for (std::thread& t : threads) t.join();
  for (const Tensor& result : results) BOOST_TEST(identical(result, wanted));
}

BOOST_AUTO_TEST_CASE(streams_of_a_mapped_module_give_the_same_values) {
  const TemporaryFolder folder;
  const fs::path path = folder / "gru.safetensors";
  io::save(nn::Gru(4, 8, {}, {.seed = 1}), path);
  std::vector<std::vector<float>> results;
  for (const bool map : {false, true}) {
    nn::Gru gru(4, 8);
    io::load(gru, path, {.read = {.map = map}});
    nn::Stream stream = gru.stream();
    std::vector<float> x{0.5F, -1, 2, 0.25F}, y(8);
    for (int t = 0; t < 5; ++t) stream.step(x, y);
    results.push_back(y);
  }
  BOOST_TEST(results[0] == results[1], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_mapped_is_refused) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  put(path, two(4, 4, 256));
  const auto says = [](std::string text) {
    return [text](const IoError& e) { return std::string(e.what()).find(text) != std::string::npos; };
  };
  BOOST_CHECK_THROW(io::read_safetensors(folder / "none", kMap), IoError);
  BOOST_CHECK_EXCEPTION(io::read_safetensors(folder.path(), kMap), IoError, says("not a regular file"));
  const auto calls = system_calls();
  system_calls().map = refusing_map;
  BOOST_CHECK_EXCEPTION(io::read_safetensors(path, kMap), IoError, says("cannot map the file"));
  BOOST_TEST(io::read_safetensors(path).size() == 2U);
  system_calls().map = unused_map;
  system_calls().read = growing_read;
  growing = path;
  BOOST_CHECK_EXCEPTION(io::read_safetensors(path, kMap), IoError, says("the file changed while it was being opened"));
  system_calls() = calls;
}

BOOST_AUTO_TEST_CASE(the_mapping_ends_with_the_last_tensor) {
  static int mapped = 0;
  const auto calls = system_calls();
  system_calls().map = [](std::size_t n, int fd) {
    ++mapped;
    return real.map(n, fd);
  };
  system_calls().unmap = [](void* at, std::size_t n) {
    --mapped;
    return real.unmap(at, n);
  };
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  put(path, two(400, 4, 256));
  Tensor row;
  {
    const Tensor x = io::read_safetensors(path, kMap).tensor("x");
    row = ferrite::slice(x, 0, 3, 5);
  }
  BOOST_TEST(mapped == 1);
  BOOST_TEST(identical(row, counting({2}, 4)));
  row = Tensor();
  BOOST_TEST(mapped == 0);
  {
    put(path, two(400, 4, 257));  // copies
    const Tensor x = io::read_safetensors(path, kMap).tensor("x");
    BOOST_TEST(mapped == 0);
  }
  system_calls() = calls;
}

BOOST_AUTO_TEST_SUITE_END()
