// Functions along an axis, their gradients and second gradients compared with PyTorch 2.13:
// tests/data/make_axis_function_fixtures.py writes the cases.
#include <functional>
#include <map>
#include <set>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;
using Function = std::function<Tensors(In)>;
using Functions = std::map<std::string, Function>;

Tensors both(const ValuesAndIndices& v) { return {v.values, v.indices}; }

Functions cumulative() {
  const auto middle = [](In x) -> Tensors { return {cumsum(x[0], -2)}; };
  const auto sums = [](In x) -> Tensors { return {cumsum(x[0], 1)}; };
  const auto columns = [](In x) -> Tensors { return {cumsum(x[0], 0)}; };
  const auto products = [](In x) -> Tensors { return {cumprod(x[0], 1)}; };
  const auto product_columns = [](In x) -> Tensors { return {cumprod(x[0], 0)}; };
  const auto largest = [](In x) { return both(cummax(x[0], 1)); };
  const auto largest_column = [](In x) { return both(cummax(x[0], 0)); };
  const auto smallest = [](In x) { return both(cummin(x[0], 1)); };
  const auto log_sums = [](In x) -> Tensors { return {logcumsumexp(x[0], 1)}; };
  return {{"cumsum", sums},
          {"cumsum_first", columns},
          {"cumsum_middle", middle},
          {"cumsum_long", sums},
          {"cumsum_i64", columns},
          {"cumprod", products},
          {"cumprod_first", product_columns},
          {"cumprod_zeros", products},
          {"cumprod_zeros_first", product_columns},
          {"cummax", largest},
          {"cummax_first", largest_column},
          {"cummax_ties", largest},
          {"cummax_nan", largest},
          {"cummax_i64", largest_column},
          {"cummin", smallest},
          {"cummin_ties", [](In x) { return both(cummin(x[0], 0)); }},
          {"cummin_nan", smallest},
          {"logcumsumexp", log_sums},
          {"logcumsumexp_first", [](In x) -> Tensors { return {logcumsumexp(x[0], 0)}; }},
          {"logcumsumexp_far", log_sums},
          {"diff", [](In x) -> Tensors { return {diff(x[0])}; }},
          {"diff_twice", [](In x) -> Tensors { return {diff(x[0], {.n = 2, .axis = 0})}; }},
          {"diff_ends", [](In x) -> Tensors { return {diff(x[0], {.axis = 1, .prepend = x[1], .append = x[2]})}; }},
          {"trapezoid", [](In x) -> Tensors { return {trapezoid(x[0], 0.25, 0)}; }},
          {"trapezoid_x", [](In x) -> Tensors { return {trapezoid(x[0], x[1])}; }},
          {"trapezoid_positions", [](In x) -> Tensors { return {trapezoid(x[0], x[1], 1)}; }},
          {"cumulative_trapezoid", [](In x) -> Tensors { return {cumulative_trapezoid(x[0], 2.0)}; }},
          {"cumulative_trapezoid_x", [](In x) -> Tensors { return {cumulative_trapezoid(x[0], x[1])}; }}};
}

Tensors all_of(const Unique& u) { return {u.values, u.inverse, u.counts}; }
Tensor mask() { return Tensor::from({true, false, true, true}); }

Functions sorting() {
  Functions table = {
      {"sort", [](In x) { return both(sort(x[0], 1)); }},
      {"sort_descending", [](In x) { return both(sort(x[0], 0, true)); }},
      {"sort_ties", [](In x) { return both(sort(x[0])); }},
      {"sort_ties_descending", [](In x) { return both(sort(x[0], -1, true)); }},
      {"sort_nan", [](In x) { return both(sort(x[0])); }},
      {"sort_nan_descending", [](In x) { return both(sort(x[0], 1, true)); }},
      {"sort_long", [](In x) { return both(sort(x[0])); }},
      {"sort_long_descending", [](In x) { return both(sort(x[0], 1, true)); }},
      {"sort_i64", [](In x) { return both(sort(x[0])); }},
      {"argsort", [](In x) -> Tensors { return {argsort(x[0], 0)}; }},
      {"topk", [](In x) { return both(topk(x[0], 3)); }},
      {"topk_first", [](In x) { return both(topk(x[0], 2, {.axis = 0})); }},
      {"topk_smallest", [](In x) { return both(topk(x[0], 4, {.largest = false})); }},
      {"topk_long", [](In x) { return both(topk(x[0], 40)); }},
      {"topk_all", [](In x) { return both(topk(x[0], 5, {.axis = 0})); }},
      {"topk_nan", [](In x) -> Tensors { return {topk(x[0], 2).values}; }},
      {"kthvalue", [](In x) { return both(kthvalue(x[0], 3)); }},
      {"kthvalue_keepdim", [](In x) { return both(kthvalue(x[0], 5, 0, true)); }},
      {"kthvalue_long", [](In x) { return both(kthvalue(x[0], 44)); }},
      {"kthvalue_nan", [](In x) -> Tensors { return {kthvalue(x[0], 3).values}; }},
      {"median", [](In x) { return both(median(x[0], 1)); }},
      {"median_even", [](In x) { return both(median(x[0], 0, true)); }},
      {"median_nan", [](In x) { return both(median(x[0], 1)); }},
      {"median_all", [](In x) -> Tensors { return {median(x[0])}; }},
      {"median_all_ties", [](In x) -> Tensors { return {median(x[0])}; }},
      {"median_i64", [](In x) -> Tensors { return {median(x[0], 0).values}; }},
      {"quantile_linear",
       [](In x) -> Tensors {
         return {quantile(x[0], x[1], {.axis = 1, .interpolation = QuantileInterpolation::linear})};
       }},
      {"quantile_lower",
       [](In x) -> Tensors {
         return {quantile(x[0], x[1], {.axis = 1, .interpolation = QuantileInterpolation::lower})};
       }},
      {"quantile_higher",
       [](In x) -> Tensors {
         return {quantile(x[0], x[1], {.axis = 1, .interpolation = QuantileInterpolation::higher})};
       }},
      {"quantile_nearest",
       [](In x) -> Tensors {
         return {quantile(x[0], x[1], {.axis = 1, .interpolation = QuantileInterpolation::nearest})};
       }},
      {"quantile_midpoint",
       [](In x) -> Tensors {
         return {quantile(x[0], x[1], {.axis = 1, .interpolation = QuantileInterpolation::midpoint})};
       }},
      {"quantile_scalar", [](In x) -> Tensors { return {quantile(x[0], 0.35)}; }},
      {"quantile_keepdim", [](In x) -> Tensors { return {quantile(x[0], x[1], {.axis = 0, .keepdim = true})}; }},
      {"quantile_keepdim_all", [](In x) -> Tensors { return {quantile(x[0], 0.6, {.keepdim = true})}; }},
      {"quantile_nan", [](In x) -> Tensors { return {quantile(x[0], 0.5, {.axis = 1})}; }},
      {"quantile_ties", [](In x) -> Tensors { return {quantile(x[0], 0.4, {.axis = 1})}; }},
      {"searchsorted", [](In x) -> Tensors { return {searchsorted(x[0], x[1])}; }},
      {"searchsorted_right", [](In x) -> Tensors { return {searchsorted(x[0], x[1], {.right = true})}; }},
      {"searchsorted_i64", [](In x) -> Tensors { return {searchsorted(x[0], x[1])}; }},
      {"bucketize", [](In x) -> Tensors { return {bucketize(x[0], x[1])}; }},
      {"bucketize_right", [](In x) -> Tensors { return {bucketize(x[0], x[1], {.right = true})}; }},
      {"histc", [](In x) -> Tensors { return {histc(x[0], 5, -1, 1.5)}; }},
      {"histc_range", [](In x) -> Tensors { return {histc(x[0], 4)}; }},
      {"histc_one_value", [](In x) -> Tensors { return {histc(x[0], 3)}; }},
      {"histc_ends", [](In x) -> Tensors { return {histc(x[0], 4, 0, 2)}; }},
      {"bincount", [](In x) -> Tensors { return {bincount(x[0])}; }},
      {"bincount_weights", [](In x) -> Tensors { return {bincount(x[0], {.weights = x[1], .minlength = 6})}; }},
      {"unique", [](In x) { return all_of(unique(x[0])); }},
      {"unique_nan", [](In x) -> Tensors { return {unique(x[0]).values}; }},
      {"unique_consecutive", [](In x) { return all_of(unique_consecutive(x[0])); }}};
  return table;
}

Functions scatters() {
  Functions table = {
      {"take_along_axis", [](In x) -> Tensors { return {take_along_axis(x[0], x[1], 1)}; }},
      {"take_along_axis_broadcast", [](In x) -> Tensors { return {take_along_axis(x[0], x[1], 1)}; }},
      {"take", [](In x) -> Tensors { return {take(x[0], x[1])}; }},
      {"scatter", [](In x) -> Tensors { return {scatter(x[0], 0, x[1], x[2])}; }},
      {"scatter_last", [](In x) -> Tensors { return {scatter(x[0], 1, x[1], x[2])}; }},
      {"scatter_value", [](In x) -> Tensors { return {scatter(x[0], 0, x[1], 2.5)}; }},
      {"scatter_mean_last",
       [](In x) -> Tensors { return {scatter_reduce(x[0], 1, x[1], x[2], ScatterReduction::mean)}; }},
      {"scatter_sum_i64", [](In x) -> Tensors { return {scatter_reduce(x[0], 0, x[1], x[2], ScatterReduction::sum)}; }},
      {"scatter_wider_source",
       [](In x) -> Tensors { return {scatter_reduce(x[0], 0, x[1], x[2], ScatterReduction::sum)}; }},
      {"index_add", [](In x) -> Tensors { return {index_add(x[0], 0, x[1], x[2], -1.5)}; }},
      {"index_add_last", [](In x) -> Tensors { return {index_add(x[0], 1, x[1], x[2])}; }},
      {"index_copy", [](In x) -> Tensors { return {index_copy(x[0], 0, x[1], x[2])}; }},
      {"index_fill", [](In x) -> Tensors { return {index_fill(x[0], 1, x[1], 0.5)}; }},
      {"index_put",
       [](In x) -> Tensors {
         return {index_put(x[0], {x[1], x[2]}, x[3])};
       }},
      {"index_put_rows", [](In x) -> Tensors { return {index_put(x[0], {x[1]}, x[2])}; }},
      {"index_put_accumulate",
       [](In x) -> Tensors {
         return {index_put(x[0], {x[1], x[2]}, x[3], true)};
       }},
      {"index_at", [](In x) -> Tensors { return {index_at(x[0], {x[1]})}; }},
      {"index_at_pairs",
       [](In x) -> Tensors {
         return {index_at(x[0], {x[1], x[2]}, 1)};
       }},
      {"nonzero", [](In x) -> Tensors { return {nonzero(x[0])}; }},
      {"nonzero_size", [](In x) -> Tensors { return {nonzero(x[0], {.size = 20})}; }},
      {"masked_select", [](In x) -> Tensors { return {masked_select(x[0], mask())}; }},
      {"masked_scatter", [](In x) -> Tensors { return {masked_scatter(x[0], mask(), x[1])}; }}};
  const std::pair<const char*, ScatterReduction> kinds[] = {{"sum", ScatterReduction::sum},
                                                            {"prod", ScatterReduction::prod},
                                                            {"mean", ScatterReduction::mean},
                                                            {"amax", ScatterReduction::amax},
                                                            {"amin", ScatterReduction::amin}};
  for (const auto& [name, kind] : kinds)
    for (const bool own : {true, false}) {
      const Function f = [kind = kind, own](In x) -> Tensors {
        return {scatter_reduce(x[0], 0, x[1], x[2], kind, own)};
      };
      const std::string ending = own ? "" : "_alone";
      table["scatter_" + std::string(name) + ending] = f;
      if (own && (kind == ScatterReduction::amax || kind == ScatterReduction::amin))
        table["scatter_" + std::string(name) + "_ties"] = f;
    }
  return table;
}

/// Returns the function of every case of the fixture.
const Functions& functions() {
  static const Functions table = [] {
    Functions all = cumulative();
    all.merge(sorting());
    all.merge(scatters());
    return all;
  }();
  return table;
}

constexpr double kTolerance = 1e-10;

void check(const std::string& name, const Function& f) {
  const io::TensorFile file = support::fixture("axis_functions.safetensors");
  Tape tape;
  Tensors in, variables;
  std::vector<std::string> numbers;
  for (int k = 0; file.contains(name + "/in" + std::to_string(k)); ++k) {
    const Tensor x = file.tensor(name + "/in" + std::to_string(k));
    in.push_back(is_float(x.dtype()) ? tape.watch(x) : x);
    if (!is_float(x.dtype())) continue;
    variables.push_back(in[in.size() - 1]);
    numbers.push_back(std::to_string(k));
  }
  const Tensors out = f(in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Tensor wanted = file.tensor(name + "/out" + std::to_string(k));
    BOOST_TEST((out[k].dtype() == wanted.dtype()), name << ": result " << k << " is " << out[k].spec().str());
    BOOST_TEST(within(out[k], wanted, kTolerance), name << ": result " << k);
  }
  BOOST_TEST(!file.contains(name + "/out" + std::to_string(out.size())), name << " has more results");
  if (!file.contains(name + "/cot")) return;
  const std::span<const Tensor> wrt(variables.data(), variables.size());
  const Tensors g = tape.grad(out[0], wrt, {.create_graph = true}, file.tensor(name + "/cot"));
  for (std::size_t j = 0; j < numbers.size(); ++j) {
    BOOST_TEST(within(g[j], file.tensor(name + "/g" + numbers[j]), kTolerance), name << ": gradient " << j);
    const Tensors h = detail::lenient_grad(tape, {g[j], file.tensor(name + "/v" + numbers[j])}, wrt, {.retain = true});
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::string key = name + "/h" + numbers[j] + numbers[k];
      const Tensor wanted = file.contains(key) ? file.tensor(key) : zeros_like(variables[k]);
      BOOST_TEST(within(h[k], wanted, kTolerance), key);
    }
  }
}

const bool registered = [] {
  for (const auto& [name, f] : functions())
    boost::unit_test::framework::current_auto_test_suite().add(
        boost::unit_test::make_test_case([name = name, f = f] { check(name, f); }, "axis_" + name, __FILE__, __LINE__));
  return true;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(every_case_of_axis_functions_has_its_counterpart) {
  BOOST_TEST(registered);
  const io::TensorFile file = support::fixture("axis_functions.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  for (const std::string& name : cases) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(cases.size() == functions().size());
}
