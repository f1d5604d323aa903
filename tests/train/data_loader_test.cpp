// The order of epochs and the batches of loaders: shuffled, weighted, in buckets, made by threads.
#include "ferrite/train/data_loader.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;

namespace {

Dataset numbers(std::int64_t n) { return {{arange(n)}}; }

/// Returns the numbers of an epoch's examples in order.
std::vector<std::int64_t> order(const DataLoader& loader, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (const Batch& b : loader.epoch(epoch))
    for (const std::int64_t i : b.x().to_vector<std::int64_t>()) all.push_back(i);
  return all;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> x) {
  std::sort(x.begin(), x.end());
  return x;
}

/// Returns sequences of lengths 1 to 40, mixed, each of which holds its number.
Dataset mixed() {
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < 40; ++i) each.push_back(full({1 + i * 7 % 40, 1}, static_cast<double>(i)));
  return {{sequences(each), arange(40)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_loader)

BOOST_AUTO_TEST_CASE(every_epoch_has_an_order_of_its_own) {
  const DataLoader loader(numbers(10), {.batch_size = 3, .seed = 1});
  BOOST_TEST(loader.batches() == 4);
  BOOST_TEST(loader.samples() == 10);
  const std::vector<std::int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t e = 0; e < 20; ++e) {
    BOOST_TEST((sorted(order(loader, e)) == all));
    orders.insert(order(loader, e));
  }
  BOOST_TEST(orders.size() == 20U);
  BOOST_TEST((order(loader, 3) == order(DataLoader(numbers(10), {.batch_size = 5, .seed = 1}), 3)));
  BOOST_TEST((order(loader, 3) != order(DataLoader(numbers(10), {.batch_size = 3, .seed = 2}), 3)));
  BOOST_TEST((order(DataLoader(numbers(10), {.batch_size = 3, .shuffle = false}), 3) == all));
  const DataLoader dropping(numbers(10), {.batch_size = 4, .drop_last = true});
  BOOST_TEST(dropping.batches() == 2);
  BOOST_TEST(dropping.samples() == 8);
  BOOST_TEST(order(dropping, 0).size() == 8U);
}

BOOST_AUTO_TEST_CASE(an_epoch_may_begin_at_any_batch) {
  for (const int threads : {0, 3}) {
    const DataLoader loader(mixed(), {.batch_size = 4, .buckets = 3, .threads = threads});
    std::vector<Tensor> whole;
    for (const Batch& b : loader.epoch(2)) whole.push_back(b.y());
    for (std::int64_t first = 0; first <= loader.batches(); ++first) {
      DataLoader::Epoch rest = loader.epoch(2, first);
      std::int64_t at = first;
      for (const Batch& b : rest) {
        BOOST_TEST(rest.at() == at);
        BOOST_TEST(identical(b.y(), whole[static_cast<std::size_t>(at)]));
        BOOST_TEST(identical(b.y(), loader.batch(2, at).y()));
        ++at;
      }
      BOOST_TEST(at == loader.batches());
    }
    BOOST_CHECK_EXCEPTION((void)loader.epoch(0, loader.batches() + 1), ShapeError, says("cannot begin at batch"));
    BOOST_CHECK_EXCEPTION((void)loader.epoch(-1), ValueError, says("epoch must be at least 0, got -1"));
  }
}

BOOST_AUTO_TEST_CASE(threads_make_the_same_batches) {
  const Dataset noisy = mixed().augment([](const Tensors& e, const ExampleKey& key) {
    return Tensors{e[0] + normal(e[0].shape(), key("noise")), e[1]};
  });
  std::vector<Batch> wanted;
  for (const Batch& b : DataLoader(noisy, {.batch_size = 3, .seed = 4}).epoch(5)) wanted.push_back(b);
  for (const int threads : {1, 2, 7})
    for (const int prefetch : {1, 4}) {
      std::size_t i = 0;
      for (const Batch& b :
           DataLoader(noisy, {.batch_size = 3, .seed = 4, .threads = threads, .prefetch = prefetch}).epoch(5)) {
        BOOST_TEST(identical(b.x(), wanted[i].x()));
        BOOST_TEST(identical(b.lengths[0], wanted[i].lengths[0]));
        BOOST_TEST(identical(b.y(), wanted[i++].y()));
      }
      BOOST_TEST(i == wanted.size());
    }
}

BOOST_AUTO_TEST_CASE(what_a_data_set_throws_comes_with_its_batch) {
  const Dataset broken(10, [](std::int64_t i) {
    if (i == 5) throw IoError("example 5 is broken");
    return Tensors{full({1}, static_cast<double>(i))};
  });
  for (const int threads : {0, 3}) {
    const DataLoader loader(broken, {.batch_size = 2, .shuffle = false, .threads = threads});
    int good = 0;
    BOOST_CHECK_EXCEPTION(
        {
          for (const Batch& b : loader.epoch(0)) good += static_cast<int>(b.size());
        },
        IoError, says("example 5 is broken"));
    BOOST_TEST(good == 4);
  }
  // Leaving an epoch early ends its threads.
  const DataLoader loader(numbers(1000), {.batch_size = 1, .threads = 4});
  for (const Batch& b : loader.epoch(0)) {
    BOOST_TEST(b.size() == 1);
    break;
  }
}

BOOST_AUTO_TEST_CASE(weights_are_shares) {
  const Tensor labels = Tensor::from<std::int64_t>({0, 0, 0, 1});
  BOOST_TEST(identical(balanced_weights(labels), Tensor::from<double>({1 / 3.0, 1 / 3.0, 1 / 3.0, 1})));
  const DataLoader loader(Dataset({arange(4)}),
                          {.batch_size = 100, .weights = balanced_weights(labels), .samples = 30000});
  BOOST_TEST(loader.samples() == 30000);
  std::map<std::int64_t, int> count;
  for (const std::int64_t i : order(loader, 0)) ++count[i];
  for (const std::int64_t i : {0, 1, 2}) BOOST_TEST(std::abs(count[i] - 5000) < 300);  // four deviations: 260
  BOOST_TEST(std::abs(count[3] - 15000) < 350);
  BOOST_TEST((order(loader, 0) != order(loader, 1)));
  // Examples without weight never come, not even at the ends.
  for (const auto& [i, n] : [&] {
         std::map<std::int64_t, int> all;
         const DataLoader some(Dataset({arange(4)}),
                               {.weights = Tensor::from({0.0F, 1.0F, 1.0F, 0.0F}), .samples = 5000});
         for (const std::int64_t k : order(some, 0)) ++all[k];
         return all;
       }())
    BOOST_TEST((i == 1 || i == 2), i);
  const Dataset two({arange(2)});
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.weights = Tensor::from({1.0F, -1.0F})}), ValueError,
                        says("weights are at least 0"));
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.weights = zeros({2})}), ValueError, says("the weights add up to 0"));
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.weights = zeros({3})}), ShapeError, says("weights must be [2]"));
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.weights = ones({2}), .buckets = 2}), ValueError, says("exclude each other"));
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.batch_size = 0}), ValueError, says("batch size must be positive"));
  BOOST_CHECK_EXCEPTION(DataLoader(two, {.samples = 3}), ValueError, says("samples are for weights"));
}

// The buckets have a different order in each epoch, and the same order when an epoch is repeated.
BOOST_AUTO_TEST_CASE(every_epoch_has_its_order_of_buckets) {
  const DataLoader loader(mixed(), {.batch_size = 40, .bucket_lengths = {5, 10, 15, 20, 25, 30, 35, 40}});
  const auto lengths = [&](std::int64_t epoch) {
    std::vector<std::int64_t> all;
    for (const Batch& b : loader.epoch(epoch)) all.push_back(b.x().shape()[1]);
    return all;
  };
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    BOOST_TEST((sorted(lengths(epoch)) == std::vector<std::int64_t>{5, 10, 15, 20, 25, 30, 35, 40}));
    BOOST_TEST((lengths(epoch) == lengths(epoch)));
    orders.insert(lengths(epoch));
  }
  BOOST_TEST(orders.size() == 5U);
}

BOOST_AUTO_TEST_CASE(buckets_bound_the_shapes) {
  const DataLoader loader(mixed(), {.batch_size = 4, .bucket_lengths = {10, 20, 40}});
  std::set<std::string> shapes;
  std::vector<std::int64_t> seen;
  bool ascending = true;
  std::int64_t before = 0;
  for (const Batch& b : loader.epoch(0)) {
    shapes.insert(b.x().shape().str());
    const std::int64_t padded = b.x().shape()[1];
    ascending = ascending && padded >= before;
    before = padded;
    const std::vector<std::int64_t> lengths = b.lengths[0].to_vector<std::int64_t>();
    for (const std::int64_t n : lengths) BOOST_TEST((n <= padded && n > (padded == 40 ? 20 : padded - 10)));
    for (const std::int64_t i : b.y().to_vector<std::int64_t>()) seen.push_back(i);
  }
  BOOST_TEST(!ascending);           // batches of different buckets are mixed
  BOOST_TEST(shapes.size() == 5U);  // the 10 and 20 examples leave a smaller batch each, the 40 do not
  BOOST_TEST(seen.size() == 40U);
  BOOST_TEST(std::set(seen.begin(), seen.end()).size() == 40U);
  const DataLoader equal(mixed(), {.batch_size = 4, .buckets = 4});
  BOOST_TEST((equal.bucket_lengths() == std::vector<std::int64_t>{10, 20, 30, 40}));
  BOOST_CHECK_EXCEPTION(DataLoader(mixed(), {.bucket_lengths = {10, 39}}), ShapeError,
                        says("has 40 steps, the last bucket holds 39"));
  BOOST_CHECK_EXCEPTION(DataLoader(mixed(), {.bucket_lengths = {40, 20}}), ValueError, says("must ascend"));
}

BOOST_AUTO_TEST_SUITE_END()
