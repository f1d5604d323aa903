// Failing programs: made small, written as text, and read again.
#include "random/cases.h"

#include <fstream>
#include <limits>
#include <sstream>

#include "ferrite/compile/passes.h"
#include "ferrite/tensor/recorder.h"
#include "support/compare.h"

namespace cases {

using namespace ferrite;

namespace {

std::vector<Tensor> list_of(const Tensors& t) { return {t.begin(), t.end()}; }

/// Returns the values of all numbers of a graph, run node by node.
std::vector<Tensor> all_values(const Case& c) {
  const NewFrame frame;
  Graph g = c.graph;
  g.outputs.clear();
  for (ValueId v = 0; v < g.values.size(); ++v) g.outputs.push_back(v);
  return list_of(replay(g, list_of(c.inputs)));
}

/// Returns the same program with one result, without what that does not need.
Case with_result(const Case& c, ValueId v) {
  Case one = c;
  one.graph.outputs = {v};
  return one;
}

/// Returns the same program with a node's results given as inputs.
Case without_node(const Case& c, std::size_t node, const std::vector<Tensor>& values) {
  Case cut = c;
  for (const ValueId v : c.graph.nodes[node].out) {
    cut.graph.inputs.push_back(v);
    cut.inputs.push_back(values[v]);
  }
  cut.graph.nodes.erase(cut.graph.nodes.begin() + static_cast<std::ptrdiff_t>(node));
  return cut;
}

/// Returns the same program without dead code and unread inputs.
Case tidy(Case c) {
  passes::remove_dead_code(c.graph);
  std::vector<char> read(c.graph.values.size());
  for (const Graph::Node& n : c.graph.nodes)
    for (const ValueId v : n.in) read[v] = 1;
  for (const ValueId v : c.graph.outputs) read[v] = 1;
  Tensors inputs;
  std::vector<ValueId> numbers;
  for (std::size_t i = 0; i < c.graph.inputs.size(); ++i) {
    if (!read[c.graph.inputs[i]]) continue;
    inputs.push_back(c.inputs[i]);
    numbers.push_back(c.graph.inputs[i]);
  }
  c.inputs = inputs;
  c.graph.inputs = numbers;
  passes::remove_dead_code(c.graph);  // renumbers
  return c;
}

}  // namespace

std::string difference(const Case& c, const PlanOptions& options) {
  std::vector<Tensor> wanted, got;
  std::string refused;
  try {
    const NewFrame frame;
    wanted = list_of(replay(c.graph, list_of(c.inputs)));
  } catch (const Error& e) {
    refused = e.what();
  }
  try {
    got = list_of(Plan(c.graph, options).run(std::span<const Tensor>(c.inputs.data(), c.inputs.size())));
  } catch (const Error& e) {
    return refused == e.what() ? "" : "error '" + std::string(e.what()) + "' instead of '" + refused + "'";
  }
  if (!refused.empty()) return "no error instead of '" + refused + "'";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto same = support::identical(got[i], wanted[i]);
    if (same) continue;
    std::ostringstream s;
    s << "result " << i << ": " << same.message();
    return s.str();
  }
  return {};
}

Case reduced(Case c, const std::function<bool(const Case&)>& shows) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    c = tidy(std::move(c));
    const std::vector<Tensor> values = all_values(c);
    const auto attempt = [&](Case candidate) {
      candidate = tidy(std::move(candidate));
      if (candidate.graph.nodes.size() >= c.graph.nodes.size() || !shows(candidate)) return false;
      c = std::move(candidate);
      smaller = true;
      return true;
    };
    for (std::size_t i = 0; i < c.graph.nodes.size() && !smaller; ++i)
      for (const ValueId v : c.graph.nodes[i].out)
        if (attempt(with_result(c, v))) break;
    for (std::size_t i = 0; i < c.graph.nodes.size() && !smaller; ++i) (void)attempt(without_node(c, i, values));
  }
  return c;
}

std::string text(const Case& c) {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  Graph given;
  for (const Tensor& t : c.inputs) given.outputs.push_back(given.add_constant(t));
  return c.graph.str(kAll) + given.str(kAll);
}

Case parse(const std::string& text) {
  const std::size_t second = text.find("\n}\ngraph {") + 3;
  const Graph given = parse_graph(text.substr(second));
  Case c{parse_graph(text.substr(0, second)), {}};
  for (const ValueId v : given.outputs)
    for (const Graph::Constant& k : given.constants)
      if (k.value == v) c.inputs.push_back(k.tensor);
  return c;
}

Case read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  return parse(all.str());
}

std::string reduce_and_write(const std::string& folder, std::uint64_t seed, const Graph& g, const Tensors& inputs,
                             const PlanOptions& options) {
  const auto shows = [&](const Case& c) { return !difference(c, options).empty(); };
  const Case whole{g, inputs};
  if (!shows(whole)) return "nothing: the traced program has the bits of its nodes, so tracing is at fault";
  const Case small = reduced(whole, shows);
  const std::filesystem::path path = std::filesystem::path(folder) / (std::to_string(seed) + ".txt");
  std::ofstream(path) << text(small);
  return path.string() + " (" + std::to_string(small.graph.nodes.size()) + " of " + std::to_string(g.nodes.size()) +
         " operations)\n" + small.graph.str();
}

}  // namespace cases
