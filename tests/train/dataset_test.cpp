// Data sets: examples, batches of sequences, changes, windows, splits.
#include "ferrite/train/dataset.h"

#include <numeric>
#include <set>

#include "ferrite/train/split.h"
#include "ferrite/train/windows.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;

namespace {

Tensor i64s(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }

/// Returns four sequences of lengths 1, 3, 0, 2 with a label each and a target for each step; step k holds k and -k.
Dataset small() {
  const Tensor k = reshape(arange(0.0, 6.0, 1.0), {6, 1}), lengths = i64s({1, 3, 0, 2});
  return {{sequences(concat({k, -k}, 1), lengths), i64s({0, 1, 2, 1}), sequences(arange(6), lengths, -100)}};
}

/// Returns the first number of each example, which is a row.
std::vector<std::int64_t> rows(const Dataset& data) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < data.size(); ++i) all.push_back(data[i][0].item<std::int64_t>());
  return all;
}

Dataset numbers(std::int64_t n) { return {{arange(n)}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(dataset)

BOOST_AUTO_TEST_CASE(sequences_are_padded_and_tell_their_lengths) {
  const Dataset data = small();
  BOOST_TEST(data.size() == 4);
  BOOST_TEST(data.length(1) == 3);
  const Batch b = data.batch(std::vector<std::int64_t>{3, 1, 2});
  BOOST_TEST(
      identical(b.x(), Tensor::from<float>({4, -4, 5, -5, 0, 0, 1, -1, 2, -2, 3, -3, 0, 0, 0, 0, 0, 0}, {3, 3, 2})));
  BOOST_TEST(identical(b.y(), i64s({1, 1, 2})));
  BOOST_TEST(identical(b.field(2), Tensor::from<std::int64_t>({4, 5, -100, 1, 2, 3, -100, -100, -100}, {3, 3})));
  BOOST_TEST(identical(b.lengths[0], i64s({2, 3, 0})));
  BOOST_TEST(!b.lengths[1].defined());
  BOOST_TEST(identical(b.context().lengths, b.lengths[0]));
  BOOST_TEST(b.size() == 3);
  BOOST_CHECK_EXCEPTION((void)b.field(3), ValueError, says("there is no field 3, examples have 3"));
  BOOST_TEST(data.batch(std::vector<std::int64_t>{0}, ExampleKey{}, 5).x().shape().str() == "[1, 5, 2]");
}

BOOST_AUTO_TEST_CASE(the_steps_of_a_target_that_count) {
  const Tensor lengths = i64s({1, 2});
  const Dataset own({sequences(zeros({3, 1}), lengths), sequences(zeros({3}), lengths)});
  BOOST_TEST(identical(own.all().target_lengths(), lengths));
  const Dataset shared({sequences(zeros({3, 1}), lengths), zeros({2, 2})}),
      apart({sequences(zeros({3, 1}), lengths), zeros({2, 5})});
  BOOST_TEST(identical(shared.all().target_lengths(), lengths));
  BOOST_TEST(!apart.all().target_lengths().defined());
}

BOOST_AUTO_TEST_CASE(examples_of_functions_generators_and_both) {
  const Dataset squares(5, [](std::int64_t i) { return Tensors{full({2}, static_cast<double>(i * i))}; });
  BOOST_TEST(
      identical(squares.batch(std::vector<std::int64_t>{2, 4}).x(), Tensor::from<float>({4, 4, 16, 16}, {2, 2})));
  int left = 3;
  const Dataset collected = Dataset::collect(
      [&]() -> std::optional<Tensors> {
        if (left == 0) return {};
        return Tensors{full({left--}, 1)};
      },
      {{.sequence = true, .padding = -1}});
  BOOST_TEST(collected.size() == 3);
  BOOST_TEST(collected.length(0) == 3);
  BOOST_TEST(identical(collected.all().x(), Tensor::from<float>({1, 1, 1, 1, 1, -1, 1, -1, -1}, {3, 3})));
  const Dataset both = numbers(2) + numbers(3);
  BOOST_TEST((rows(both) == std::vector<std::int64_t>{0, 1, 0, 1, 2}));
  BOOST_TEST((rows(both.subset({4, 4, 1})) == std::vector<std::int64_t>{2, 2, 1}));
  BOOST_TEST((rows(both.first(3)) == std::vector<std::int64_t>{0, 1, 0}));
  BOOST_CHECK_EXCEPTION(both.subset({5}), ShapeError, says("there is no example 5, there are 5"));
  BOOST_CHECK_EXCEPTION(small() + numbers(2), ValueError, says("fields of the two sets differ"));
  BOOST_CHECK_EXCEPTION(squares.batch(std::vector<std::int64_t>{}), ShapeError, says("a batch of no examples"));
}

BOOST_AUTO_TEST_CASE(examples_that_differ_in_shape) {
  const Dataset ragged(2, [](std::int64_t i) { return Tensors{zeros({i + 1, 2})}; });
  BOOST_CHECK_EXCEPTION(ragged.all(), ShapeError,
                        says("field 0 differs between examples: f32[1, 2] and f32[2, 2]; say"));
  const Dataset wider(2, [](std::int64_t i) { return Tensors{zeros({2, i + 1})}; }, {{.sequence = true}});
  BOOST_CHECK_EXCEPTION(wider.all(), ShapeError, says("field 0 differs between examples"));
  BOOST_CHECK_EXCEPTION(Dataset({zeros({2}), zeros({3})}), ShapeError, says("columns of 2 and 3 examples"));
  BOOST_CHECK_EXCEPTION(Dataset(std::vector<Column>{}), ValueError, says("it needs a column"));
  BOOST_CHECK_EXCEPTION(Dataset({zeros({})}), ShapeError, says("got a tensor of rank 0"));
}

BOOST_AUTO_TEST_CASE(changes_and_random_changes) {
  const Dataset doubled = numbers(4).map([](const Tensors& e) { return Tensors{e[0] * 2}; });
  BOOST_TEST((rows(doubled) == std::vector<std::int64_t>{0, 2, 4, 6}));
  const Dataset noisy = Dataset({zeros({3, 2})}).augment([](const Tensors& e, const ExampleKey& key) {
    return Tensors{e[0] + uniform({2}, key("noise")), e[0] + uniform({2}, key("more"))};
  });
  const std::vector<std::int64_t> same = {1, 1, 0};
  const auto changed = Dataset(noisy.map([](const Tensors& e) { return Tensors{e[0]}; }));
  const Batch a = changed.batch(same, {.seed = 1, .epoch = 2, .place = 5});
  BOOST_TEST(identical(a.x(), changed.batch(same, {.seed = 1, .epoch = 2, .place = 5}).x()));
  std::set<float> values;
  for (const ExampleKey& key : {ExampleKey{1, 2, 5}, ExampleKey{2, 2, 5}, ExampleKey{1, 3, 5}, ExampleKey{1, 2, 50}}) {
    const Batch b = changed.batch(same, key);
    for (const float v : b.x().to_vector<float>()) values.insert(v);
  }
  BOOST_TEST(values.size() == 24U);  // repeated examples, other seeds, epochs and places have different numbers
  // The place continues within a batch: its second example has the place of the first of the next one.
  BOOST_TEST(identical(slice(a.x(), 0, 1, 2), changed.batch(std::vector<std::int64_t>{1}, {1, 2, 6}).x()));
}

BOOST_AUTO_TEST_CASE(windows_of_a_series) {
  const Tensor series = concat({reshape(arange(0.0, 10.0, 1.0), {10, 1}), full({10, 1}, 7)}, 1);
  const Dataset data = windows(series, {.length = 4, .horizon = 2, .step = 2, .delay = 1, .targets = {0}});
  BOOST_TEST(data.size() == 2);  // 4 + 1 + 2 steps of 10, every second
  BOOST_TEST(identical(select(data[1][0], 1, 0), Tensor::from<float>({2, 3, 4, 5})));
  BOOST_TEST(identical(data[1][1], Tensor::from<float>({7, 8}, {2, 1})));
  BOOST_TEST(windows(series, {.length = 10, .horizon = 0}).size() == 1);
  BOOST_TEST(windows(series, {.length = 10, .horizon = 0})[0].size() == 1U);
  BOOST_TEST(windows(series, {.length = 10}).size() == 0);
  const Dataset each = windows(arange(0.0, 6.0, 1.0), {.length = 4, .every_step = true});
  BOOST_TEST(each.size() == 2);
  BOOST_TEST(identical(each[1][1], Tensor::from<float>({2, 3, 4, 5})));
  BOOST_CHECK_EXCEPTION(windows(series, {.length = 0}), ValueError, says("length must be at least 1, got 0"));
  BOOST_CHECK_EXCEPTION(windows(series, {.targets = {2}}), ValueError, says("there is no column 2 in [10, 2]"));
  const std::vector<Tensor> parts = split_series(series, {0.5, 0.3, 0.2});
  BOOST_TEST(parts.size() == 3U);
  BOOST_TEST(parts[1].shape().str() == "[3, 2]");
  BOOST_TEST(parts[2].to_vector<float>()[0] == 8);
}

BOOST_AUTO_TEST_CASE(rows_that_go_on_from_batch_to_batch) {
  const Dataset data = side_by_side(arange(22), 3, 2);  // rows of 7 steps: 0.., 7.., 14..
  BOOST_TEST(data.size() == 9);
  const std::vector<std::int64_t> second = {3, 4, 5};
  BOOST_TEST(identical(data.batch(second).x(), Tensor::from<std::int64_t>({2, 3, 9, 10, 16, 17}, {3, 2})));
  BOOST_TEST(identical(data.batch(second).y(), Tensor::from<std::int64_t>({3, 4, 10, 11, 17, 18}, {3, 2})));
  BOOST_TEST(identical(data[8][1], i64s({19, 20})));
  BOOST_CHECK_EXCEPTION(side_by_side(arange(6), 3, 2), ValueError, says("6 steps are too few for 3 rows of 2"));
}

BOOST_AUTO_TEST_CASE(splits_hold_every_example_once) {
  for (const std::int64_t n : {10, 11, 97}) {
    const std::vector<Dataset> parts = split(numbers(n), {0.6, 0.3, 0.1}, {.seed = 3});
    std::vector<std::int64_t> all;
    for (const Dataset& p : parts)
      for (const std::int64_t i : rows(p)) all.push_back(i);
    std::sort(all.begin(), all.end());
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0);
    BOOST_TEST((all == wanted), n);
    BOOST_TEST(std::abs(static_cast<double>(parts[0].size()) - 0.6 * static_cast<double>(n)) < 1);
  }
  BOOST_TEST((rows(split(numbers(97), {0.5}, {.seed = 1})[0]) != rows(split(numbers(97), {0.5}, {.seed = 2})[0])));
  const std::vector<Dataset> in_time = split(numbers(10), {0.5, 0.5}, {.shuffle = false, .gap = 2});
  BOOST_TEST((rows(in_time[0]) == std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  BOOST_TEST((rows(in_time[1]) == std::vector<std::int64_t>{7, 8, 9}));
  BOOST_CHECK_EXCEPTION(split(numbers(4), {0.7, 0.4}), ValueError, says("more than 1"));
  BOOST_CHECK_EXCEPTION(split(numbers(4), {0.5, 0.0}), ValueError, says("above 0"));
  BOOST_CHECK_EXCEPTION(split(numbers(4), {0.5}, {.gap = 1}), ValueError, says("a gap is for shuffle = false"));
}

BOOST_AUTO_TEST_CASE(stratified_splits_and_folds_have_all_classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 100; ++i) labels.push_back(i < 90 ? 0 : 1);
  const Tensor classes = Tensor::from(labels, {100});
  const Dataset data({classes});
  const auto rare = [](const Dataset& part) {
    const std::vector<std::int64_t> all = rows(part);
    return std::count(all.begin(), all.end(), 1);
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Dataset> parts = split(data, {0.7, 0.3}, {.seed = seed, .stratify = classes});
    BOOST_TEST(rare(parts[0]) == 7);
    BOOST_TEST(rare(parts[1]) == 3);
    for (const Fold& f : k_folds(data, 5, {.seed = seed, .stratify = classes})) {
      BOOST_TEST(rare(f.validation) == 2);
      BOOST_TEST(f.validation.size() == 20);
      BOOST_TEST(f.training.size() == 80);
    }
  }
}

// Three classes of 5 are halved. The examples that rounding leaves over go to the part that lost most so far, so the
// parts have 8 and 7 examples; class by class, one part would get 3 of each.
BOOST_AUTO_TEST_CASE(what_is_left_over_of_each_class_goes_around) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 15; ++i) labels.push_back(i % 3);
  const Tensor classes = Tensor::from(labels);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Dataset> parts = split(Dataset({classes}), {0.5, 0.5}, {.seed = seed, .stratify = classes});
    BOOST_TEST(parts[0].size() + parts[1].size() == 15);
    BOOST_TEST(std::abs(parts[0].size() - parts[1].size()) <= 1);
    for (const Dataset& part : parts)
      for (std::int64_t c = 0; c < 3; ++c) {
        const std::vector<std::int64_t> all = rows(part);
        const auto n = std::count(all.begin(), all.end(), c);
        BOOST_TEST((n == 2 || n == 3));
      }
  }
}

BOOST_AUTO_TEST_CASE(folds_take_every_example_once_for_validation) {
  for (const bool shuffle : {true, false}) {
    std::vector<int> seen(11);
    for (const Fold& f : k_folds(numbers(11), 4, {.shuffle = shuffle})) {
      BOOST_TEST(f.training.size() + f.validation.size() == 11);
      BOOST_TEST((f.validation.size() == 2 || f.validation.size() == 3));
      for (const std::int64_t i : rows(f.validation)) ++seen[static_cast<std::size_t>(i)];
    }
    BOOST_TEST((seen == std::vector<int>(11, 1)));
  }
  BOOST_TEST((rows(k_folds(numbers(9), 3, {.shuffle = false, .gap = 1})[1].training) ==
              std::vector<std::int64_t>{0, 1, 7, 8}));
  BOOST_CHECK_EXCEPTION(k_folds(numbers(3), 4), ValueError, says("cannot make 4 folds of 3 examples"));
  const std::vector<Fold> time = time_folds(numbers(10), 3, 1);  // parts of 2, as sklearn's TimeSeriesSplit(3, gap=1)
  BOOST_TEST((rows(time[0].training) == std::vector<std::int64_t>{0, 1, 2}));
  BOOST_TEST((rows(time[0].validation) == std::vector<std::int64_t>{4, 5}));
  BOOST_TEST((rows(time[2].training) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  BOOST_TEST((rows(time[2].validation) == std::vector<std::int64_t>{8, 9}));
}

BOOST_AUTO_TEST_CASE(flat_targets_are_one_row) {
  const Tensor series = reshape(cast(arange(24), Dtype::f32), {12, 2});
  const Dataset data = windows(series, {.length = 3, .horizon = 2, .flat = true});
  BOOST_TEST(data[1][0].shape().str() == "[3, 2]");
  BOOST_TEST(identical(data[1][1], Tensor::from<float>({8, 9, 10, 11})));  // steps 4 and 5
  const Dataset one = windows(series, {.length = 3, .targets = {1}, .flat = true});
  BOOST_TEST(identical(one[0][1], Tensor::from<float>({7})));
  BOOST_TEST(windows(series, {.length = 3, .horizon = 0, .flat = true})[0].size() == 1U);
  BOOST_CHECK_EXCEPTION(windows(series, {.every_step = true, .flat = true}), ValueError, says("flat is for targets"));
}

BOOST_AUTO_TEST_SUITE_END()
