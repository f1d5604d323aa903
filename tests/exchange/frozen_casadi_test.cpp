// External functions of CasADi: adjoints and second derivatives, the wrapper's text, and its C, compiled and called as
// CasADi calls it. tests/exchange/check_casadi.py compares it with CasADi itself.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/freeze_casadi.h"
#include "io/temporary_folder.h"
#include "support/compare.h"

using namespace ferrite;
using exchange::CasadiFunction;
using support::identical;
using support::says;
using support::within;

namespace {

constexpr std::int64_t kWidth = 2, kHidden = 5;

exchange::StepProgram step_of(const nn::Layer& net) {
  return exchange::step_program(net, {.batch = 1, .width = kWidth});
}
dsl::Network net_of() { return dsl::sequence(kWidth).gru(kHidden, "gru").linear(1, "head").build(3); }

Tensors drawn(const std::vector<Spec>& specs, std::uint64_t seed) {
  Tensors in;
  for (const Spec& s : specs) in.push_back(cast(uniform(s.shape, {.seed = seed++}, -1, 1), s.dtype));
  return in;
}

/// The functions of a library as CasADi calls them.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW)) {
    BOOST_TEST_REQUIRE(handle_ != nullptr, path);
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Calls a function; returns its results, column-major, with NaN where it has written nothing.
  std::vector<std::vector<double>> call(const std::string& name, const std::vector<const double*>& arg,
                                        const std::vector<bool>& wanted) const {
    using Int = long long;
    long long sizes[4] = {0, 0, 0, 0};
    function<int(Int*, Int*, Int*, Int*)>(name + "_work")(&sizes[0], &sizes[1], &sizes[2], &sizes[3]);
    std::vector<const double*> in(arg);
    in.resize(static_cast<std::size_t>(sizes[0]));
    std::vector<std::vector<double>> out;
    std::vector<double*> res;
    for (Int k = 0; k < function<Int()>(name + "_n_out")(); ++k) {
      const Int* pattern = function<const Int*(Int)>(name + "_sparsity_out")(k);
      const Int elements = pattern[2] == 1 ? pattern[0] * pattern[1] : 0;
      out.emplace_back(static_cast<std::size_t>(elements), NAN);
      res.push_back(wanted[static_cast<std::size_t>(k)] ? out.back().data() : nullptr);
    }
    std::vector<double> w(static_cast<std::size_t>(sizes[3]) + 1, NAN);
    std::vector<Int> iw(static_cast<std::size_t>(sizes[2]) + 1);
    const auto run = function<int(const double**, double**, Int*, double*, int)>(name);
    BOOST_TEST(run(in.data(), res.data(), iw.data(), w.data() + 1, 0) == 0);
    return out;
  }

 private:
  template <class F>
  F* function(const std::string& name) const {
    void* const found = dlsym(handle_, name.c_str());
    BOOST_TEST_REQUIRE(found != nullptr, name);
    return reinterpret_cast<F*>(found);
  }
  void* handle_;
};

/// Returns a block [rows, columns] as CasADi stores it.
std::vector<double> by_columns(const Tensor& block) { return support::doubles(contiguous(transpose(block))); }

/// Skips a case, visibly, where there is no C compiler.
boost::test_tools::assertion_result has_compiler(boost::unit_test::test_unit_id) {
  return std::system("cc --version > /dev/null 2>&1") == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_casadi)

BOOST_AUTO_TEST_CASE(adjoints_and_their_jacobians) {
  const auto net = net_of();
  const auto p = exchange::jacobian_program(step_of(net));
  const auto a = exchange::adjoint_program(p);
  const Tensors in = drawn(a.inputs, 5);
  const Tensors x(in.begin(), in.begin() + 2), u(in.begin() + 2, in.end());
  const VjpResult wanted = vjp(p.primal, x, u);
  const Tensors found = a.function(in);
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(within(found[i], wanted.gradients[i], 1e-14));
  const auto h = exchange::jacobian_program(a.function, a.inputs, {.inputs = {{0, 1}}});
  const auto weighted = [&](const Tensors& v) {
    const Tensors y = p.primal(v);
    return sum(y[0] * u[0]) + sum(y[1] * u[1]);
  };
  const auto hessians = hessian(weighted, x);
  const Tensors second = h.function(in);
  for (std::size_t k = 0; k < h.blocks.size(); ++k) {
    const Tensor& w = hessians[h.blocks[k].result][h.blocks[k].input];
    BOOST_TEST(within(second[2 + k], reshape(w, second[2 + k].shape()), 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(c_called_as_casadi_calls_it, *boost::unit_test::precondition(has_compiler)) {
  const auto net = net_of();
  const auto p = exchange::jacobian_program(step_of(net));
  const io_test::TemporaryFolder folder;
  for (const auto& f : exchange::freeze_casadi(step_of(net), {.name = "cell"}))
    std::ofstream(folder.path() / f.name) << f.text;
  const std::string at = folder.path().string();
  const std::string compile = "cd " + at + " && cc -std=c99 -O1 -Wall -Wextra -fPIC -shared cell*.c -lm -o cell.so";
  BOOST_TEST_REQUIRE(std::system(compile.c_str()) == 0);
  const Library library(at + "/cell.so");
  const Tensors in = drawn(p.inputs, 9);
  const std::vector<double> x = support::doubles(in[0]), h = support::doubles(in[1]);
  const Tensors out = p.function(in);
  const auto values = library.call("cell", {x.data(), h.data()}, {true, true});
  for (std::size_t k = 0; k < 2; ++k) BOOST_TEST(within(Tensor::from(values[k], out[k].shape()), out[k], 1e-15));
  const auto blocks = library.call("jac_cell", {x.data(), h.data()}, {true, false, true, true});
  for (const std::size_t k : {0U, 2U, 3U})
    BOOST_TEST(within(Tensor::from(blocks[k], {out[2 + k].numel()}),
                      Tensor::from(by_columns(out[2 + k]), {out[2 + k].numel()}), 1e-15));
  BOOST_TEST(std::isnan(blocks[1][0]));  // was not asked for
  // An input that is left out is zeros.
  const auto from_zero = library.call("cell", {x.data(), nullptr}, {true, true});
  BOOST_TEST(within(Tensor::from(from_zero[0], out[0].shape()), p.primal({in[0], zeros(in[1].shape(), Dtype::f64)})[0],
                    1e-15));
}

BOOST_AUTO_TEST_CASE(second_derivatives_and_the_transposed_jacobian, *boost::unit_test::precondition(has_compiler)) {
  const auto net = net_of();
  const auto p = exchange::jacobian_program(step_of(net));
  const auto a = exchange::adjoint_program(p);
  const io_test::TemporaryFolder folder;
  for (const auto& f : exchange::freeze_casadi(step_of(net), {.name = "cell"}))
    std::ofstream(folder.path() / f.name) << f.text;
  const std::string at = folder.path().string();
  BOOST_TEST_REQUIRE(std::system(("cd " + at + " && cc -O1 -fPIC -shared cell*.c -lm -o cell.so").c_str()) == 0);
  const Library library(at + "/cell.so");
  const Tensors in = drawn(a.inputs, 11);
  std::vector<std::vector<double>> v;
  for (const Tensor& t : in) v.push_back(support::doubles(t));
  const std::vector<const double*> arg{v[0].data(), v[1].data(), nullptr, nullptr, v[2].data(), v[3].data()};
  const auto gradients = library.call("adj1_cell", arg, {true, true});
  const Tensors wanted = a.function(in);
  for (std::size_t k = 0; k < 2; ++k)
    BOOST_TEST(within(Tensor::from(gradients[k], wanted[k].shape()), wanted[k], 1e-15));
  const auto found = library.call("jac_adj1_cell", arg, std::vector<bool>(12, true));
  const auto second = exchange::jacobian_program(a.function, a.inputs, {.inputs = {{0, 1}}}).function(in);
  const Tensors first = p.function({in[0], in[1]});
  const auto equals = [&](std::size_t k, const Tensor& block) {
    return within(Tensor::from(found[k], {block.numel()}), Tensor::from(by_columns(block), {block.numel()}), 1e-14);
  };
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(equals(6 * row + i, second[2 + 2 * row + i]));
    for (std::size_t k = 0; k < 2; ++k) BOOST_TEST(found[6 * row + 2 + k].empty());
    for (std::size_t k = 0; k < 2; ++k) BOOST_TEST(equals(6 * row + 4 + k, transpose(first[2 + 2 * k + row])));
  }
}

BOOST_AUTO_TEST_CASE(layers_without_names_have_identifiers) {
  const auto net = dsl::sequence(kWidth).gru(kHidden).linear(1).build(3);
  const auto files = exchange::freeze_casadi(step_of(net), {.name = "plain", .hessian = false});
  BOOST_TEST(files.back().text.find("\"v0_h\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(row_major_blocks_are_turned) {
  const CasadiFunction::Blocks blocks{.callee = {"j", "net", ""}, .blocks = {{0, 0, false}}, .results = false};
  CasadiFunction f{.name = "f", .include = {}, .inputs = {{"x", 2}}, .results = {{"y", 3}}, .primal = {"g", "", ""}};
  f.jacobian = blocks;
  BOOST_TEST(exchange::casadi_wrapper(f).find("res[0][j * 3 + i] = y0[i * 2 + j]") != std::string::npos);
  f.jacobian.column_major = true;
  BOOST_TEST(exchange::casadi_wrapper(f).find("res[0][") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(wrong_descriptions_are_refused) {
  const CasadiFunction good{
      .name = "f", .include = {}, .inputs = {{"x", 2}}, .results = {{"y", 3}}, .primal = {"g", "", ""}};
  const auto refused = [&](auto change, const char* words) {
    CasadiFunction f = good;
    change(f);
    BOOST_CHECK_EXCEPTION(exchange::casadi_wrapper(f), ValueError, says(words));
  };
  refused([](auto& f) { f.name = "a b"; }, "the name 'a b' must be a C identifier");
  refused([](auto& f) { f.results[0].name = "x"; }, "the name 'x' is given twice");
  refused([](auto& f) { f.inputs[0].elements = 0; }, "'x' must have at least one element, has 0");
  refused([](auto& f) { f.results.clear(); }, "'f' has no results");
  refused([](auto& f) { f.jacobian = {{"j", "", ""}, {{1, 0, false}}}; }, "block 1, 0 of 'j' does not exist");
  refused([](auto& f) { f.hessian = {{"h", "", ""}}; }, "has a Hessian but no adjoint");
}

BOOST_AUTO_TEST_SUITE_END()
