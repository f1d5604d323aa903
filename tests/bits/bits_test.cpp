// Results in f32 have the same bits at every instruction set that rounds a multiply-add once: AVX2, AVX-512 and NEON.
// The program computes all operations with their gradients, layers of every kind, and training steps of every
// optimiser, and compares the hashes of the results with those in tests/data/bits.txt, which the AVX2 kernels wrote:
// FERRITE_REGENERATE=1 writes the file.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "bits/results.h"
#include "digests/digest.h"
#include "ferrite/tensor/instruction_set.h"
#include "support/fixtures.h"

using namespace ferrite;

namespace {

/// Returns whether products round a multiply-add once: (1 + u)^2 - 1 - 2u is u^2 then, and else 0.
bool rounds_once() {
  const float u = 0x1p-13F;
  return matmul(Tensor::from({-1 - 2 * u, 1 + u}, {1, 2}), Tensor::from({1.0F, 1 + u}, {2, 1})).item<float>() != 0;
}

/// Returns a hash of the floats and integers among results. Doubles, which may be the C library's, are left out.
std::string hash_of(const bits::Result& result) {
  digests::Digest hash;
  for (const Tensor& x : result.compute())
    if (!x.defined())
      hash.add("undefined");
    else if (x.dtype() != Dtype::f64)
      hash.add(x);
  return hash.str();
}

std::map<std::string, std::string> recorded() {
  std::map<std::string, std::string> hashes;
  std::ifstream file(support::fixture_path("bits.txt"));
  for (std::string name, hash; file >> name >> hash;) hashes[name] = hash;
  return hashes;
}

void write(const std::vector<bits::Result>& all) {
  std::ofstream file(support::fixture_path("bits.txt"));
  for (const bits::Result& r : all) file << r.name << ' ' << hash_of(r) << '\n';
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bits_of_results)

BOOST_AUTO_TEST_CASE(all_are_those_of_avx2) {
  if (!rounds_once()) {
    BOOST_TEST_MESSAGE("skipped: " << instruction_set() << " has no multiply-add that rounds once");
    return;
  }
  const std::vector<bits::Result> all = bits::all_results();
  if (std::getenv("FERRITE_REGENERATE")) write(all);
  const std::map<std::string, std::string> wanted = recorded();
  std::set<std::string> names;
  for (const bits::Result& r : all) {
    BOOST_TEST(names.insert(r.name).second, r.name << " is computed twice");
    const auto found = wanted.find(r.name);
    BOOST_TEST_REQUIRE((found != wanted.end()), r.name << " is not in bits.txt: run with FERRITE_REGENERATE=1");
    BOOST_TEST(hash_of(r) == found->second, r.name << " has other bits at " << instruction_set());
  }
  BOOST_TEST(names.size() == wanted.size(), "bits.txt has results that nothing computes");
}

BOOST_AUTO_TEST_SUITE_END()
