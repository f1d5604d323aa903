// Files keep bf16, f16 and i8: a tensor that is read as stored is written unchanged.
#include <algorithm>
#include <fstream>

#include "ferrite/io/any_file.h"
#include "ferrite/io/checksum.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/torch.h"
#include "small_modules.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "temporary_folder.h"

using namespace io_test;
using ferrite::cast;
using ferrite::DtypeError;
using io::Elements;
using support::identical;
using support::says;

namespace {

Tensor stored(Dtype t) { return cast(Tensor::from<float>({0.1F, -2.5F, 100, -0.0F, 7, 3}, {2, 3}), t); }

/// Returns one tensor of each kind, a strided one among them; NumPy has no bf16.
std::vector<io::NamedTensor> all(bool brains) {
  std::vector<io::NamedTensor> list{{"f16", stored(Dtype::f16)},
                                    {"i8", stored(Dtype::i8)},
                                    {"f32", stored(Dtype::f32)},
                                    {"strided", ferrite::transpose(stored(Dtype::f16))}};
  if (brains) list.push_back({"bf16", stored(Dtype::bf16)});
  return list;
}

void check_round_trip(const io::TensorFile& file, const std::vector<io::NamedTensor>& wanted) {
  for (const auto& [name, tensor] : wanted) {
    BOOST_TEST_CONTEXT(name) {
      const io::TensorInfo info = file.info(name);
      BOOST_TEST((info.stored_as == tensor.dtype()));
      BOOST_TEST(identical(file.tensor(name, Elements::as_stored), tensor));
      const Dtype computed = !is_storage_only(tensor.dtype())        ? tensor.dtype()
                             : ferrite::has_gradient(tensor.dtype()) ? Dtype::f32
                                                                     : Dtype::i32;
      BOOST_TEST((info.loads_as == computed));
      BOOST_TEST(identical(file.tensor(name), cast(tensor, computed)));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stored_types)

BOOST_AUTO_TEST_CASE(every_format_that_has_them_keeps_them) {
  const TemporaryFolder folder;
  for (const char* name : {"x.safetensors", "x.pt", "x.npz"}) {
    const std::vector<io::NamedTensor> tensors = all(std::string(name) != "x.npz");
    io::write_tensors(folder / name, tensors);
    const io::TensorFile file = io::read_tensors(folder / name);
    check_round_trip(file, tensors);
    check_round_trip(file.renamed([](std::string_view n) { return std::string(n); }), tensors);
    BOOST_TEST(io::checksum(file) == io::checksum(tensors, {}));
  }
  check_round_trip(io::tensor_file_of(all(true), "memory"), all(true));
}

BOOST_AUTO_TEST_CASE(safetensors_name_them_as_the_reference_does) {
  const auto bytes = io::serialize_safetensors(all(true));
  const io::TensorFile file = io::parse_safetensors(bytes);
  BOOST_TEST(file.info("bf16").dtype == "BF16");
  BOOST_TEST(file.info("f16").dtype == "F16");
  BOOST_TEST(file.info("i8").dtype == "I8");
  BOOST_TEST(file.info("bf16").bytes == 12U);
}

BOOST_AUTO_TEST_CASE(torch_reads_its_own_halves_as_they_are) {
  const io::TensorFile pt = io::read_torch(support::fixture_path("torch/dtypes.pt"));
  const io::TensorFile wanted = io::read_safetensors(support::fixture_path("torch/dtypes.safetensors"));
  const std::pair<const char*, Dtype> types[] = {
      {"float16", Dtype::f16}, {"bfloat16", Dtype::bf16}, {"int8", Dtype::i8}, {"float64", Dtype::f64}};
  for (const auto& [name, dtype] : types) {
    const Tensor x = pt.tensor(name, Elements::as_stored);
    BOOST_TEST((x.dtype() == dtype));
    BOOST_TEST(identical(cast(x, wanted.tensor(name).dtype()), wanted.tensor(name)), name);
  }
}

BOOST_AUTO_TEST_CASE(arrays_of_halves_and_bytes_are_written_as_numpy_writes_them) {
  const std::filesystem::path path = support::fixture_path("numpy/f2.npy");
  const Tensor x = io::read_npy(path, Elements::as_stored);
  BOOST_TEST((x.dtype() == Dtype::f16));
  BOOST_TEST(identical(cast(x, Dtype::f32), io::read_npy(path)));
  const TemporaryFolder folder;
  io::write_npy(folder / "f2.npy", x);
  std::ifstream a(path, std::ios::binary), b(folder / "f2.npy", std::ios::binary);
  BOOST_TEST(
      (std::string(std::istreambuf_iterator<char>(a), {}) == std::string(std::istreambuf_iterator<char>(b), {})));
  const Tensor big = io::read_npy(support::fixture_path("numpy/big_f2.npy"), Elements::as_stored);
  BOOST_TEST(identical(cast(big, Dtype::f32), io::read_npy(support::fixture_path("numpy/big_f2.npy"))));
  const std::vector<std::byte> bytes = io::serialize_npy(stored(Dtype::i8));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  BOOST_TEST(text.find("'descr': '|i1'") != std::string::npos);
  BOOST_TEST(identical(io::parse_npy(bytes, "npy", Elements::as_stored), stored(Dtype::i8)));
}

BOOST_AUTO_TEST_CASE(numpy_has_no_bf16_and_the_error_says_what_to_do) {
  const std::vector<io::NamedTensor> list{{"w", stored(Dtype::bf16)}};
  BOOST_CHECK_EXCEPTION(io::serialize_npy(list[0].tensor), IoError,
                        says("serialize_npy: NumPy has no dtype for bf16; cast the tensor to f32"));
  const TemporaryFolder folder;
  BOOST_CHECK_EXCEPTION(io::write_tensors(folder / "x.npz", list), IoError, says("'w': NumPy has no dtype for bf16"));
  BOOST_CHECK_EXCEPTION(io::write_npy(folder / "x.npy", list[0].tensor), IoError, says("NumPy has no dtype"));
  BOOST_TEST(std::filesystem::is_empty(folder.path()));
}

BOOST_AUTO_TEST_CASE(a_module_stores_a_buffer_in_bf16_and_loads_it_again) {
  struct Stored : nn::Module {
    Buffer table;
    explicit Stored(const Tensor& x) : table(buffer("table", x)) {}
  };
  const Stored from(stored(Dtype::bf16));
  const TemporaryFolder folder;
  io::save(from, folder / "m.safetensors");
  BOOST_TEST(io::read_safetensors(folder / "m.safetensors").info("table").dtype == "BF16");
  const Stored to(ferrite::zeros({2, 3}, Dtype::bf16));
  io::load(to, folder / "m.safetensors");
  BOOST_TEST(identical(to.table.peek(), from.table.peek()));
  const Stored half(ferrite::zeros({2, 3}, Dtype::f16));
  BOOST_CHECK_EXCEPTION(io::load(half, folder / "m.safetensors"), IoError,
                        says("'table' has dtype BF16, the model needs f16"));
  const Stored wide(ferrite::zeros({2, 3}));
  io::load(wide, folder / "m.safetensors");
  BOOST_TEST(identical(wide.table.peek(), cast(from.table.peek(), Dtype::f32)));
}

BOOST_AUTO_TEST_SUITE_END()
