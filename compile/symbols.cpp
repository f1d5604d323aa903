/// Numbers, types and graphs whose extents and constants depend on symbols.
#include "ferrite/compile/symbols.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/symbolic_number.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/extents.h"

namespace ferrite {

// ---- numbers, and how they are found from their values ----------------------------------------------------

namespace {

using detail::checked_add, detail::checked_mul, detail::mul_overflows;
using Sizes = std::vector<std::int64_t>;

std::int64_t product(std::uint32_t symbols, std::span<const std::int64_t> sizes) {
  std::int64_t p = 1;
  for (std::size_t k = 0; k < SymbolicNumber::kMaxSymbols; ++k) {
    if ((symbols >> k & 1) == 0) continue;
    if (k >= sizes.size())
      throw ValueError("symbols: " + std::to_string(sizes.size()) + " sizes given, symbol " + std::to_string(k) +
                       " has none");
    p = checked_mul(p, sizes[k], "symbols");
  }
  return p;
}

long double real_product(std::uint32_t symbols, std::span<const std::int64_t> sizes) {
  long double p = 1;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if ((symbols >> k & 1) != 0) p *= static_cast<long double>(sizes[k]);
  return p;
}

/// Solves for the factors x of some products, from differences to the first values: rows of products, then the value.
/// Returns an empty list where the rows do not determine them.
std::vector<long double> solved(std::vector<std::vector<long double>> rows, std::size_t unknowns) {
  for (std::size_t c = 0; c < unknowns; ++c) {
    const auto below = [c](const auto& a, const auto& b) { return std::fabs(a[c]) < std::fabs(b[c]); };
    const auto pivot = std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(c), rows.end(), below);
    if (pivot == rows.end() || std::fabs((*pivot)[c]) < 0.01L) return {};
    std::swap(*pivot, rows[c]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == c) continue;
      const long double times = rows[r][c] / rows[c][c];
      for (std::size_t k = c; k <= unknowns; ++k) rows[r][k] -= times * rows[c][k];
    }
  }
  std::vector<long double> x;
  for (std::size_t c = 0; c < unknowns; ++c) x.push_back(rows[c][unknowns] / rows[c][c]);
  return x;
}

/// Calls f(list) with each choice of `count` of these products, in order, until it returns true.
template <class F>
bool each_choice(std::span<const std::uint32_t> products, std::size_t count, std::vector<std::uint32_t>& chosen,
                 const F& f) {
  if (chosen.size() == count) return f(chosen);
  for (std::size_t i = 0; i < products.size(); ++i) {
    chosen.push_back(products[i]);
    if (each_choice(products.subspan(i + 1), count, chosen, f)) return true;
    chosen.pop_back();
  }
  return false;
}

/// Returns all products of symbols, products of few symbols first.
std::vector<std::uint32_t> products_of(std::size_t symbols) {
  std::vector<std::uint32_t> all(((std::size_t{1} << symbols) - 1));
  std::iota(all.begin(), all.end(), 1U);
  std::ranges::stable_sort(all, {}, [](std::uint32_t set) { return std::popcount(set); });
  return all;
}

/// Returns the divisors of the product of `steps`, up to 4096: those that a number may have.
std::vector<std::int64_t> divisors_of(std::span<const std::int64_t> steps) {
  std::int64_t all = 1;
  for (const std::int64_t s : steps)
    if (mul_overflows(all, s, all)) return {1};
  constexpr std::int64_t kMost = 4096;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(all, kMost); ++d)
    if (all % d == 0) divisors.push_back(d);
  return divisors;
}

}  // namespace

SymbolicNumber SymbolicNumber::symbol(std::size_t k) {
  if (k >= kMaxSymbols)
    throw ValueError("symbols: at most " + std::to_string(kMaxSymbols) + " are possible, got symbol " +
                     std::to_string(k));
  SymbolicNumber n;
  n.terms_.push_back({std::uint32_t{1} << k, 1});
  return n;
}

std::vector<SymbolicNumber> SymbolicNumber::products(std::size_t symbols) {
  std::vector<SymbolicNumber> all;
  for (const std::uint32_t set : products_of(symbols)) {
    all.emplace_back();
    all.back().terms_.push_back({set, 1});
  }
  return all;
}

std::optional<SymbolicNumber> SymbolicNumber::with_values(std::span<const Sizes> sizes,
                                                          std::span<const std::int64_t> values,
                                                          std::span<const std::int64_t> steps) {
  if (std::ranges::all_of(values, [&](std::int64_t v) { return v == values[0]; })) return SymbolicNumber(values[0]);
  const std::size_t symbols = sizes[0].size();
  std::vector<std::uint32_t> products = products_of(symbols);
  if (symbols > 4) std::erase_if(products, [](std::uint32_t set) { return std::popcount(set) > 2; });
  const std::vector<std::int64_t> divisors = divisors_of(steps);

  SymbolicNumber n;
  /// Returns whether the number with these factors, times `divisor`, has all values.
  const auto fits = [&](const std::vector<std::uint32_t>& chosen, const std::vector<long double>& x) {
    n.terms_.clear();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const long double factor = x[i] * static_cast<long double>(n.divisor_), whole = std::round(factor);
      if (whole == 0 || std::fabs(whole) > 0x1p62L || std::fabs(factor - whole) > 1e-6L) return false;
      n.terms_.push_back({chosen[i], static_cast<std::int64_t>(whole)});
      std::int64_t apart = n.terms_.back().factor;
      for (std::size_t k = 0; k < steps.size(); ++k)
        if (n.terms_.back().has(k) && mul_overflows(apart, steps[k], apart)) return false;
      if (apart % n.divisor_ != 0) return false;
    }
    std::ranges::sort(n.terms_);
    try {
      n.more_ = 0;
      n.more_ = checked_add(checked_mul(n.divisor_, values[0], "symbols"), -n.dividend(sizes[0]), "symbols");
      for (std::size_t t = 0; t < values.size(); ++t)
        if (n.dividend(sizes[t]) != checked_mul(n.divisor_, values[t], "symbols")) return false;
    } catch (const ShapeError&) {
      return false;
    }
    return true;
  };
  const auto found = [&](const std::vector<std::uint32_t>& chosen) {
    if (values.size() < chosen.size() + 2) return false;
    std::vector<std::vector<long double>> rows;
    for (std::size_t t = 1; t < values.size(); ++t) {
      rows.emplace_back();
      for (const std::uint32_t set : chosen)
        rows.back().push_back(real_product(set, sizes[t]) - real_product(set, sizes[0]));
      rows.back().push_back(static_cast<long double>(values[t]) - static_cast<long double>(values[0]));
    }
    const std::vector<long double> x = solved(std::move(rows), chosen.size());
    if (x.empty()) return false;
    for (const std::int64_t d : divisors) {
      n.divisor_ = d;
      if ((d == 1 || values.size() >= chosen.size() + 3) && fits(chosen, x)) return true;
    }
    return false;
  };
  const std::size_t most = symbols <= 3 ? 3 : 2;
  std::vector<std::uint32_t> chosen;
  for (std::size_t count = 1; count <= std::min(most, products.size()); ++count)
    if (each_choice(products, count, chosen, found)) return n;
  if (symbols == 3 && found(products)) return n;
  return std::nullopt;
}

std::vector<SymbolicNumber> SymbolicNumber::rounded_with_values(std::span<const Sizes> sizes,
                                                                std::span<const std::int64_t> values) {
  constexpr std::int64_t kMostDivisor = 8;
  constexpr long double kMostFactor = 1 << 20, kMostSize = 0x1p40L;
  const auto too_large = [&](std::int64_t v) { return std::abs(static_cast<long double>(v)) > kMostSize; };
  if (std::ranges::any_of(values, too_large)) return {};
  std::vector<SymbolicNumber> found;
  for (const std::uint32_t set : products_of(sizes[0].size())) {
    const auto of = [set](const Sizes& s) { return real_product(set, s); };
    const auto near = std::ranges::min_element(sizes, {}, of), far = std::ranges::max_element(sizes, {}, of);
    if (of(*far) > kMostSize || of(*near) == of(*far)) continue;
    const auto value_at = [&](auto at) {
      return static_cast<long double>(values[static_cast<std::size_t>(at - sizes.begin())]);
    };
    const long double slope = (value_at(far) - value_at(near)) / (of(*far) - of(*near));
    for (std::int64_t d = 2; d <= kMostDivisor; ++d) {
      const long double whole = std::round(slope * static_cast<long double>(d));
      if (whole == 0 || std::fabs(whole) > kMostFactor) continue;
      const auto factor = static_cast<std::int64_t>(whole);
      if (std::gcd(factor, d) != 1) continue;
      std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
      for (std::size_t t = 0; t < values.size(); ++t) {
        const std::int64_t rest = d * values[t] - factor * product(set, sizes[t]);
        least = std::max(least, rest);
        most = std::min(most, rest + d - 1);
      }
      for (std::int64_t more = least; more <= most; ++more) {
        found.emplace_back(more);
        found.back().terms_.push_back({set, factor});
        found.back().divisor_ = d;
      }
    }
  }
  return found;
}

std::int64_t SymbolicNumber::dividend(std::span<const std::int64_t> sizes) const {
  std::int64_t sum = more_;
  for (const Term& t : terms_)
    sum = checked_add(sum, checked_mul(t.factor, product(t.symbols, sizes), "symbols"), "symbols");
  return sum;
}

std::int64_t SymbolicNumber::at(std::span<const std::int64_t> sizes) const {
  const std::int64_t sum = dividend(sizes);
  return sum / divisor_ - (sum % divisor_ < 0 ? 1 : 0);
}

bool SymbolicNumber::may_be_negative() const {
  const bool falls = std::ranges::any_of(terms_, [](const Term& t) { return t.factor < 0; });
  return falls || dividend(Sizes(kMaxSymbols, 1)) < 0;
}

std::string SymbolicNumber::str(std::span<const std::string> symbols) const {
  std::string text;
  const auto add = [&](std::int64_t factor, const std::string& product) {
    if (!text.empty()) text += factor < 0 ? " - " : " + ";
    std::string term = text.empty() || factor > 0 ? std::to_string(factor) : std::to_string(factor).substr(1);
    if (!product.empty() && (term == "1" || term == "-1")) term.pop_back();
    if (!product.empty() && !term.empty() && term != "-") term += "*";
    text += term + product;
  };
  for (auto t = terms_.rbegin(); t != terms_.rend(); ++t) {
    std::string product;
    for (std::size_t k = 0; k < symbols.size(); ++k)
      if (t->has(k)) product += (product.empty() ? "" : "*") + symbols[k];
    add(t->factor, product);
  }
  if (more_ != 0 || terms_.empty()) add(more_, "");
  return divisor_ == 1 ? text : "(" + text + ")/" + std::to_string(divisor_);
}

// ---- types and graphs -------------------------------------------------------------------------------------

using detail::checked_add;

// ---- types ---------------------------------------------------------------------------------------------

Spec SymbolicSpec::at(std::span<const std::int64_t> sizes) const {
  Spec spec{{}, dtype};
  for (const SymbolicNumber& n : shape) spec.shape.push_back(n.at(sizes));
  return spec;
}

std::string SymbolicSpec::str(std::span<const std::string> symbols) const {
  return std::string(name_of(dtype)) + shape_str(symbols);
}

std::string SymbolicSpec::shape_str(std::span<const std::string> symbols) const {
  std::string text = "[";
  for (const SymbolicNumber& n : shape) text += (text.size() > 1 ? ", " : "") + n.str(symbols);
  return text + "]";
}

// ---- trials --------------------------------------------------------------------------------------------

SymbolicTrial::SymbolicTrial(std::vector<std::string> symbols, const std::vector<std::int64_t>& sizes)
    : symbols_(std::move(symbols)) {
  const std::size_t n = symbols_.size();
  if (n == 0 || n > kMaxSymbols || sizes.size() != n)
    throw ValueError("symbols: " + std::to_string(n) + " symbols with " + std::to_string(sizes.size()) +
                     " sizes; needs a size for each, and 1 to " + std::to_string(kMaxSymbols) + " symbols");
  for (const std::int64_t size : sizes)
    if (size < 1) throw ValueError("symbols: a size must be positive, got " + std::to_string(size));
  for (std::size_t set = 0; set < std::size_t{1} << n; ++set) {
    sizes_.push_back(sizes);
    for (std::size_t k = 0; k < n; ++k)
      if (set >> k & 1) sizes_.back()[k] = checked_add(sizes[k], 1, "symbols");
  }
  sizes_.push_back(sizes);
  for (std::size_t k = 0; k < n; ++k)
    sizes_.back()[k] = checked_add(sizes[k], 3 + 2 * static_cast<std::int64_t>(k), "symbols");
}

std::optional<SymbolicNumber> SymbolicTrial::number(std::span<const std::int64_t> values) const {
  return SymbolicNumber::with_values(sizes_, values);
}

std::optional<SymbolicSpec> SymbolicTrial::spec(std::span<const Spec> specs) const {
  SymbolicSpec found;
  found.dtype = specs[0].dtype;
  for (const Spec& s : specs)
    if (s.dtype != found.dtype || s.shape.rank() != specs[0].shape.rank()) return {};
  for (int axis = 0; axis < specs[0].shape.rank(); ++axis) {
    std::vector<std::int64_t> values;
    for (const Spec& s : specs) values.push_back(s.shape[axis]);
    const std::optional<SymbolicNumber> n = number(values);
    if (!n) return {};
    found.shape.push_back(*n);
  }
  return found;
}

// ---- graphs --------------------------------------------------------------------------------------------

namespace {

std::string place_of(const Graph::Node& node, const std::string& where) {
  const std::string path(node.scope.path());
  return (path.empty() ? where : "in " + path + ": ") + std::string(node.op->name);
}

/// Returns the whole numbers in a constant; nullopt if it holds none.
std::optional<std::vector<std::int64_t>> whole_numbers(const AttrValue& v) {
  const auto whole = [](double x) -> std::optional<std::vector<std::int64_t>> {
    constexpr double kExact = 9007199254740992;  // 2^53
    if (!(std::abs(x) <= kExact) || std::trunc(x) != x) return {};
    return std::vector{static_cast<std::int64_t>(x)};
  };
  if (const auto* i = std::get_if<std::int64_t>(&v)) return std::vector{*i};
  if (const auto* x = std::get_if<double>(&v)) return whole(*x);
  if (const auto* s = std::get_if<Scalar>(&v)) return s->is_floating() ? whole(s->real()) : std::vector{s->integer()};
  if (const auto* list = std::get_if<Shape>(&v)) return std::vector(list->begin(), list->end());
  return {};
}

/// Replaces a whole number in a constant.
void put_number(AttrValue& v, int element, std::int64_t n) {
  if (auto* i = std::get_if<std::int64_t>(&v)) *i = n;
  if (auto* x = std::get_if<double>(&v)) *x = static_cast<double>(n);
  if (auto* s = std::get_if<Scalar>(&v)) *s = s->is_floating() ? Scalar(static_cast<double>(n)) : Scalar(n);
  if (auto* list = std::get_if<Shape>(&v)) (*list)[element] = n;
}

/// Returns whether two programs have equally many of everything, and the same inputs, outputs and variables.
bool same_form(const Graph& a, const Graph& b) {
  if (a.values.size() != b.values.size() || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.nodes.size() != b.nodes.size() || a.variables.size() != b.variables.size() ||
      a.reads.size() != b.reads.size() || a.writes.size() != b.writes.size() ||
      a.constants.size() != b.constants.size())
    return false;
  const auto same_variables = [](const Graph::VariableValue& x, const Graph::VariableValue& y) {
    return x.variable == y.variable && x.value == y.value;
  };
  return std::ranges::equal(a.variables, b.variables) && std::ranges::equal(a.reads, b.reads, same_variables) &&
         std::ranges::equal(a.writes, b.writes, same_variables);
}

void check_form(const Graph& first, const Graph& other, const std::string& where) {
  if (!same_form(first, other))
    throw TraceError(where + "the program has another form at other sizes: " + std::to_string(first.nodes.size()) +
                     " and " + std::to_string(other.nodes.size()) +
                     " operations; steps in a C++ loop need nn::Form::scan or fused");
  for (std::size_t i = 0; i < first.constants.size(); ++i)
    if (first.constants[i].value != other.constants[i].value ||
        !detail::same_constant(first.constants[i].tensor, other.constants[i].tensor))
      throw TraceError(where + "the constant %" + std::to_string(first.constants[i].value) + " " +
                       first.constants[i].tensor.spec().str() + " is another tensor at other sizes");
}

void check_node(const Graph::Node& first, const Graph::Node& other, const std::string& place) {
  if (first.op != other.op || !std::ranges::equal(first.in, other.in) || !std::ranges::equal(first.out, other.out) ||
      (first.attrs.body == nullptr) != (other.attrs.body == nullptr))
    throw TraceError(place + " is " + std::string(other.op->name) + " or has other operands at other sizes");
}

}  // namespace

std::vector<SymbolicGraph::Number> SymbolicGraph::numbers_of(const SymbolicTrial& trial,
                                                             std::span<const Graph* const> graphs, std::size_t node,
                                                             std::size_t field, const std::string& place) {
  const auto value = [&](const Graph* g) { return g->nodes[node].attrs.at(field); };
  const AttrValue* const first = value(graphs[0]);
  const auto differs = [&](const Graph* g) {
    return (first == nullptr) != (value(g) == nullptr) || (first && !Attrs::same_bits(*first, *value(g)));
  };
  if (std::none_of(graphs.begin(), graphs.end(), differs)) return {};
  std::vector<std::vector<std::int64_t>> lists;  // by trial: its whole numbers
  for (const Graph* g : graphs) {
    const auto list = value(g) ? whole_numbers(*value(g)) : std::nullopt;
    if (list && (lists.empty() || lists[0].size() == list->size())) lists.push_back(*list);
  }
  bool found = lists.size() == graphs.size();
  std::vector<Number> numbers;
  for (std::size_t e = 0; found && e < lists[0].size(); ++e) {
    std::vector<std::int64_t> values;
    for (const auto& list : lists) values.push_back(list[e]);
    const std::optional<SymbolicNumber> n = trial.number(values);
    found = n.has_value();
    if (n && !n->constant()) numbers.push_back({node, field, static_cast<int>(e), *n});
  }
  if (!found)
    throw TraceError(place + " has a constant that is not a sum of products of symbols: " +
                     graphs.front()->nodes[node].attrs.str() + "; " + graphs.back()->nodes[node].attrs.str());
  return numbers;
}

SymbolicSpec SymbolicGraph::spec_of(const SymbolicTrial& trial, std::span<const Graph* const> graphs, std::size_t value,
                                    const std::string& where) {
  std::vector<Spec> specs;
  for (const Graph* g : graphs) specs.push_back(g->values[value]);
  if (const std::optional<SymbolicSpec> spec = trial.spec(specs)) return *spec;
  std::string types;
  for (const Spec& s : specs) types += (types.empty() ? "" : ", ") + s.str();
  throw TraceError(where + "the type of %" + std::to_string(value) + " is no sum of products of symbols: " + types);
}

SymbolicGraph::Table SymbolicGraph::compare(const SymbolicTrial& trial, std::span<const Graph* const> graphs,
                                            const std::string& where) {
  const Graph& first = *graphs[0];
  for (const Graph* g : graphs) check_form(first, *g, where);
  Table table;
  for (std::size_t v = 0; v < first.values.size(); ++v) table.values.push_back(spec_of(trial, graphs, v, where));
  for (std::size_t i = 0; i < first.nodes.size(); ++i) {
    const Graph::Node& node = first.nodes[i];
    const std::string place = place_of(node, where);
    for (const Graph* g : graphs) check_node(node, g->nodes[i], place);
    for (std::size_t field = 0; field < Attrs::kMaxFields; ++field) {
      const std::vector<Number> numbers = numbers_of(trial, graphs, i, field, place);
      table.numbers.insert(table.numbers.end(), numbers.begin(), numbers.end());
    }
    if (!detail::find_body(node.attrs)) continue;
    std::vector<const Graph*> bodies;
    for (const Graph* g : graphs) bodies.push_back(&detail::Body::of(g->nodes[i].attrs).graph());
    const bool same =
        std::all_of(bodies.begin(), bodies.end(), [&](const Graph* g) { return detail::same_graph(*bodies[0], *g); });
    if (same) continue;
    if (detail::find_scan(node.op->name) != node.op)
      throw TraceError(place + ": what it runs depends on the symbols; call it as it is, not compiled");
    table.scans.push_back(i);
    table.bodies.push_back(compare(trial, bodies, place + ": "));
  }
  return table;
}

Graph SymbolicGraph::put(const Graph& graph, const Table& table, std::span<const std::int64_t> sizes) {
  Graph g = graph;
  for (std::size_t v = 0; v < g.values.size(); ++v) g.values[v] = table.values[v].at(sizes);
  for (const Number& n : table.numbers) {
    AttrValue value = *g.nodes[n.node].attrs.at(n.field);
    put_number(value, n.element, n.value.at(sizes));
    g.nodes[n.node].attrs.replace(n.field, value);
  }
  for (std::size_t k = 0; k < table.scans.size(); ++k) {
    Attrs& attrs = g.nodes[table.scans[k]].attrs;
    detail::ScanBody::give(attrs, put(detail::Body::of(attrs).graph(), table.bodies[k], sizes));
  }
  return g;
}

Graph SymbolicGraph::at(const std::vector<std::int64_t>& sizes) const {
  if (sizes.size() != symbols_.size())
    throw ValueError("symbols: the program has " + std::to_string(symbols_.size()) + ", got " +
                     std::to_string(sizes.size()) + " sizes");
  for (const std::int64_t size : sizes)
    if (size < 1) throw ValueError("symbols: a size must be positive, got " + std::to_string(size));
  Graph g = put(graph_, table_, sizes);
  g.validate();
  return g;
}

SymbolicGraph trace_symbolic(const std::function<Tensors(const Tensors&)>& f, std::vector<std::string> symbols,
                             const std::vector<SymbolicSpec>& inputs, const std::vector<std::int64_t>& sizes) {
  const SymbolicTrial trial(std::move(symbols), sizes);
  std::vector<Graph> graphs;
  for (const auto& at : trial.sizes()) {
    std::vector<Spec> specs;
    for (const SymbolicSpec& s : inputs) specs.push_back(s.at(at));
    graphs.push_back(trace(f, specs));
  }
  std::vector<const Graph*> all;
  for (const Graph& g : graphs) all.push_back(&g);
  SymbolicGraph result;
  result.table_ = SymbolicGraph::compare(trial, all, "");
  result.symbols_ = trial.symbols();
  result.graph_ = std::move(graphs[0]);
  return result;
}

}  // namespace ferrite
