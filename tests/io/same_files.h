#pragma once
/// Compares files: every tensor bit for bit, and all metadata.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string_view>

#include "ferrite/io/tensor_file.h"
#include "ferrite/tensor/ops.h"

namespace io_test {

namespace io = ferrite::io;

inline void check_same(const ferrite::Tensor& actual, const ferrite::Tensor& wanted, std::string_view name) {
  BOOST_TEST_CONTEXT(name) {
    BOOST_REQUIRE_EQUAL(actual.spec().str(), wanted.spec().str());
    const ferrite::Tensor a = ferrite::contiguous(actual);
    const auto bytes = static_cast<std::size_t>(a.numel() * ferrite::size_of(a.dtype()));
    BOOST_TEST((bytes == 0 || std::memcmp(a.raw(), wanted.raw(), bytes) == 0), "values differ: " << actual << wanted);
  }
}

/// Checks that two files have the same tensors and metadata.
inline void check_same(const io::TensorFile& actual, const io::TensorFile& wanted) {
  BOOST_TEST(actual.size() == wanted.size());
  for (const std::string_view name : wanted.names()) {
    BOOST_REQUIRE(actual.contains(name));
    const io::TensorInfo info = actual.info(name);
    BOOST_TEST((info.loads_as == wanted.info(name).loads_as));
    BOOST_TEST(info.shape == wanted.info(name).shape, boost::test_tools::per_element());
    check_same(actual.tensor(name), wanted.tensor(name), name);
  }
  const io::Metadata words = actual.metadata();
  for (const auto& [key, value] : wanted.metadata())
    BOOST_TEST((words.contains(key) && words.at(key) == value),
               key << " is " << (words.contains(key) ? words.at(key) : "missing") << ", not " << value);
  BOOST_TEST(words.size() == wanted.metadata().size());
}

}  // namespace io_test
