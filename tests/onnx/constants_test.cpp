// Constants of ONNX files whose elements stay in the file, or as narrow as there, until they are needed.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "ferrite/exchange/onnx.h"
#include "ferrite/tensor/system/system.h"
#include "support/compare.h"
#include "support/system.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::says;

namespace {

constexpr std::size_t kElements = 3001;  // more than 1 KiB in every type; odd, so that four bits end in half a byte

/// A tensor "c" [kElements] of one type, and its elements as f32.
struct Case {
  std::string name;
  std::string message{};
  std::vector<float> values{};
};

template <class Stored>
Case raw(const std::string& name, std::size_t type, const std::function<Stored(std::size_t)>& stored,
         const std::function<float(Stored)>& value) {
  Case c{.name = name};
  std::vector<Stored> all;
  for (std::size_t i = 0; i < kElements; ++i) {
    all.push_back(stored(i));
    c.values.push_back(value(all.back()));
  }
  c.message = tensor<Stored>("c", type, {kElements}, all);
  return c;
}

template <class Stored>
Case integers(const std::string& name, std::size_t type) {
  return raw<Stored>(
      name, type, [](std::size_t i) { return static_cast<Stored>(i * 37U); },
      [](Stored v) { return static_cast<float>(v); });
}

/// Returns a case with two elements in a byte, the first one in the lower half.
Case nibbles(const std::string& name, std::size_t type, bool is_signed) {
  Case c{.name = name};
  std::string bytes((kElements + 1) / 2, '\0');
  for (std::size_t i = 0; i < kElements; ++i) {
    const unsigned value = static_cast<unsigned>(i * 7U) % 16;
    bytes[i / 2] = static_cast<char>(static_cast<unsigned char>(bytes[i / 2]) | value << (i % 2 * 4));
    c.values.push_back(
        static_cast<float>(is_signed && value > 7 ? static_cast<int>(value) - 16 : static_cast<int>(value)));
  }
  c.message = number(1, kElements) + number(2, type) + field(8, "c") + field(9, bytes);
  return c;
}

/// Returns a case with int64_data, a number of one or two bytes for each element.
Case typed(const std::string& name) {
  Case c{.name = name};
  std::string numbers;
  for (std::size_t i = 0; i < kElements; ++i) {
    numbers += varint(i % 300);
    c.values.push_back(static_cast<float>(i % 300));
  }
  c.message = number(1, kElements) + number(2, 7) + field(8, "c") + field(7, numbers);
  return c;
}

std::vector<Case> cases() {
  // 1 + i / 1024 in f16, whose upper bits are 0x3C00; 1 + i / 128 in bf16, 0x3F80
  const auto half = [](std::size_t i) { return static_cast<std::uint16_t>(0x3C00U + i % 1024U); };
  const auto brain = [](std::size_t i) { return static_cast<std::uint16_t>(0x3F80U + i % 128U); };
  return {raw<float>(
              "f32", 1, [](std::size_t i) { return static_cast<float>(i) / 8; }, [](float v) { return v; }),
          raw<std::uint16_t>("f16", 10, half, [](auto v) { return 1.0F + static_cast<float>(v - 0x3C00) / 1024.0F; }),
          raw<std::uint16_t>("bf16", 16, brain, [](auto v) { return 1.0F + static_cast<float>(v - 0x3F80) / 128.0F; }),
          raw<char>(
              "bool", 9, [](std::size_t i) { return static_cast<char>(i % 3 == 0); },
              [](char v) { return static_cast<float>(v); }),
          integers<std::int8_t>("i8", 3),
          integers<std::uint8_t>("u8", 2),
          integers<std::int16_t>("i16", 5),
          integers<std::uint16_t>("u16", 4),
          integers<std::uint32_t>("u32", 12),
          integers<std::int64_t>("i64", 7),
          nibbles("uint4", 21, false),
          nibbles("int4", 22, true),
          typed("i64 in varints")};
}

std::string cast_to_f32(const std::string& in) { return node("Cast", in, "f", int_attribute("to", 1)); }
std::string constant(const std::string& message) {
  return node_of("Constant", {}, {"c"}, field(5, field(1, "value") + number(20, 4) + field(5, message)));
}

/// Returns models that compute x + c, with the tensor in different places.
std::vector<std::string> models_with(const std::string& message) {
  const std::string add = cast_to_f32("c") + node_of("Add", {"x", "f"}, {"y"});
  const auto whole = [](const std::string& content, const std::string& more = {}) {
    return model_of(graph(content, {"x"}, {"y"}), 21, field(8, field(1, "own") + number(2, 1)) + more);
  };
  const std::string yes = initialiser(tensor<char>("yes", 9, {}, {1}));
  const auto branch = [&](const std::string& content) {
    return node("If", "yes", "y",
                graph_attribute("then_branch", graph(content, {}, {"y"})) +
                    graph_attribute("else_branch", graph(node("Identity", "x", "y"), {}, {"y"})));
  };
  return {
      whole(initialiser(message) + add), whole(constant(message) + add),
      whole(yes + branch(initialiser(message) + add)), whole(yes + branch(constant(message) + add)),
      whole(node("With", "x", "y", own()),
            function("With", {"x"}, {"y"}, {constant(message), cast_to_f32("c"), node_of("Add", {"x", "f"}, {"y"})}))};
}

Tensor plus(const Tensor& x, const Case& c) {
  return x + Tensor::from(c.values, {static_cast<std::int64_t>(kElements)});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_constants)

BOOST_AUTO_TEST_CASE(elements_are_those_of_the_file_wherever_they_are) {
  const Tensor x = uniform({kElements}, {1, 2, 3});
  for (const Case& c : cases()) {
    const Tensor expected = plus(x, c);
    for (const std::string& bytes : models_with(c.message)) {
      for (const bool frozen : {false, true}) {
        BOOST_TEST_CONTEXT(c.name << ", " << bytes.size() << " bytes, frozen " << frozen) {
          auto given = std::make_unique<std::string>(bytes);
          const onnx::Model model = parsed(*given, {.frozen = frozen});
          *given = std::string(bytes.size(), '\0');  // the parsed bytes remain the caller's
          given.reset();
          for (int run = 0; run < 2; ++run) BOOST_TEST(support::same_bytes(model.run({x})[0], expected));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_model_that_was_read_needs_its_file_no_more) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("ferrite_constants_" + std::to_string(ferrite::detail::process_number()));
  const Tensor x = uniform({kElements}, {1, 2, 3});
  for (const Case& c : cases()) {
    for (const std::string& bytes : models_with(c.message)) {
      std::ofstream(path, std::ios::binary) << bytes;
      const onnx::Model model = onnx::read(path);
      std::ofstream(path, std::ios::binary) << "other";
      std::filesystem::remove(path);
      BOOST_TEST_CONTEXT(c.name) { BOOST_TEST(support::same_bytes(model.run({x})[0], plus(x, c))); }
    }
  }
}

/// External data in more files than a process may have open.
BOOST_AUTO_TEST_CASE(external_data_of_many_tensors_is_not_open_all_at_once) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("ferrite_external_" + std::to_string(ferrite::detail::process_number()));
  std::filesystem::create_directories(folder);
  constexpr std::size_t kTensors = 200;
  std::string elements, content, before = "x";
  for (std::size_t k = 0; k < kTensors; ++k) {
    const std::string name = "c" + std::to_string(k), sum = k + 1 == kTensors ? "y" : "s" + std::to_string(k);
    const auto entry = [](const std::string& key, const std::string& value) {
      return field(13, field(1, key) + field(2, value));
    };
    content += initialiser(number(1, kElements) + number(2, 3) + field(8, name) + number(14, 1) +
                           entry("location", "data") + entry("offset", std::to_string(elements.size())));
    elements += std::string(kElements, static_cast<char>(k % 100));
    content += node("Cast", name, "f" + name, int_attribute("to", 1)) + node_of("Add", {before, "f" + name}, {sum});
    before = sum;
  }
  std::ofstream(folder / "m.onnx", std::ios::binary) << model_of(graph(content, {"x"}, {"y"}));
  std::ofstream(folder / "data", std::ios::binary) << elements;
  support::Limit few(support::Limit::Of::open_files, 100);
  std::optional<onnx::Model> model;
  BOOST_CHECK_NO_THROW(model.emplace(onnx::read(folder / "m.onnx", {.external_data = true})));
  few.end();
  std::filesystem::remove_all(folder);
  BOOST_REQUIRE(model.has_value());
  BOOST_TEST(support::same_bytes(model->run({zeros({kElements})})[0], full({kElements}, 9900)));  // 2 (0 + ... + 99)
}

BOOST_AUTO_TEST_CASE(several_threads_may_run_a_model_first) {
  const Tensor x = uniform({kElements}, {1, 2, 3});
  const Case c = integers<std::int8_t>("i8", 3);
  for (int round = 0; round < 20; ++round) {
    const onnx::Model model = parsed(models_with(c.message)[0]);
    std::vector<Tensor> results(4);
    std::vector<std::thread> threads;
    for (Tensor& r : results) threads.emplace_back([&] { r = model.run({x})[0]; });
    for (std::thread& t : threads) t.join();
    for (const Tensor& r : results) BOOST_TEST(support::same_bytes(r, plus(x, c)));
  }
}

/// Elements that are invalid for the tensor's type are refused while a model is read, not when it runs.
BOOST_AUTO_TEST_CASE(elements_are_checked_when_a_model_is_read) {
  const auto refuses = [](const std::string& message, const std::string& why) {
    for (const std::string& bytes : models_with(message))
      BOOST_CHECK_EXCEPTION((void)parsed(bytes), onnx::OnnxError, says(why));
  };
  std::vector<char> bools(kElements, 1);
  bools.back() = 2;
  refuses(tensor<char>("c", 9, {kElements}, bools), "neither 0 nor 1");
  std::string numbers;
  for (std::size_t i = 0; i < kElements; ++i) numbers += varint(i + 1 < kElements ? 1 : 2);
  refuses(number(1, kElements) + number(2, 9) + field(8, "c") + field(5, numbers), "neither 0 nor 1");
  refuses(tensor<char>("c", 3, {kElements + 1}, std::vector<char>(kElements)), "3002 bytes, the file has 3001");
}

BOOST_AUTO_TEST_CASE(elements_that_are_there_twice_are_refused) {
  const std::string head = number(1, kElements) + number(2, 1) + field(8, "c");
  const std::string all = field(9, std::string(4 * kElements, '\1')), more = field(4, std::string(4 * kElements, '\1'));
  for (const std::string& content :
       {all + all, all + field(9, "short"), field(9, "short") + all, all + more, more + all})
    for (const std::string& bytes : models_with(head + content))
      BOOST_CHECK_EXCEPTION((void)parsed(bytes), onnx::OnnxError, says("twice"));
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_anywhere_or_has_one_other_byte_is_refused_or_runs) {
  const std::vector<std::uint16_t> values(600, 0x3C00);
  const std::string message = tensor<std::uint16_t>("c", 10, {600}, values);
  const Tensor x = ones({600});
  std::size_t ran = 0, refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      (void)parsed(bytes, {.most_elements = 1 << 20}).run({x});
      ++ran;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (const std::string& whole : models_with(message)) {
    for (std::size_t n = 0; n < whole.size(); ++n) attempt(whole.substr(0, n));
    for (const char other : {'\x00', '\x08', '\x4A', '\x7F', '\x80', '\xFF'})
      for (std::size_t n = 0; n < whole.size(); ++n) {
        std::string bytes = whole;
        bytes[n] = other;
        attempt(bytes);
      }
  }
  BOOST_TEST(ran > 5 * 6 * 1200U);  // changed elements of the tensor
  BOOST_TEST(refused > 5 * 1200U);  // cut files
}

BOOST_AUTO_TEST_SUITE_END()
