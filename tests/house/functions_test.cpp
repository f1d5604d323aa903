// Every public function of tensors has a record, which the conformance tests compare with an oracle.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "ferrite/nn/operations.h"
#include "ferrite/tensor/primitive.h"
#include "house/sources.h"

using namespace house_rules;

namespace {

/// Functions whose record has another name, as graphs and files spell it.
const std::map<std::string, std::string> kSpelled = {{"eq", "equal"},
                                                     {"lt", "less"},
                                                     {"le", "less_equal"},
                                                     {"operator&&", "logical_and"},
                                                     {"operator||", "logical_or"},
                                                     {"operator!", "logical_not"},
                                                     {"exp10", "pow"},
                                                     {"max", "amax"},
                                                     {"min", "amin"},
                                                     {"atleast_1d", "reshape"},
                                                     {"atleast_2d", "reshape"},
                                                     {"atleast_3d", "reshape"},
                                                     {"bmm", "matmul"},
                                                     {"broadcast_tensors", "expand"},
                                                     {"diag", "diagonal"},
                                                     {"dot", "matmul"},
                                                     {"hstack", "concat"},
                                                     {"masked_fill", "where"},
                                                     {"mv", "matmul"},
                                                     {"repeat", "tile"},
                                                     {"swapaxes", "transpose"},
                                                     {"unflatten", "reshape"},
                                                     {"vstack", "concat"},
                                                     {"adam_update", "rule_update"}};

/// Functions without a record, with the reason.
const std::map<std::string, std::string> kWithout = {{"ne", "the negation of eq"},
                                                     {"gt", "lt with its operands exchanged"},
                                                     {"ge", "le with its operands exchanged"},
                                                     {"argsort", "the indices of sort"},
                                                     {"bucketize", "searchsorted with its operands exchanged"},
                                                     {"take", "index_select of the flattened tensor"},
                                                     {"index_fill", "scatter of one value"},
                                                     {"index_at", "index_select at several indices joined"},
                                                     {"masked_select", "index_select at nonzero"},
                                                     {"zeros", "full of 0"},
                                                     {"ones", "full of 1"},
                                                     {"zeros_like", "full of 0"},
                                                     {"ones_like", "full of 1"},
                                                     {"dice_loss", "tversky_loss with equal weights"},
                                                     {"multi_resolution_stft_loss", "norms of what stft gives"},
                                                     {"reduce_loss", "what losses have in common: sum and mean"},
                                                     {"unroll", "its steps are a function of the caller's"},
                                                     {"as_scan", "other operations for one of a graph"},
                                                     {"padding_replaced", "without_padding of known lengths"},
                                                     {"fftfreq", "numbers made once"},
                                                     {"rfftfreq", "numbers made once"},
                                                     {"hann_window", "numbers made once"},
                                                     {"hamming_window", "numbers made once"},
                                                     {"blackman_window", "numbers made once"},
                                                     {"bartlett_window", "numbers made once"},
                                                     {"kaiser_window", "numbers made once"}};

/// Returns the functions that a header declares and that return tensors.
std::set<std::string> functions_of(const std::string& header) {
  static const std::regex pattern(R"(\n(?:Tensor|Tensors|RecurrentState) (operator[^\s(]+|\w+)\()");
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(header.begin(), header.end(), pattern); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}

bool has_record(std::string_view name) {
  const auto named = [&](const ferrite::Primitive* p) { return p->name == name; };
  const std::span<const ferrite::Primitive* const> lists[] = {ferrite::primitives(), ferrite::composites(),
                                                              ferrite::nn::operations(), ferrite::nn::composites()};
  return std::ranges::any_of(lists, [&](const auto& list) { return std::ranges::any_of(list, named); });
}

/// Returns the functions that have neither a record nor a reason to lack one.
std::set<std::string> unknown(const std::set<std::string>& functions) {
  std::set<std::string> names;
  for (const std::string& f : functions) {
    const auto spelled = kSpelled.find(f);
    if (!has_record(spelled == kSpelled.end() ? f : spelled->second) && !kWithout.contains(f)) names.insert(f);
  }
  return names;
}

std::set<std::string> public_functions() {
  // Headers of families of functions, one a line.
  static const std::set<std::string> headers = {"tensor/sorting.h",      "tensor/scatter.h",
                                                "tensor/cumulative.h",   "tensor/activations.h",     //
                                                "tensor/attention.h",    "tensor/selective_scan.h",  //
                                                "tensor/fft.h",                                      //
                                                "tensor/linalg.h",                                   //
                                                "tensor/math.h",                                     //
                                                "tensor/norms.h",                                    //
                                                "tensor/ops.h",                                      //
                                                "tensor/random.h",                                   //
                                                "tensor/sampling.h",                                 //
                                                "tensor/shapes.h",                                   //
                                                "tensor/signal.h",                                   //
                                                "nn/optim/adam_update.h"};
  std::set<std::string> all;
  for (const Source& s : sources())
    if (headers.contains(s.path) ||
        (is_public_header(s) && (s.path.starts_with("nn/recurrent/") || s.path.starts_with("nn/losses/"))))
      all.merge(functions_of(s.text));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(functions)

BOOST_AUTO_TEST_CASE(every_public_function_has_a_record) {
  const std::set<std::string> all = public_functions();
  BOOST_TEST(all.size() > 100U);
  for (const std::string& f : unknown(all)) BOOST_ERROR(f << " has no record; see CONTRIBUTING.md");
  BOOST_TEST(kWithout.size() * 8 <= all.size());  // few
  for (const auto& [f, reason] : kWithout) {
    BOOST_TEST(all.contains(f), f << " is no function");
    BOOST_TEST(!has_record(f), f << " has a record");
    BOOST_TEST(!reason.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_function_without_one_is_found) {
  const std::string header =
      "\n/// x twice\nTensor twice(const Tensor& x);\nTensors split(const Tensor& x);\nint f();\n";
  BOOST_TEST((unknown(functions_of(header)) == std::set<std::string>{"twice"}));
}

BOOST_AUTO_TEST_SUITE_END()
