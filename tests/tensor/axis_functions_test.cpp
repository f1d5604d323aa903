// Functions along an axis: errors of wrong calls and of tracing, given sizes, and cases that no fixture has.
#include <functional>
#include <random>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

/// Makes floats without kernels, because tensors of this file are made before the program chooses an instruction set.
Tensor floats(const Shape& shape) {
  std::minstd_rand numbers(7);
  return Tensor::build<float>(shape, [&](std::span<float> to) {
    for (float& x : to) x = std::uniform_real_distribution<float>(-1, 1)(numbers);
  });
}
Tensor longs(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }

/// Returns the kind and the message of the error of a call.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ShapeError& e) {
    return std::string("ShapeError ") + e.what();
  } catch (const DtypeError& e) {
    return std::string("DtypeError ") + e.what();
  } catch (const ValueError& e) {
    return std::string("ValueError ") + e.what();
  } catch (const TraceError& e) {
    return std::string("TraceError ") + e.what();
  }
  return "no error";
}

struct WrongCall {
  std::function<void()> call;
  const char* error;
};

void check(const std::vector<WrongCall>& calls) {
  for (const WrongCall& w : calls) BOOST_TEST(error_of(w.call) == w.error);
}

const Tensor x = floats({2, 3}), row = floats({4}), scalar = floats({}), none = floats({2, 0});
const Tensor whole = longs({1, 2, 3}), mask = Tensor::from({true, false, true});
const Tensor places = Tensor::from<std::int64_t>({0, 1, 2, 0}, {2, 2});

}  // namespace

BOOST_AUTO_TEST_SUITE(axis_functions)

BOOST_AUTO_TEST_CASE(wrong_calls_of_running_functions) {
  check({{[] { cumsum(x, 2); }, "ShapeError cumsum: axis 2 is out of range for rank 2"},
         {[] { cumprod(scalar, 0); }, "ShapeError cumprod: axis 0 is out of range for rank 0"},
         {[] { cummax(mask, 0); }, "DtypeError cummax: bool is not supported; it takes numbers"},
         {[] { cummin(x, -3); }, "ShapeError cummin: axis -3 is out of range for rank 2"},
         {[] { logcumsumexp(whole, 0); }, "DtypeError logcumsumexp: takes floats, got i64[3]"},
         {[] { linear_recurrence(x, row, 0); },
          "ShapeError linear_recurrence: shapes differ: [2, 3] and [4]; expand one of them first"},
         {[] { linear_recurrence(x, cast(x, Dtype::f64), 0); },
          "DtypeError linear_recurrence: takes floats of one dtype, got f32[2, 3] and f64[2, 3]"},
         {[] { diff(x, {.n = -1}); }, "ValueError diff: n must not be negative, got -1"},
         {[] { trapezoid(whole); }, "DtypeError trapezoid: takes floats, got i64[3]; cast it first"},
         {[] { trapezoid(x, row); }, "ShapeError trapezoid: positions [4] do not fit samples [2, 3] along axis 1"},
         {[] { cumulative_trapezoid(x, cast(x, Dtype::f64)); },
          "DtypeError cumulative_trapezoid: dtypes differ: f32[2, 3] and f64[2, 3]"}});
}

BOOST_AUTO_TEST_CASE(wrong_calls_of_orders) {
  check({{[] { sort(scalar); }, "ShapeError sort: axis -1 is out of range for rank 0"},
         {[] { argsort(x, 5); }, "ShapeError argsort: axis 5 is out of range for rank 2"},
         {[] { topk(x, 4); }, "ValueError topk: k must be in 0..3, the extent of axis 1 of [2, 3]: got 4"},
         {[] { topk(x, -1); }, "ValueError topk: k must be in 0..3, the extent of axis 1 of [2, 3]: got -1"},
         {[] { kthvalue(x, 0); }, "ValueError kthvalue: k must be in 1..3, the extent of axis 1 of [2, 3]: got 0"},
         {[] { median(none, 1); }, "ShapeError median: no elements to choose from: axis 1 of [2, 0]"},
         {[] { median(mask, 0); }, "DtypeError median: bool is not supported; it takes numbers"},
         {[] { quantile(x, 1.5); }, "ValueError quantile: q must be in 0..1, got 1.5"},
         {[] {
            quantile(x, Tensor::from({0.5F, -0.25F}));
          },
          "ValueError quantile: q -0.25 lies outside 0..1"},
         {[] { quantile(x, x); }, "ShapeError quantile: q must have rank 0 or 1, got [2, 3]"},
         {[] { quantile(whole, 0.5); }, "DtypeError quantile: takes floats of one dtype, got i64[3] and f32[]"},
         {[] { quantile(none, 0.5); }, "ShapeError quantile: no elements to choose from: axis 0 of [0]"},
         {[] { searchsorted(row, whole); }, "DtypeError searchsorted: dtypes differ: f32[4] and i64[3]"},
         {[] { searchsorted(x, row); },
          "ShapeError searchsorted: values [4] do not fit sorted rows [2, 3]; the rows have rank 1 or all axes but the "
          "last in common"},
         {[] { bucketize(row, x); }, "ShapeError bucketize: the boundaries must have rank 1, got [2, 3]"},
         {[] { histc(whole); }, "DtypeError histc: takes floats, got i64[3]; cast it first"},
         {[] { histc(x, 0); }, "ValueError histc: bins must be positive, got 0"},
         {[] { histc(x, 3, 2, 1); }, "ValueError histc: low must not exceed high, both finite: got 2.0 and 1.0"},
         {[] { bincount(x); }, "DtypeError bincount: takes i64 or i32, got f32[2, 3]"},
         {[] { bincount(places); }, "ShapeError bincount: takes rank 1, got [2, 2]"},
         {[] {
            bincount(longs({1, -2}));
          },
          "ShapeError bincount: value -2 lies outside 0..1"},
         {[] { bincount(whole, {.size = 3}); }, "ShapeError bincount: value 3 lies outside 0..2"},
         {[] { bincount(whole, {.weights = row}); }, "ShapeError bincount: weights [4] and values [3] differ"},
         {[] { bincount(whole, {.minlength = -1}); },
          "ValueError bincount: minlength and size must not be negative, got -1 and 0"}});
}

BOOST_AUTO_TEST_CASE(wrong_calls_of_scatters) {
  check({{[] { take_along_axis(x, whole, 0); }, "ShapeError take_along_axis: ranks differ: [2, 3] and [3]"},
         {[] { take(x, longs({6})); }, "ShapeError index_select: index 6 is out of range for an axis of extent 6"},
         {[] {
            scatter(x, 1, places, floats({2, 1}));
          },
          "ShapeError scatter: index [2, 2] reaches beyond the source [2, 1]"},
         {[] {
            scatter(x, 0, places, floats({2, 2}));
          },
          "ShapeError scatter: index 2 is out of range for an axis of extent 2"},
         {[] { scatter(x, 1, places, longs({1})); }, "ShapeError scatter: index [2, 2] reaches beyond the source [1]"},
         {[] { scatter(x, 1, x, x); }, "DtypeError scatter: the index must be i64 or i32, got f32[2, 3]"},
         {[] { scatter(x, 0, whole, row); }, "ShapeError scatter: index [3] does not fit [2, 3] along axis 0"},
         {[] { scatter(x, 1, places, cast(places, Dtype::f64)); },
          "DtypeError scatter: dtypes differ: f32[2, 3] and f64[2, 2]"},
         {[] { scatter_reduce(whole, 0, longs({0}), longs({0}), ScatterReduction::mean); },
          "DtypeError scatter_reduce: means are of floats, got i64[3]; cast it first"},
         {[] { scatter_reduce(mask, 0, longs({0}), mask, ScatterReduction::sum); },
          "DtypeError scatter_reduce: takes numbers of one dtype, got bool[3] and bool[3]"},
         {[] { index_add(x, 0, places, x); }, "ShapeError index_add: the index must have rank 1, got [2, 2]"},
         {[] { index_add(x, 0, longs({0}), x); },
          "ShapeError index_add: the source must have the shape [1, 3], got [2, 3]"},
         {[] { index_copy(x, 0, longs({0}), whole); }, "DtypeError index_copy: dtypes differ: f32[2, 3] and i64[3]"},
         {[] { index_fill(x, 0, places, 1); }, "ShapeError index_fill: the index must have rank 1, got [2, 2]"},
         {[] { index_put(x, {longs({2})}, x); }, "ShapeError index_put: index 2 lies outside -2..1"},
         {[] {
            index_put(row, {whole, whole}, row);
          },
          "ShapeError index_put: 2 indices from axis 0 on for a tensor of rank 1: [4]"},
         {[] { index_put(x, {whole}, whole); }, "DtypeError index_put: dtypes differ: f32[2, 3] and i64[3]"},
         {[] { index_at(x, {mask}); }, "DtypeError index_at: the index must be i64 or i32, got bool[3]"},
         {[] {
            index_at(x, {longs({0}), longs({3})});
          },
          "ShapeError index_at: index 3 lies outside -3..2"},
         {[] {
            index_at(x, {longs({0}), longs({0})}, 1);
          },
          "ShapeError index_at: 2 indices from axis 1 on for a tensor of rank 2: [2, 3]"},
         {[] { masked_select(x, whole); }, "DtypeError masked_select: the mask must be bool, got i64[3]"},
         {[] { masked_scatter(x, mask, floats({3})); },
          "ShapeError masked_scatter: element of the source 3 lies outside 0..2"},
         {[] {
            masked_scatter(row, Tensor::from({true, false, true, true}), floats({0}));
          },
          "ShapeError masked_scatter: the number of elements that the source must have: 3 lies outside 0..0"},
         {[] { masked_scatter(x, mask, whole); }, "DtypeError masked_scatter: dtypes differ: f32[2, 3] and i64[3]"},
         {[] { masked_scatter(scalar, mask, row); }, "ShapeError masked_scatter: mask [3] does not broadcast to []"},
         {[] { nonzero(x, {.size = -1}); }, "ValueError nonzero: size must not be negative, got -1"}});
}

BOOST_AUTO_TEST_CASE(results_whose_shape_depends_on_values_are_not_traced) {
  const auto traced = [](const std::function<void(const Tensor&)>& f, const Tensor& example) {
    return error_of([&] {
      (void)trace(
          [&](const Tensors& in) -> Tensors {
            f(in[0]);
            return {in[0]};
          },
          std::vector<Spec>{example.spec()});
    });
  };
  const std::string why = ": the shape of the result depends on values that are not known while tracing: ";
  BOOST_TEST(traced([](const Tensor& t) { nonzero(t); }, x) == "TraceError nonzero" + why + "f32[2, 3]; give a size");
  BOOST_TEST(traced([](const Tensor& t) { masked_select(row, t); }, mask) ==
             "TraceError masked_select" + why + "bool[3]; give a size");
  BOOST_TEST(traced([](const Tensor& t) { bincount(t); }, whole) ==
             "TraceError bincount" + why + "i64[3]; give a size");
  BOOST_TEST(traced([](const Tensor& t) { unique(t); }, x) ==
             "TraceError unique" + why + "f32[2, 3]; call it outside of the traced function");
  BOOST_TEST(traced([](const Tensor& t) { unique_consecutive(t); }, x) ==
             "TraceError unique_consecutive" + why + "f32[2, 3]; call it outside of the traced function");
}

BOOST_AUTO_TEST_CASE(with_a_size_they_are_compiled) {
  const Tensor v = Tensor::from({0.0F, 2.0F, 0.0F, -1.0F, 5.0F});
  const auto chosen = compile([](const Tensor& t) { return masked_select(t, gt(t, 0), {.size = 4, .fill = 9}); });
  BOOST_TEST(identical(chosen(v), Tensor::from({2.0F, 5.0F, 9.0F, 9.0F})));
  const auto first = compile([](const Tensor& t) { return masked_select(t, gt(t, 0), {.size = 1}); });
  BOOST_TEST(identical(first(v), Tensor::from({2.0F})));
  const auto places = compile([](const Tensor& t) { return nonzero(t, {.size = 4, .fill = 7}); });
  BOOST_TEST(identical(places(v), Tensor::from<std::int64_t>({1, 3, 4, 7}, {4, 1})));
  const auto counts = compile([](const Tensor& t) { return bincount(t, {.size = 4}); });
  BOOST_TEST(identical(counts(whole), longs({0, 1, 1, 1})));
  BOOST_TEST(error_of([&] { (void)counts(longs({0, 4, 1})); }) == "ShapeError bincount: value 4 lies outside 0..3");
}

BOOST_AUTO_TEST_CASE(the_last_of_several_gets_the_gradient) {
  Tape tape;
  const Tensor to = tape.watch(zeros({3})), from = tape.watch(Tensor::from({1.0F, 2.0F, 3.0F}));
  const Tensor y = scatter(to, 0, longs({1, 1, 2}), from);
  BOOST_TEST(identical(y, Tensor::from({0.0F, 2.0F, 3.0F})));
  const Tensors g = tape.grad(y, {to, from}, {}, Tensor::from({5.0F, 6.0F, 7.0F}));
  BOOST_TEST(identical(g[0], Tensor::from({5.0F, 0.0F, 0.0F})));
  BOOST_TEST(identical(g[1], Tensor::from({0.0F, 6.0F, 7.0F})));
}

/// PyTorch counts an element of x that does not take part among the equal ones.
BOOST_AUTO_TEST_CASE(what_takes_no_part_takes_no_share_of_the_gradient) {
  Tape tape;
  const Tensor to = tape.watch(Tensor::from({3.0F, 1.0F})), from = tape.watch(Tensor::from({3.0F, 2.0F, 3.0F}));
  const Tensor y = scatter_reduce(to, 0, longs({0, 0, 0}), from, ScatterReduction::amax, false);
  const Tensors g = tape.grad(y, {to, from}, {}, Tensor::from({4.0F, 1.0F}));
  BOOST_TEST(identical(g[0], Tensor::from({0.0F, 1.0F})));
  BOOST_TEST(identical(g[1], Tensor::from({2.0F, 0.0F, 2.0F})));
}

BOOST_AUTO_TEST_CASE(discounted_returns) {
  const Tensor discount = full({2, 4}, 0.5),
               rewards = Tensor::from({1.0F, 2.0F, 4.0F, 8.0F, 0.0F, 0.0F, 0.0F, 16.0F}, {2, 4});
  BOOST_TEST(identical(linear_recurrence(discount, rewards, 1, true),
                       Tensor::from({4.0F, 6.0F, 8.0F, 8.0F, 2.0F, 4.0F, 8.0F, 16.0F}, {2, 4})));
}

/// Rows of a batch have the bits of rows alone, for any number of threads.
BOOST_AUTO_TEST_CASE(rows_alone_and_threads) {
  const Tensor many = uniform({37, 1501}, {3, 1, 0}, -1, 1);
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [](const Tensor& t) { return cumsum(t, 1); },
      [](const Tensor& t) { return cumprod(t + 1.5, 1, true); },
      [](const Tensor& t) { return linear_recurrence(t, t, 1); },
      [](const Tensor& t) { return cummax(t, 1).values; },
      [](const Tensor& t) { return logcumsumexp(t, 1); },
      [](const Tensor& t) { return sort(t, 1).values; },
      [](const Tensor& t) { return cast(argsort(t, 1, true), Dtype::f32); },
      [](const Tensor& t) { return topk(t, 40, {.sorted = false}).values; },
      [](const Tensor& t) { return kthvalue(t, 700).values; }};
  for (const auto& f : functions) {
    const Tensor wanted = f(many);
    set_threads(3);
    const Tensor shared = f(many);
    set_threads(1);
    BOOST_TEST(identical(shared, wanted));
    BOOST_TEST(identical(f(slice(many, 0, 20, 21)), slice(wanted, 0, 20, 21)));
  }
}

/// Choices from long rows are compared with a sort of the whole.
BOOST_AUTO_TEST_CASE(choices_are_those_of_the_sort) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i64}) {
    const Tensor many = cast(uniform({3, 5000}, {3, 2, 0}, -100, 100, Dtype::f64), dtype);  // integers: with many ties
    for (const bool largest : {true, false}) {
      const auto sorted = sort(many, 1, largest);
      for (const std::int64_t k : {1, 7, 600, 3000, 5000}) {
        const auto best = topk(many, k, {.largest = largest});
        BOOST_TEST(identical(best.values, slice(sorted.values, 1, 0, k)));
        BOOST_TEST(identical(best.indices, slice(sorted.indices, 1, 0, k)));
        const auto unsorted = topk(many, k, {.largest = largest, .sorted = false});
        BOOST_TEST(identical(unsorted.indices, sort(best.indices).values));
        BOOST_TEST(identical(unsorted.values, gather(many, 1, unsorted.indices)));
        if (largest) continue;
        BOOST_TEST(identical(kthvalue(many, k).values, select(sorted.values, 1, k - 1)));
        BOOST_TEST(identical(kthvalue(many, k).indices, select(sorted.indices, 1, k - 1)));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
