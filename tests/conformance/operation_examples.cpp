// The list of all examples, and how pages show them.
#include "conformance/operation_examples.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace conformance {
namespace {

/// A tensor of more elements is shown as its shape and dtype.
constexpr std::int64_t kMostElements = 12;

std::string element_text(double x) {
  if (std::isnan(x)) return "NaN";
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.4g", x);
  return text;
}
std::string element_text(bool x) { return x ? "true" : "false"; }
std::string element_text(std::int64_t x) { return std::to_string(x); }
std::string element_text(std::int32_t x) { return std::to_string(x); }

/// Returns a tensor as nested lists.
std::string list_text(const ferrite::Tensor& x) {
  if (x.rank() == 0)
    return ferrite::visit_computed(x.dtype(), [&](auto zero) { return element_text(x.item<decltype(zero)>()); });
  std::string s;
  for (std::int64_t i = 0; i < x.size(0); ++i) s += (i ? ", " : "") + list_text(x[i]);
  return "[" + s + "]";
}

bool is_in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

std::vector<OperationExample> operation_examples() {
  std::vector<OperationExample> all;
  for (const auto& part : {arithmetic_examples(), activation_examples(), structured_examples(), random_examples(),
                           sequence_examples(), composed_examples(), recurrent_examples(), loss_examples()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

OperationExample example_of(std::string_view name) {
  for (const OperationExample& e : operation_examples())
    if (e.name == name) return e;
  throw std::out_of_range(std::string(name) + " has no example; add one to tests/conformance/operation_examples*.cpp");
}

std::string pytorch_of(const OperationExample& example) {
  const std::string text = example.pytorch;
  std::string marked;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 6, "torch.") != 0) {
      marked += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_in_a_name(text[end])) ++end;
    marked += "`" + text.substr(at, end - at) + "`";
    at = end;
  }
  return marked;
}

std::string code_of(const OperationExample& example) { return "`" + std::string(example.code) + "`"; }

std::string result_of(const ferrite::Tensors& value) {
  std::string s;
  for (const ferrite::Tensor& x : value)
    s += (s.empty() ? "`" : ", `") + (x.numel() > kMostElements ? x.spec().str() : list_text(x)) + "`";
  return s;
}

std::string in_table(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

}  // namespace conformance
