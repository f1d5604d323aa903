// Oracles and samples of tensor/ops/product.cpp.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::einsum {
namespace {

/// The axes of the operands and of the result, one character each: letters, and digits for the axes of "...", counted
/// from the last.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Returns the digits of an ellipsis: "21" for two axes.
std::string ellipsis(int axes) {
  std::string s;
  for (int k = axes; k > 0; --k) s += static_cast<char>('0' + k);
  return s;
}

Equation parse(std::string text, std::span<const Dense> in) {
  Equation e;
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  int most = 0;
  const auto spread = [](std::string& side, int axes) {
    if (const std::size_t dots = side.find("..."); dots != std::string::npos) side.replace(dots, 3, ellipsis(axes));
  };
  std::size_t begin = 0;
  for (const Dense& x : in) {
    const std::size_t end = std::min(left.find(',', begin), left.size());
    std::string& side = e.operands.emplace_back(left.substr(begin, end - begin));
    const auto letters = std::ranges::count_if(side, [](char c) { return c != '.'; });
    const int rest = x.shape.rank() - static_cast<int>(letters);
    spread(side, rest);
    most = std::max(most, rest);
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    e.result = text.substr(arrow + 2);
    spread(e.result, most);
    return e;
  }
  // Without a result: the letters that occur once, in order, after the axes of "...".
  e.result = ellipsis(most);
  for (char c = 'A'; c <= 'z'; ++c)
    if (std::ranges::count(left, c) == 1) e.result += c;
  return e;
}

struct EinsumAttrs {
  Label equation{};
  static constexpr auto fields = attr_list(attr("equation", &EinsumAttrs::equation));
};

struct Einsum {
  using Attributes = EinsumAttrs;
  static constexpr auto name = "einsum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a);
  static std::vector<Sample> samples();
};

void Einsum::oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
  const Equation e = parse(std::string(a.equation.text()), in);
  std::map<char, std::int64_t> extents, at;
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::size_t i = 0; i < e.operands[k].size(); ++i) {
      std::int64_t& n = extents.try_emplace(e.operands[k][i], 1).first->second;
      if (in[k].shape[static_cast<int>(i)] != 1) n = in[k].shape[static_cast<int>(i)];
    }
  const auto index = [&](const std::string& axes, const Shape& shape) {
    Shape i;
    for (std::size_t k = 0; k < axes.size(); ++k) i.push_back(shape[static_cast<int>(k)] == 1 ? 0 : at[axes[k]]);
    return i;
  };
  const std::vector<std::pair<char, std::int64_t>> loops(extents.begin(), extents.end());
  const auto visit = [&](const auto& self, std::size_t depth) -> void {
    if (depth < loops.size()) {
      for (std::int64_t i = 0; i < loops[depth].second; ++i) {
        at[loops[depth].first] = i;
        self(self, depth + 1);
      }
      return;
    }
    double product = 1;
    for (std::size_t k = 0; k < in.size(); ++k) product *= in[k].at(index(e.operands[k], in[k].shape));
    out[0].at(index(e.result, out[0].shape)) += product;
  };
  visit(visit, 0);
}

std::vector<Sample> Einsum::samples() {
  const auto sample = [](Label equation, std::initializer_list<Shape> shapes) {
    Sample s{.attrs = EinsumAttrs{equation}};
    for (const Shape& shape : shapes) s.inputs.push_back({shape});
    return s;
  };
  return {sample("ij,jk->ik", {{2, 3}, {3, 4}}),
          sample("bij,bjk->bik", {{2, 3, 2}, {2, 2, 3}}),
          sample("ii->i", {{3, 3}}),
          sample("ii", {{3, 3}}),
          sample("ij->ji", {{2, 3}}),
          sample("ij->", {{2, 3}}),
          sample("i,j->ji", {{2}, {3}}),
          sample("i,i", {{4}, {4}}),
          sample("ba", {{2, 3}}),
          sample("...ij,...jk->...ik", {{2, 1, 2, 3}, {4, 3, 2}}),
          sample("i...,...", {{2, 3}, {1}}),
          sample("ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 2}}),
          sample("iji,jk->kj", {{2, 3, 2}, {3, 2}}),
          sample("bij,ik,bk->bj", {{2, 3, 2}, {3, 4}, {2, 4}}),
          sample("ij,ij->ij", {{2, 3}, {1, 3}}),
          sample(",i->i", {{}, {3}}),
          sample("iij->j", {{1, 2, 3}}),
          sample("ij,jk->ik", {{2, 0}, {0, 3}}),
          sample("ij,k->i", {{2, 3}, {4}})};
}

const Added added = add<Einsum>();

}  // namespace
}  // namespace oracles::einsum
