// Functions along rows longer than packets and blocks: composites in their own kernels have the bits of their parts,
// and pooling, running extrema, the first of a row and gathering equal plain loops.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

using Function = std::function<Tensor(const Tensor&)>;

const std::map<std::string, Function> kComposites = {
    {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
    {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
    {"logsumexp", [](const Tensor& x) { return logsumexp(x, {-1}, true); }},
    {"logsumexp of all", [](const Tensor& x) { return logsumexp(x); }},
    {"layer_norm", [](const Tensor& x) { return layer_norm(x); }},
    {"layer_norm of two axes", [](const Tensor& x) { return layer_norm(x, 2, 0.1); }},
    {"var", [](const Tensor& x) { return var(x, {1}); }},
    {"var of one",
     [](const Tensor& x) {
       return var(x, {0, 1}, true, 2.5);
     }},
    {"stddev", [](const Tensor& x) { return stddev(x, {1}, true, 0); }},
    {"norm 1", [](const Tensor& x) { return norm(x, {.p = 1, .axes = {1}}); }},
    {"norm 2", [](const Tensor& x) { return norm(x, {.axes = {1}, .keepdim = true}); }},
    {"norm inf", [](const Tensor& x) { return norm(x, {.p = kInfinity, .axes = {1}}); }},
    {"norm inf of columns", [](const Tensor& x) { return norm(x, {.p = kInfinity, .axes = {0}}); }},
    {"softmax of columns", [](const Tensor& x) { return softmax(x, 0); }},
};

/// Returns rows in which about `special` of 100 values are special ones.
Tensor rows(const Shape& shape, Dtype dtype, int special) {
  const double values[] = {kNan, kInfinity, -kInfinity, 0.0, -0.0, 1e30, -1e30, 1e-40};
  std::vector<double> x = support::doubles(uniform(shape, {.seed = 4}, -3, 3));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (static_cast<int>(i * 7919 % 100) < special) x[i] = values[i * 31 % std::size(values)];
  return cast(Tensor::from(x, shape), dtype);
}

/// Returns a whole number from -3 to 3, so that many are equal, or NaN.
double few(std::int64_t i, bool with_nan) {
  if (with_nan && i * 7919 % 53 == 0) return kNan;
  return static_cast<double>(i * 7919 % 101 % 7 - 3);
}
Tensor few_values(const Shape& shape, Dtype dtype, bool with_nan) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < shape.numel(); ++i) x.push_back(few(i, with_nan));
  return cast(Tensor::from(x, shape), dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rows_of_numbers)

BOOST_AUTO_TEST_CASE(composites_have_the_bits_of_their_parts) {
  for (const auto& [name, f] : kComposites)
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const std::int64_t n : {1, 3, 8, 15, 16, 17, 31, 33, 47, 64, 100, 1023, 1025, 2100})
        for (const int special : {0, 1, 100}) {
          const Tensor x = rows({5, n}, dtype, special);
          const Tensor alone = f(x);
          Tensor parts;
          {
            Tape tape;  // the tape sees the parts
            parts = f(tape.watch(x));
          }
          BOOST_TEST_CONTEXT(name << " of " << x.spec().str() << ", special " << special) {
            BOOST_TEST(support::identical(alone, parts));
          }
        }
}

/// The weights have every size, including denormal ones and zeros, and totals have many elements.
BOOST_AUTO_TEST_CASE(a_softmax_divides_as_division_does) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {64, 65, 200, 5000})
      for (const double spread : {0.0, 1e-3, 1.0, 15.0, 40.0, 90.0, 700.0}) {
        const Tensor x = uniform({40, n}, {.seed = 5}, -spread, spread, dtype), e = exp(x - amax(x, {1}, true));
        BOOST_TEST(support::identical(softmax(x, -1), e / sum(e, {1}, true)), x.spec().str() << " of " << spread);
      }
}

BOOST_AUTO_TEST_CASE(rows_that_are_all_zeros_keep_their_signs) {
  const Tensor x = cast(Tensor::from({-0.0, -0.0, -0.0, 0.0}, {4, 1}), Dtype::f32);
  const Tensor alone = log_softmax(x, -1);
  Tape tape;
  BOOST_TEST(support::identical(alone, log_softmax(tape.watch(x), -1)));
}

BOOST_AUTO_TEST_CASE(composites_do_not_depend_on_threads) {
  const Tensor x = rows({333, 515}, Dtype::f32, 0);
  for (const auto& [name, f] : kComposites) {
    set_threads(1);
    const Tensor one = f(x);
    set_threads(2);
    BOOST_TEST_CONTEXT(name) BOOST_TEST(support::identical(f(x), one));
  }
  set_threads(1);
}

/// Windows of one axis are compared with plain loops.
BOOST_AUTO_TEST_CASE(pooled_rows_are_those_of_loops) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {4, 9, 16, 33, 70})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t kernel : {1, 2, 3, 5})
          for (const std::int64_t dilation : {1, 2})
            for (const bool with_nan : {false, true}) {
              const std::int64_t before = kernel / 2, reach = (kernel - 1) * dilation + 1;
              if (reach > n || before > reach / 2) continue;
              const Tensor x = few_values({1, 2, n}, dtype, with_nan);
              const MaxPooled y = max_pool1d_with_indices(
                  x, {kernel}, {.stride = {stride}, .padding = {before}, .dilation = {dilation}});
              const std::vector<double> values = support::doubles(x), best = support::doubles(y.values),
                                        places = support::doubles(y.indices);
              const Tensor only =
                  max_pool1d(x, {kernel}, {.stride = {stride}, .padding = {before}, .dilation = {dilation}});
              std::vector<double> sums;
              if (dilation == 1)
                sums = support::doubles(avg_pool1d(x, {kernel}, {.stride = {stride}, .padding = {before}}));
              const std::int64_t size = y.values.shape()[2];
              BOOST_TEST_CONTEXT(x.spec().str() << ", kernel " << kernel << ", stride " << stride << ", dilation "
                                                << dilation << ", with NaN " << with_nan) {
                BOOST_TEST(support::identical(only, y.values));
                for (std::int64_t row = 0; row < 2; ++row)
                  for (std::int64_t i = 0; i < size; ++i) {
                    double most = -kInfinity, total = 0;
                    std::int64_t place = -1;
                    for (std::int64_t t = 0; t < kernel; ++t) {
                      const std::int64_t k = i * stride + t * dilation - before;
                      if (k < 0 || k >= n) continue;
                      const double v = values[static_cast<std::size_t>(row * n + k)];
                      total += v;
                      if (place < 0 || v > most || std::isnan(v)) most = v, place = k;
                    }
                    const auto at = static_cast<std::size_t>(row * size + i);
                    BOOST_TEST((best[at] == most || (std::isnan(best[at]) && std::isnan(most))));
                    BOOST_TEST(places[at] == static_cast<double>(place));
                    if (dilation == 1 && !std::isnan(total))
                      BOOST_TEST(std::fabs(sums[at] - total / static_cast<double>(kernel)) < 1e-6);
                  }
              }
            }
}

BOOST_AUTO_TEST_CASE(running_extrema_are_those_of_loops) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64})
    for (const std::int64_t n : {1, 4, 7, 16, 17, 40, 131})
      for (const int axis : {0, 1})
        for (const bool largest : {false, true}) {
          const Tensor rowwise = few_values({3, n}, dtype, is_float(dtype));
          const Tensor x = axis == 1 ? rowwise : contiguous(transpose(rowwise, 0, 1));
          const ValuesAndIndices y = largest ? cummax(x, axis) : cummin(x, axis);
          const auto lines = [&](const Tensor& t) {
            return support::doubles(axis == 1 ? t : contiguous(transpose(t, 0, 1)));
          };
          const std::vector<double> v = lines(x), best = lines(y.values), index = lines(y.indices);
          BOOST_TEST_CONTEXT(x.spec().str() << " along " << axis << (largest ? ", largest" : ", smallest"))
          for (std::int64_t row = 0; row < 3; ++row) {
            std::int64_t at = 0;
            for (std::int64_t k = 0; k < n; ++k) {
              const auto value = [&](std::int64_t i) { return v[static_cast<std::size_t>(row * n + i)]; };
              if (std::isnan(value(k)) || (largest ? value(k) >= value(at) : value(k) <= value(at))) at = k;
              const auto here = static_cast<std::size_t>(row * n + k);
              BOOST_TEST((best[here] == value(at) || (std::isnan(best[here]) && std::isnan(value(at)))));
              BOOST_TEST(index[here] == static_cast<double>(at));
            }
          }
        }
}

/// The first few of a long row are those of the sorted row.
BOOST_AUTO_TEST_CASE(the_first_of_long_rows_are_those_of_sorted_ones) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64})
    for (const std::int64_t n : {65, 200, 1000})
      for (const std::int64_t k : {1, 2, 5, 8, 9})
        for (const bool largest : {false, true}) {
          const Tensor x = few_values({2, n}, dtype, is_float(dtype));
          const ValuesAndIndices all = sort(x, -1, largest), first = topk(x, k, {.largest = largest});
          const auto unsorted = topk(x, k, {.largest = largest, .sorted = false});
          BOOST_TEST_CONTEXT(x.spec().str() << ", k " << k << (largest ? ", largest" : ", smallest")) {
            BOOST_TEST(support::identical(first.values, slice(all.values, 1, 0, k)));
            BOOST_TEST(support::identical(first.indices, slice(all.indices, 1, 0, k)));
            BOOST_TEST(support::identical(unsorted.indices, sort(first.indices).values));
            if (!largest) BOOST_TEST(support::identical(kthvalue(x, k).indices, select(all.indices, 1, k - 1)));
          }
        }
}

/// Rows of every length up to where another sort is used, and any number of them, are compared with the standard
/// library.
BOOST_AUTO_TEST_CASE(sorted_rows_are_those_of_the_standard_library) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64})
    for (std::int64_t n = 1; n <= 300; n += n < 70 ? 1 : 23)
      for (const bool descending : {false, true}) {
        const std::int64_t count = 1 + n % 11;
        const Tensor x = few_values({count, n}, dtype, is_float(dtype));
        const std::vector<double> v = support::doubles(x), index = support::doubles(sort(x, -1, descending).indices);
        BOOST_TEST_CONTEXT(x.spec().str() << (descending ? ", descending" : ""))
        for (std::int64_t row = 0; row < count; ++row) {
          std::vector<double> places(static_cast<std::size_t>(n));
          std::iota(places.begin(), places.end(), 0.0);
          const auto value = [&](double i) {
            return v[static_cast<std::size_t>(row * n) + static_cast<std::size_t>(i)];
          };
          const auto less = [&](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
          std::stable_sort(places.begin(), places.end(), [&](double i, double j) {
            return descending ? less(value(j), value(i)) : less(value(i), value(j));
          });
          const auto first = index.begin() + row * n;
          BOOST_TEST(std::vector<double>(first, first + n) == places, boost::test_tools::per_element());
        }
      }
}

BOOST_AUTO_TEST_CASE(gathers_and_scatters_take_every_width_and_axis) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::boolean})
    for (const int axis : {0, 1, 2}) {
      const Tensor x = transpose(cast(few_values({4, 5, 3}, Dtype::f32, false), dtype), 0, 2);  // [3, 5, 4]
      const Tensor index = Tensor::build<std::int64_t>({2, 2, 3}, [](std::span<std::int64_t> i) {
        for (std::size_t k = 0; k < i.size(); ++k) i[k] = static_cast<std::int64_t>(k * 7 % 6) - 3;
      });
      const std::vector<double> y = support::doubles(gather(x, axis, index)), at = support::doubles(index),
                                v = support::doubles(contiguous(x));
      std::vector<double> added = v;
      std::size_t k = 0;
      const auto place = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
        std::int64_t i[] = {a, b, c};
        i[axis] = static_cast<std::int64_t>(at[k]);
        if (i[axis] < 0) i[axis] += x.shape()[axis];
        return static_cast<std::size_t>((i[0] * 5 + i[1]) * 4 + i[2]);
      };
      for (std::int64_t a = 0; a < 2; ++a)
        for (std::int64_t b = 0; b < 2; ++b)
          for (std::int64_t c = 0; c < 3; ++c, ++k) {
            BOOST_TEST(y[k] == v[place(a, b, c)], name_of(dtype) << " along " << axis);
            added[place(a, b, c)] += static_cast<double>(k);
          }
      if (dtype == Dtype::boolean) continue;
      const Tensor source = cast(reshape(arange(12), {2, 2, 3}), dtype);
      BOOST_TEST(support::doubles(scatter_add(x, axis, index, source)) == added, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
