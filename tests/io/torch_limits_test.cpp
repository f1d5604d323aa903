/// Memory and work of reading checkpoints that are made to be large or slow: at most ten times the pickle and the
/// directory, and 1 MiB; instructions proportional to them.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <span>

#include "counting.h"
#include "ferrite/io/torch.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/system/files.h"
#include "operations.h"
#include "support/compare.h"
#include "support/sanitized.h"
#include "temporary_folder.h"
#include "torch_builder.h"
#include "zip_builder.h"

namespace {

using namespace torch_builder;
using ferrite::IoError;
using support::unless_sanitized;
namespace io = ferrite::io;

/// Limit of instructions per byte. A record of Python's is a few bytes; work proportional to the square of their number
/// would be a thousand times this.
constexpr double kInstructionsAByte = 500;  // measured: 5 to 420

constexpr std::size_t many(std::size_t n) { return unless_sanitized(n, n / 10); }

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Reads a file of `header` bytes of pickle and directory within the bounds.
void check_cost(const std::string& file, std::size_t header, bool legal) {
  std::size_t bytes = 0;
  operations::check_linear(header, kInstructionsAByte, [&] {
    bytes = counting::peak([&] {
      try {
        io::parse_torch(as_bytes(file));
        BOOST_TEST(legal, "is read");
      } catch (const IoError& error) {
        BOOST_TEST(!legal, "is refused: " << error.what());
      }
    });
  });
  BOOST_TEST_MESSAGE(header << " bytes of pickle: memory " << static_cast<double>(bytes) / static_cast<double>(header)
                            << " x");
  BOOST_TEST(bytes <= 10 * header + (1u << 20));
}

/// Checks the cost of a checkpoint with this pickle.
void check_pickle(const std::string& value, bool legal) {
  const std::string data_pkl = pickle(value);
  check_cost(checkpoint(data_pkl), data_pkl.size(), legal);
}

/// Returns n pieces between a front and an end.
std::string filled(const std::string& front, std::size_t n, const std::function<std::string(std::size_t)>& piece,
                   const std::string& end) {
  std::string out = front;
  for (std::size_t i = 0; i < n; ++i) out += piece(i);
  return out + end;
}

/// Returns tensors [2, 2] of protocol 4, as short as Python writes them: everything repeated comes from the memo.
std::string short_tensors(std::size_t n) {
  const std::string front = std::string("N0") + kRebuild +
                            "\x94"
                            "0" +
                            text("storage") +
                            "\x94"
                            "0" +
                            kFloatStorage +
                            "\x94"
                            "0" +
                            text("0") +
                            "\x94"
                            "0" +
                            text("cpu") +
                            "\x94"
                            "0" +
                            global("collections", "OrderedDict") +
                            "\x94"
                            "0";
  constexpr char tensor_text[] = "h\0((h\1h\2h\3h\4K\4t\x94QK\0K\2K\2\x86\x94K\2K\1\x86\x94\x89h\5)R\x94t\x94R\x94";
  const std::string tensor(tensor_text, sizeof(tensor_text) - 1);
  return filled(
      front + "}(", n, [&](std::size_t i) { return text("t" + std::to_string(i)) + "\x94" + tensor; }, "u");
}

/// Adds up the bytes read from files while it lives.
class CountedReads {
 public:
  CountedReads() : normal_(ferrite::detail::system_calls().read) {
    total_ = 0;
    static const auto real = normal_;
    ferrite::detail::system_calls().read = [](int fd, void* to, std::size_t n) {
      const std::ptrdiff_t got = real(fd, to, n);
      if (got > 0) total_ += static_cast<std::size_t>(got);
      return got;
    };
  }
  ~CountedReads() { ferrite::detail::system_calls().read = normal_; }
  CountedReads(const CountedReads&) = delete;
  CountedReads& operator=(const CountedReads&) = delete;
  std::size_t bytes() const { return total_; }

 private:
  std::ptrdiff_t (*normal_)(int, void*, std::size_t);
  static inline std::size_t total_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_limits)

BOOST_AUTO_TEST_CASE(instructions_are_counted, *boost::unit_test::precondition(operations::counted)) {
  const bench::Instructions counter;
  volatile int sum = 0;
  const auto loop = [&](int n) {
    counter.start();
    for (int i = 0; i < n; ++i) sum = sum + i;
    return counter.stop();
  };
  const std::int64_t few = loop(1000), many_more = loop(100'000);
  BOOST_TEST(few >= 3000);
  BOOST_TEST(many_more >= 50 * few);
  BOOST_TEST(many_more <= 200 * few);
}

BOOST_AUTO_TEST_CASE(fifty_thousand_tensors_as_python_writes_them) { check_pickle(short_tensors(many(50'000)), true); }

BOOST_AUTO_TEST_CASE(the_same_tensor_again_and_again) {
  const std::string front = good_tensor() + std::string("q\0", 2) + "0](";
  check_pickle(filled(
                   front, 1'000, [](std::size_t) { return std::string("h\0", 2); }, "e"),
               true);
  check_pickle(filled(
                   front, 500'000, [](std::size_t) { return std::string("h\0", 2); }, "e"),
               false);
}

BOOST_AUTO_TEST_CASE(lists) {
  check_pickle("(" + repeated("]", 10'000) + "t", true);
  check_pickle("(" + repeated("]", 1'000'000) + "t", false);
  check_pickle("(" + repeated("]\x94", 1'000'000) + "t", false);
}

BOOST_AUTO_TEST_CASE(deep_lists) {
  check_pickle(repeated("](", many(2'000'000)) + repeated("e", many(2'000'000)), false);
  check_pickle("]" + repeated("\x85", many(5'000'000)), false);
}

BOOST_AUTO_TEST_CASE(marks) { check_pickle(repeated("(", many(5'000'000)), false); }

BOOST_AUTO_TEST_CASE(a_full_stack) {
  check_pickle(repeated("N", 1 << 20) + "(", false);
  check_pickle("}" + text("a") + "(" + repeated("K\7", 1'000'000) + "ts", true);
}

BOOST_AUTO_TEST_CASE(small_numbers) {
  check_pickle(filled(
                   "}" + text("a") + "](", 2'000'000, [](std::size_t) { return std::string("K\7"); }, "es"),
               false);
}

BOOST_AUTO_TEST_CASE(a_list_in_batches_as_python_writes_it) {
  const auto batch = [](std::size_t) { return "(" + repeated("K\7", 1000) + "e"; };
  check_pickle(filled("}" + text("a") + "]", many(900), batch, "s"), true);
}

BOOST_AUTO_TEST_CASE(appended_one_by_one) {
  check_pickle(filled(
                   "}" + text("a") + "]", many(500'000), [](std::size_t) { return std::string("Na"); }, "s"),
               true);
  const auto apart = [](std::size_t) { return std::string(")0Na"); };
  check_pickle(filled("}" + text("a") + "]", many(500'000), apart, "s"), true);
}

BOOST_AUTO_TEST_CASE(a_vocabulary) {
  const auto word = [](std::size_t i) { return text("word" + std::to_string(i)) + "q\1M\1\1"; };
  check_pickle(filled("}" + text("vocabulary") + "}(", many(100'000), word, "us"), true);
}

BOOST_AUTO_TEST_CASE(a_long_name_in_front_of_many) {
  const auto word = [](std::size_t i) { return text(std::to_string(i)) + "N"; };
  check_pickle(filled("}" + text(std::string(1'000'000, 'n')) + "}(", 10'000, word, "us"), false);
}

BOOST_AUTO_TEST_CASE(memo_with_gaps) {
  check_pickle(filled(
                   "}", 100'000, [](std::size_t i) { return "r" + little_endian(5 * i, 4); }, ""),
               true);
}

BOOST_AUTO_TEST_CASE(one_long_string) { check_pickle("}" + text(std::string(8'388'700, 'n')) + "Ns", true); }

BOOST_AUTO_TEST_CASE(many_storages) {
  Members members = {{"a/version", "3\n"}};
  std::string data_pkl = "}(";
  std::size_t directory = 0;
  for (std::size_t i = 0; i < many(20'000); ++i) {
    TensorParts parts;
    parts.key = text(std::to_string(i));
    data_pkl += text("t" + std::to_string(i)) + parts.str();
    members.emplace_back("a/data/" + std::to_string(i), floats(4));
    directory += 46 + members.back().first.size();
  }
  members.emplace_back("a/data.pkl", pickle(data_pkl + "u"));
  check_cost(zip(members), data_pkl.size() + directory, true);
}

/// A module holds many others of one class, whose long name occurs once; its source counts with the pickle.
BOOST_AUTO_TEST_CASE(many_modules) {
  const std::string name(900, 'N');
  const std::string code = module_class("Outer", "") + module_class(name, "\"w\", ");
  const auto tried = [&](std::size_t n, const std::string& module, bool legal) {
    const std::string front = good_tensor() + std::string("q\0000", 3) + global("__torch__", name) + "q\0010" +
                              text("w") + "q\0020" + global("__torch__", "Outer") + ")\x81}(";
    const std::string value = filled(
        front, n, [&](std::size_t i) { return text("m" + std::to_string(i)) + module; }, "ub");
    check_cost(scripted(value, code), pickle(value).size() + code.size(), legal);
  };
  const std::string made = std::string("h\1)\x81}(h\2h\0ub", 12);
  tried(many(5'000), made, true);
  tried(many(100'000), made.substr(0, 3) + "\x81}b", false);  // which lack the parameter
}

BOOST_AUTO_TEST_CASE(one_module_again_and_again) {
  const std::string value = global("__torch__", "Outer") + ")\x81}bq\0010" + global("__torch__", "Outer") + ")\x81}(" +
                            filled(
                                "", many(200'000), [](std::size_t i) { return text(std::to_string(i)) + "h\1"; }, "ub");
  check_cost(scripted(value, module_class("Outer", "")), value.size(), true);
}

/// Sources that inflate to much more than the pickle are refused before their declarations take memory.
BOOST_AUTO_TEST_CASE(code_with_many_classes) {
  std::string code;
  for (std::size_t i = 0; i < 50'000; ++i) code += "class C" + std::to_string(i) + ":\n";
  const std::string value = instance("Net", "");
  check_cost(scripted(value, code), 2 * code.size(), false);
  const std::string names = module_class("Net", filled(
                                                    "", 50'000, [](std::size_t) { return "\"w\", "; }, ""));
  check_cost(scripted(value, names), names.size(), false);
}

BOOST_AUTO_TEST_CASE(legacy_pickles_do_not_borrow_from_the_storages) {
  const std::string storages = little_endian(4, 8) + floats(4) + std::string(5'000'000, '\0');
  const std::string keys = pickle("]" + text("0") + "a");
  const std::string object = pickle("(" + repeated("]", 200'000) + "t");
  check_cost(legacy(object, keys, storages), object.size(), false);
}

BOOST_AUTO_TEST_CASE(a_view_by_stride_0_takes_no_memory) {
  TensorParts parts;
  parts.size = tuple(integer(1 << 14) + integer(1 << 14));
  parts.stride = tuple(integer(0) + integer(0));
  const std::string file = checkpoint(named(parts.str()));
  const std::size_t bytes = counting::peak([&] {
    const ferrite::Tensor x = io::parse_torch(as_bytes(file)).tensor("a");
    BOOST_TEST(x.numel() == 1 << 28);
    BOOST_TEST(x.view({1}, {1}, 0).item() == 1.0f);
  });
  BOOST_TEST(bytes <= 1u << 20);
}

BOOST_AUTO_TEST_CASE(a_large_file_is_read_once_and_lightly) {
  const io_test::TemporaryFolder folder;
  constexpr std::size_t kFloats = 2'500'000;
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < 10; ++i)
    tensors.push_back({std::to_string(i), ferrite::full({static_cast<std::int64_t>(kFloats)}, 0.5)});
  io::write_torch(folder / "big.pt", tensors);
  const std::size_t size = std::filesystem::file_size(folder / "big.pt");
  BOOST_TEST(size > 4 * 10 * kFloats);
  // The bytes are copied and their checksums computed: a few instructions for each byte.
  operations::check_linear(size, 8, [&] {
    const CountedReads reads;
    const io::TensorFile file = io::read_torch(folder / "big.pt");
    for (const std::string_view name : file.names())
      BOOST_TEST(file.tensor(name).numel() == static_cast<std::int64_t>(kFloats));
    BOOST_TEST(file.size() == 10u);
    BOOST_TEST(reads.bytes() == size);
  });
}

/// PyTorch stores what it writes, but a zip tool may have compressed it, and zeros then shrink a thousand times.
BOOST_AUTO_TEST_CASE(constant_storages_may_be_compressed) {
  using zip_test::packed, zip_test::stored;
  constexpr std::size_t n = 1 << 20;
  TensorParts parts;
  parts.numel = integer(n);
  parts.size = tuple(integer(n));
  parts.stride = tuple(integer(1));
  const std::string file =
      zip_test::archive_of({stored("a/data.pkl", named(parts.str())), packed("a/data/0", std::string(4 * n, '\0')),
                            stored("a/version", "3\n")});
  BOOST_TEST(file.size() < 10'000u);
  BOOST_TEST(support::identical(io::parse_torch(as_bytes(file)).tensor("a"), ferrite::zeros({n})));
  const std::size_t bytes = counting::peak([&] {
    const io::TensorFile small = io::parse_torch(as_bytes(file), "", "torch", {.most_inflated = 1 << 20});
    BOOST_CHECK_EXCEPTION((void)small.tensor("a"), IoError,
                          support::says("'a/data/0': inflates to more than is allowed: 4194304 bytes"));
  });
  BOOST_TEST(bytes <= 1u << 20);
}

BOOST_AUTO_TEST_SUITE_END()
