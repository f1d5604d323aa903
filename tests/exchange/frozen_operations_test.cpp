/// Programs of every operation, written as C and compared with the library bit by bit. Some have no form in C: they are
/// refused by name.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>
#include <set>

#include "exchange/program_cases.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/freeze.h"
#include "support/frozen.h"

namespace {

using namespace ferrite;
using exchange_test::ProgramCase;
using Bytes = std::vector<std::byte>;

/// Operations that have no form in C, some of them only for certain attributes or types.
const std::set<std::string, std::less<>> kWithoutC{
    // draws, decompositions and losses over alignments
    "beta", "ctc_loss", "ctc_loss_grad", "det", "eigh", "exponential", "gamma", "gumbel", "laplace", "normal",
    "permutation", "poisson", "qr", "randint", "rnnt_loss", "rnnt_loss_grad", "slogdet", "solve", "solve_triangular",
    "truncated_normal", "uniform",
    // functions, windows and scatters that nets seldom have
    "convolution_weights", "digamma", "erfinv", "filter_logits", "fold_windows", "logcumsumexp", "nonzero", "polygamma",
    "resample", "resample_gradient", "scatter_extremum", "scatter_prod", "scatter_prod_others", "trigamma",
    "unfold_windows",
    // gradients of scans, and scans with lengths or resets
    "linear_scan", "linear_scan_grad", "min_gru_scan", "min_gru_scan_grad", "min_lstm_scan", "min_lstm_scan_grad",
    "selective_scan", "selective_scan_grad",
    // gradients by themselves, which read what the operation before them saves
    "gru_reset_before_sequence_grad", "gru_sequence_grad", "lstm_sequence_grad", "peephole_lstm_sequence_grad",
    "rnn_relu_sequence_grad", "rnn_sequence_grad",
    // types that are only stored, truth values, lengths with large prime factors
    "cast", "fft", "irfft", "pad", "rank_index", "rfft", "sort", "topk"};

/// Several cases as one C function, whose inputs are those of the first case, then those of the second, and so on.
struct Group {
  std::vector<ProgramCase> cases;

  Tensors arguments() const {
    Tensors all;
    for (const ProgramCase& c : cases)
      for (const Tensor& x : c.arguments) all.push_back(x);
    return all;
  }
  Tensors results() const {
    Tensors all;
    for (const ProgramCase& c : cases)
      for (const Tensor& x : c.results) all.push_back(x);
    return all;
  }
  Tensors operator()(const Tensors& in) const {
    Tensors all;
    std::size_t next = 0;
    for (const ProgramCase& c : cases) {
      for (const Tensor& y : replay(c.graph, std::span<const Tensor>(in.data() + next, c.arguments.size())))
        all.push_back(y);
      next += c.arguments.size();
    }
    return all;
  }
};

exchange::FrozenNet frozen_group(const Group& g, const std::string& name) {
  std::vector<Spec> specs;
  for (const Tensor& x : g.arguments()) specs.push_back(x.spec());
  return exchange::freeze(g, specs, {.name = name});
}

/// Returns elements as C reads them, in memory that ends with the last one. Truth values have `mask` bytes.
Bytes in_c(const Tensor& t, std::size_t mask) {
  const Tensor x = contiguous(t);
  const auto n = static_cast<std::size_t>(x.numel());
  const bool truth = x.dtype() == Dtype::boolean;
  Bytes all(n * (truth ? mask : static_cast<std::size_t>(size_of(x.dtype()))));
  if (!truth) {
    std::copy_n(x.raw(), all.size(), all.data());  // of empty tensors, too, which memcpy must not be given
  } else {
    for (std::size_t i = 0; i < n; ++i) std::memset(all.data() + i * mask, x.raw()[i] == std::byte{0} ? 0 : 0xFF, mask);
  }
  return all;
}

/// Returns whether elements have equal bits; any NaN is equal to any other.
bool equal(const Bytes& a, const Bytes& b, Dtype dtype) {
  const auto alike = [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
      T x, y;
      std::memcpy(&x, a.data() + i, sizeof x), std::memcpy(&y, b.data() + i, sizeof y);
      if (std::memcmp(&x, &y, sizeof x) != 0 && !(x != x && y != y)) return false;
    }
    return true;
  };
  if (dtype == Dtype::f32) return alike(0.0F);
  return dtype == Dtype::f64 ? alike(0.0) : a == b;
}

/// Groups that are compiled together, and a function for each that takes addresses in one array.
class Groups {
 public:
  void add(Group g) {
    const std::string name = "group" + std::to_string(groups_.size());
    exchange::FrozenNet net = frozen_group(g, name);
    const bool wide = net.header.find("typedef int64_t") != std::string::npos;
    const std::size_t n = g.arguments().size() + g.results().size();
    std::string call = "int " + name + "_call(void *self, void **at);\nint " + name +
                       "_call(void *self, void **at) {\n  (void)at;\n  return " + name + "_run(self";
    for (std::size_t k = 0; k < n; ++k) call += ", at[" + std::to_string(k) + "]";
    net.source += call + ");\n}\n";
    library_.add(name, net);
    groups_.push_back({std::move(g), wide ? 8U : 4U});
  }
  void compare() {
    const std::string built = library_.build(frozen::compilers()[0]);
    BOOST_TEST_REQUIRE(built == "");
    for (std::size_t k = 0; k < groups_.size(); ++k) compare(groups_[k].first, k, groups_[k].second);
  }
  std::size_t size() const { return groups_.size(); }

 private:
  void compare(const Group& g, std::size_t number, std::size_t mask) {
    const std::string name = "group" + std::to_string(number);
    const auto f = library_.functions<float, float>(name);
    Bytes memory(f.bytes);
    BOOST_TEST(f.check(memory.data()) == 0, g.cases[0].name << ": the check fails");
    std::vector<Bytes> in, out, wanted;
    const Tensors results = g.results();
    for (const Tensor& x : g.arguments()) in.push_back(in_c(x, mask));
    for (const Tensor& y : results) wanted.push_back(in_c(y, mask)), out.emplace_back(wanted.back().size());
    std::vector<void*> at;
    for (Bytes& b : in) at.push_back(b.data());
    for (Bytes& b : out) at.push_back(b.data());
    BOOST_TEST(library_.function<int(void*, void**)>(name + "_call")(memory.data(), at.data()) == 0, g.cases[0].name);
    std::size_t k = 0;
    for (const ProgramCase& c : g.cases)
      for (std::size_t r = 0; r < c.results.size(); ++r, ++k)
        BOOST_TEST(equal(out[k], wanted[k], results[k].dtype()), c.name << ": result " << r << " differs");
  }

  frozen::Library library_;
  std::vector<std::pair<Group, std::size_t>> groups_;
};

constexpr std::size_t kMostEnds = 90;  ///< addresses that a function takes; C99 promises 127

/// Compiles and compares cases; `refused` counts those that have no form in C, by the operation that has none.
void check(const std::vector<ProgramCase>& cases, std::map<std::string, int>& refused) {
  Groups groups;
  Group g;
  std::size_t ends = 0;
  const auto end_group = [&] {
    if (!g.cases.empty()) groups.add(std::move(g));
    g = {}, ends = 0;
  };
  for (const ProgramCase& c : cases) {
    try {
      (void)frozen_group({{c}}, "one");
    } catch (const exchange::ExportError& e) {
      const std::string why = e.what();
      const std::size_t from = why.find("no C for ");
      ++refused[from == std::string::npos ? why : why.substr(from + 9, why.find(':', from) - from - 9)];
      continue;
    }
    const std::size_t more = c.arguments.size() + c.results.size();
    if (ends + more > kMostEnds) end_group();
    g.cases.push_back(c), ends += more;
  }
  end_group();
  if (groups.size() > 0) groups.compare();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_operations)

BOOST_AUTO_TEST_CASE(every_operation) {
  if (!frozen::rounds_once()) return;
  std::vector<ProgramCase> cases;
  for (const Primitive* op : exchange_test::all_operations()) {
    if (op->name == "cholesky" || op->name == "multinomial") continue;  // which refuse random numbers, and have no C
    for (ProgramCase& c : exchange_test::operation_cases(*op)) cases.push_back(std::move(c));
  }
  std::map<std::string, int> refused;
  check(cases, refused);
  for (const auto& [name, n] : refused)
    BOOST_TEST(kWithoutC.contains(name), name << " is refused in " << n << " cases");
  for (const std::string& name : kWithoutC) BOOST_TEST(refused.contains(name), name << " has a form in C");
}

BOOST_AUTO_TEST_CASE(layers_gradients_and_scans) {
  if (!frozen::rounds_once()) return;
  std::map<std::string, int> refused;
  for (const auto& list : {exchange_test::recurrent_cases(), exchange_test::layer_cases(), exchange_test::scan_cases()})
    check(list, refused);
  for (const auto& [name, n] : refused)
    BOOST_TEST((name == "linear_scan_grad" || name == "scan"), name << " is refused in " << n << " cases");
}

BOOST_AUTO_TEST_CASE(integers_of_both_signs_and_at_the_ends) {
  if (!frozen::rounds_once()) return;
  std::vector<ProgramCase> cases;
  for (const Dtype dtype : {Dtype::i32, Dtype::i64}) {
    const std::int64_t least = dtype == Dtype::i32 ? INT32_MIN : INT64_MIN;
    const std::vector<std::int64_t> v{least, least + 1, -70, -7, -3, -1, 0, 1, 2, 3, 7, 31, 64, -(least + 1)};
    const auto n = static_cast<std::int64_t>(v.size());
    const Tensor a = cast(Tensor::from(v, {n, 1}), dtype), b = cast(Tensor::from(v, {1, n}), dtype);
    for (const Primitive* op : exchange_test::all_operations()) {
      if (!op->is_pointwise() || !op->block(dtype) || op->arity > 2) continue;
      const auto f = [op](const Tensors& in) { return op->apply(OperandList(in), {}); };
      cases.push_back(exchange_test::case_of(std::string(op->name), f, op->arity == 1 ? Tensors{a} : Tensors{a, b}, 0));
    }
  }
  std::map<std::string, int> refused;
  check(cases, refused);
  BOOST_TEST(refused.empty());
  BOOST_TEST(cases.size() > 30U);
}

// Vectors must not read past the last column of a matrix that belongs to the caller; sanitizers notice it.
BOOST_AUTO_TEST_CASE(products_with_matrices_of_the_caller) {
  if (!frozen::rounds_once()) return;
  std::vector<ProgramCase> cases;
  for (const std::int64_t terms : {3, 6})
    for (const std::int64_t columns : {1, 19, 33, 700})
      cases.push_back(exchange_test::case_of(
          "a product", [](const Tensors& in) { return Tensors{tanh(matmul(in[0], in[1]) + in[2])}; },
          {uniform({1, terms}, {.seed = 1}, -1, 1), uniform({terms, columns}, {.seed = 2}, -1, 1),
           uniform({columns}, {.seed = 3}, -1, 1)},
          0));
  std::map<std::string, int> refused;
  check(cases, refused);
  BOOST_TEST(refused.empty());
}

BOOST_AUTO_TEST_SUITE_END()
