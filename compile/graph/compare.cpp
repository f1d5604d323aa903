/// Whether two programs are the same, and where they first differ.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

bool same_constant(const Tensor& a, const Tensor& b) {
  if (a.identity() == b.identity()) return true;
  if (a.spec() != b.spec()) return false;
  const Tensor x = dense(a), y = dense(b);
  const std::int64_t bytes = x.numel() * size_of(x.dtype());
  return bytes == 0 || std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(bytes)) == 0;
}

bool same_graph(const Graph& a, const Graph& b) {
  if (a.values != b.values || a.inputs != b.inputs || a.outputs != b.outputs || a.nodes.size() != b.nodes.size() ||
      a.constants.size() != b.constants.size())
    return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Graph::Node &m = a.nodes[i], &n = b.nodes[i];
    if (m.op != n.op || m.scope != n.scope || !std::ranges::equal(m.in, n.in) || !std::ranges::equal(m.out, n.out) ||
        !m.attrs.same_bits(n.attrs))
      return false;
  }
  for (std::size_t i = 0; i < a.constants.size(); ++i)
    if (a.constants[i].value != b.constants[i].value || !same_constant(a.constants[i].tensor, b.constants[i].tensor))
      return false;
  return true;
}

namespace {

/// The first line in which two texts differ, as one text for the error.
std::string first_line(const std::string& was, const std::string& is) {
  std::istringstream a(was), b(is);
  std::string x, y;
  const auto next = [](std::istringstream& s, std::string& line) {
    if (!std::getline(s, line)) line = "nothing";
    line.erase(0, line.find_first_not_of(' '));
  };
  do next(a, x), next(b, y);
  while (x == y);
  return "'" + x + "' is now '" + y + "'";
}

}  // namespace

std::string first_difference(const Graph& was, const Graph& is) {
  const std::string a = was.str(), b = is.str();
  if (a != b) return first_line(a, b);
  for (std::size_t i = 0; i < was.variables.size(); ++i)
    if (!(was.variables[i] == is.variables[i]))
      return "another variable '" + is.variables[i].name() + "' is read or written";
  for (std::size_t i = 0; i < was.constants.size(); ++i)
    if (!same_constant(was.constants[i].tensor, is.constants[i].tensor))
      return "the captured tensor %" + std::to_string(is.constants[i].value) + " " +
             is.constants[i].tensor.spec().str() + " has other elements";
  return {};
}

}  // namespace ferrite::detail
