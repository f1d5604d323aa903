// The node tests that the ONNX project publishes: every case of an imported operation has the published numbers, eager
// and compiled (planned and fused). tests/onnx/published.py writes the cases into a folder that FERRITE_ONNX_CASES
// names; without it this is skipped.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

#include "case_folders.h"

namespace fs = std::filesystem;
using case_folders::Outcome;
using case_folders::tried;

namespace {

/// Cases whose published numbers the library does not compute, with the reason. Remove a case that passes.
const std::map<std::string, std::string> kKnown = {
    {"test_attention_3d_causal_bf16", "one unit in the last of 8 bits: sums rounded term by term"},
    {"test_attention_3d_causal_bf16_expanded", "the same"},
    {"test_attention_4d_causal_bf16", "the same"},
    {"test_attention_4d_causal_bf16_expanded", "the same"},
    {"test_attention_4d_causal_padded_kv_bf16", "the same"},
    {"test_attention_4d_causal_padded_kv_bf16_expanded", "the same"},
    {"test_attention_4d_padded_kv_bf16", "the same"},
    {"test_attention_4d_padded_kv_bf16_expanded", "the same"},
    {"test_dft_inverse", "1.9e-7, rounding of numpy in f32, where the sum is 0"},
    {"test_dft_inverse_opset19", "the same"},
    {"node_test_adam_multiple", "numbers of an epsilon that the file lacks; the newer file has it"},
    {"node_test_cast_FLOAT_to_BFLOAT16", "bfloat16 published as integers"},
    {"node_test_cast_BFLOAT16_to_FLOAT", "the same"},
    {"node_test_castlike_BFLOAT16_to_FLOAT", "the same"},
    {"node_test_castlike_BFLOAT16_to_FLOAT_expanded", "the same"},
    {"node_test_castlike_FLOAT_to_BFLOAT16", "an input of another shape than the file says"},
    {"node_test_castlike_FLOAT_to_BFLOAT16_expanded", "the same"},
};

/// Operations that are not imported, or not in this form, with the reason. Any other refusal fails the test.
const std::map<std::string, std::string> kOutOfScope = {
    {"ArrayFeatureExtractor", "of ai.onnx.ml"},
    {"Binarizer", "of ai.onnx.ml"},
    {"TreeEnsemble", "of ai.onnx.ml"},
    {"TfIdfVectorizer", "counts words"},
    {"ImageDecoder", "reads files of images"},
    {"Bernoulli", "draws numbers that the standard does not define"},
    {"RandomUniformLike", "the same"},
    {"Dropout", "the same, in training"},
    {"FlexAttention", "of ai.onnx.preview"},
    {"OptionalGetElement", "of optional values"},
    {"OptionalHasElement", "of optional values"},
    {"BitCast", "types are held in wider ones"},
    {"SequenceConstruct", "of sequences of tensors"},
    {"SequenceEmpty", "the same"},
    {"SplitToSequence", "the same"},
    {"Gradient", "gradients are those of the library"},
    {"NonMaxSuppression", "its shape depends on data"},
    {"RoiAlign", "of images alone"},
    {"DeformConv", "of images alone"},
};

/// Returns the operation that an error names: `(Name)`.
std::string operation_of(const std::string& refusal) {
  const std::size_t at = refusal.find(" ("), end = refusal.find("):", at);
  return at == std::string::npos || end == std::string::npos ? "other" : refusal.substr(at + 2, end - at - 2);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(published)

BOOST_AUTO_TEST_CASE(node_tests_give_the_published_numbers) {
  const char* const root = case_folders::folder_in("FERRITE_ONNX_CASES");
  if (!root) return;
  std::size_t passed = 0, wrong = 0, eager = 0;
  std::map<std::string, std::size_t> refused;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "model.onnx")) continue;
    const Outcome o = tried(entry.path());
    const std::string name = entry.path().filename().string();
    const bool known = kKnown.contains(name);
    BOOST_TEST(!(known && o.wrong.empty() && o.refused.empty()), name + " gives the published numbers now");
    if (!o.wrong.empty()) {
      ++wrong;
      if (!known) BOOST_ERROR(name + ": " + o.wrong);
    } else if (!o.refused.empty()) {
      const bool type = o.refused.find("elements of type") != std::string::npos;
      const std::string operation = type ? "types of 8 bits and less" : operation_of(o.refused);
      ++refused[operation];
      if (!type && !known && !kOutOfScope.contains(operation)) BOOST_ERROR(name + " is refused: " + o.refused);
      if (std::getenv("FERRITE_ONNX_REFUSALS")) std::cout << name << ": " << o.refused << '\n';
    } else {
      ++passed;
      if (!o.eager.empty()) {
        ++eager;
        if (std::getenv("FERRITE_ONNX_REFUSALS")) std::cout << "eager alone: " << name << ": " << o.eager << '\n';
      }
    }
  }
  std::size_t all = 0;
  for (const auto& [name, n] : refused) all += n;
  std::cout << passed << " published cases passed, " << eager << " of them eager alone, " << wrong << " wrong, " << all
            << " refused by name:";
  for (const auto& [name, n] : refused) std::cout << ' ' << name << ' ' << n;
  std::cout << '\n';
  BOOST_TEST(passed > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
