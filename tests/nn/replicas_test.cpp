// Batch norms over replicas that train together: threads, each with a copy of the layer and its part of the batch. The
// expected values are those of one layer for the whole batch.
#include "ferrite/nn/replicas.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

/// A sum over threads, in which every thread waits for the others.
class Meeting {
 public:
  explicit Meeting(std::size_t replicas) : given_(replicas) {}
  Tensor sum(std::size_t replica, const Tensor& x) {
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    given_[replica] = x;
    if (++here_ == given_.size()) {
      total_ = given_[0];
      for (std::size_t r = 1; r < given_.size(); ++r) total_ = total_ + given_[r];
      here_ = 0, ++round_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round; });
    ++calls_;
    return total_;
  }
  std::size_t calls() const { return calls_; }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  Tensors given_;
  Tensor total_;
  std::size_t here_ = 0, round_ = 0, calls_ = 0;
};

const nn::Init kDoubles{.seed = 3, .dtype = Dtype::f64};
constexpr std::int64_t kRows = 7;

/// y, the gradients of x and of the parameters, those of a sum of their squares, and the buffers.
struct All {
  Tensor y, dx, ddx;
  Tensors shares, second_shares, buffers;
};
All all_of(const nn::Layer& layer, const Tensor& x, const Tensor& lengths, const nn::Replicas* replicas) {
  All all;
  Tape tape;
  const Tensor in = tape.watch(x);
  all.y = layer(in, {.lengths = lengths, .replicas = replicas});
  Tensor directions = sin(cumsum(ones_like(all.y), -1) + in);  // the same numbers wherever a row is
  const Tensor loss = sum(where(
      lengths.defined() ? unsqueeze(lt(arange(x.shape()[1]), unsqueeze(lengths, 1)), 2) : full({1}, 1, Dtype::boolean),
      directions * square(all.y), 0));
  all.dx = tape.grad({{loss}}, {in}, {.create_graph = true})[0];
  all.shares = tape.grad({{loss}}, layer.parameters(), {.create_graph = true});
  Tensor again = sum(square(all.dx));
  for (const Tensor& g : all.shares) again = again + sum(g * 0.25);
  all.ddx = tape.grad({{again}}, {in}, {.retain = true})[0];
  all.second_shares = tape.grad({{again}}, layer.parameters());
  for (const auto& b : layer.named_buffers()) all.buffers.push_back(b.variable.peek());
  return all;
}

/// Returns the results of replicas, each with its rows, put together.
All of_replicas(const nn::Layer& layer, const Tensor& x, const Tensor& lengths,
                const std::vector<std::int64_t>& begins) {
  const std::size_t n = begins.size() - 1;
  Meeting meeting(n);
  std::vector<All> each(n);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      const auto rows = [&](const Tensor& t) {
        return t.defined() ? contiguous(slice(t, 0, begins[r], begins[r + 1])) : t;
      };
      const nn::Replicas replicas([&](const Tensor& t) { return meeting.sum(r, t); });
      const std::unique_ptr<nn::Layer> own = layer.clone();
      each[r] = all_of(*own, rows(x), rows(lengths), &replicas);
    });
  for (std::thread& t : threads) t.join();
  All all = each[0];
  const auto joined = [&](Tensor All::*member) {
    Tensors parts;
    for (const All& a : each) parts.push_back(a.*member);
    return concat(std::span<const Tensor>(parts.data(), parts.size()), 0);
  };
  all.y = joined(&All::y), all.dx = joined(&All::dx), all.ddx = joined(&All::ddx);
  for (std::size_t r = 1; r < n; ++r) {
    for (std::size_t i = 0; i < all.shares.size(); ++i) {
      all.shares[i] = all.shares[i] + each[r].shares[i];
      all.second_shares[i] = all.second_shares[i] + each[r].second_shares[i];
    }
    for (std::size_t i = 0; i < all.buffers.size(); ++i) BOOST_TEST(identical(all.buffers[i], each[r].buffers[i]));
  }
  return all;
}

void check_same(const All& got, const All& wanted) {
  BOOST_TEST(within(got.y, wanted.y, 1e-12));
  BOOST_TEST(within(got.dx, wanted.dx, 1e-11));
  BOOST_TEST(within(got.ddx, wanted.ddx, 1e-10));
  for (std::size_t i = 0; i < wanted.shares.size(); ++i) {
    BOOST_TEST(within(got.shares[i], wanted.shares[i], 1e-11));
    BOOST_TEST(within(got.second_shares[i], wanted.second_shares[i], 1e-10));
  }
  for (std::size_t i = 0; i < wanted.buffers.size(); ++i) BOOST_TEST(within(got.buffers[i], wanted.buffers[i], 1e-12));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(replicas)

BOOST_AUTO_TEST_CASE(batch_norms_are_those_of_the_whole_batch) {
  for (const std::vector<std::int64_t>& begins :
       std::vector<std::vector<std::int64_t>>{{0, 3, 7}, {0, 1, 2, 7}, {0, 7, 7}}) {
    const nn::BatchNorm2d images({.num_features = 3, .momentum = 0.3}, kDoubles);
    check_same(of_replicas(images, uniform({kRows, 3, 2, 4}, {.seed = 1}, -1, 2, Dtype::f64), {}, begins),
               all_of(*images.clone(), uniform({kRows, 3, 2, 4}, {.seed = 1}, -1, 2, Dtype::f64), {}, nullptr));
    const nn::BatchNorm1d features({.num_features = 5, .momentum = {}}, kDoubles);
    check_same(of_replicas(features, uniform({kRows, 5}, {.seed = 2}, -1, 2, Dtype::f64), {}, begins),
               all_of(*features.clone(), uniform({kRows, 5}, {.seed = 2}, -1, 2, Dtype::f64), {}, nullptr));
  }
}

BOOST_AUTO_TEST_CASE(sequences_count_the_steps_of_all_replicas) {
  const nn::BatchNorm1d layer({.num_features = 2, .channels_last = true}, kDoubles);
  const Tensor x = uniform({kRows, 4, 2}, {.seed = 4}, -1, 2, Dtype::f64);
  const Tensor lengths = Tensor::from(std::vector<std::int64_t>{4, 1, 3, 2, 4, 1, 2}, {kRows});
  const Tensor valid = unsqueeze(lt(arange(4), unsqueeze(lengths, 1)), 2);
  All got = of_replicas(layer, x, lengths, {0, 2, 7}), wanted = all_of(*layer.clone(), x, lengths, nullptr);
  for (All* const all : {&got, &wanted}) all->y = where(valid, all->y, 0);
  check_same(got, wanted);
}

/// There are two messages forward and two backward; evaluation, and nets without batch norms, send none.
BOOST_AUTO_TEST_CASE(replicas_talk_only_where_numbers_are_taken) {
  std::size_t calls = 0;
  const nn::Replicas alone([&](const Tensor& x) {
    ++calls;
    return x;
  });
  const auto net = dsl::image(2, 4, 4).conv2d(3, 3).batch_norm().relu().flatten().linear(2).build(1);
  const Tensor x = uniform({3, 2, 4, 4}, {.seed = 1}, -1, 1);
  const Tensor with = net(x, {.replicas = &alone});
  BOOST_TEST(calls == 2U);
  BOOST_TEST(within(with, net(x), 1e-5));
  {
    Tape tape;
    const Tensor loss = sum(net(x, {.replicas = &alone}));
    calls = 0;
    (void)tape.grad(loss, net.parameters());
    BOOST_TEST(calls == 2U);
  }
  calls = 0;
  net.eval();
  (void)net(x, {.replicas = &alone});
  const nn::GroupNorm group({.num_groups = 1, .num_channels = 2});
  (void)group(x, {.replicas = &alone});
  BOOST_TEST(calls == 0U);
}

BOOST_AUTO_TEST_CASE(wrong_sums_are_refused) {
  BOOST_CHECK_EXCEPTION(nn::Replicas({}), ValueError, says("replicas: the function that sums is null"));
  const nn::Replicas another([](const Tensor&) { return zeros({2}); });
  BOOST_CHECK_EXCEPTION((void)another.sum(zeros({3})), ShapeError,
                        says("replicas: the sum of [3] over all replicas is [2]"));
  const nn::Replicas wide([](const Tensor& x) { return cast(x, Dtype::f64); });
  BOOST_CHECK_EXCEPTION((void)wide.sum(zeros({3})), DtypeError,
                        says("replicas: the sum of f32 over all replicas is f64"));
  const nn::BatchNorm1d layer({.num_features = 2});
  const nn::Replicas alone([](const Tensor& x) { return x; });
  BOOST_CHECK_EXCEPTION(
      (void)layer(zeros({1, 2}), {.replicas = &alone}), ValueError,
      says("batch_norm1d: training needs more than one value a channel: the number in all replicas 1"));
  const nn::Replicas reads([](const Tensor& x) { return Tensor::from(x.to_vector<float>(), x.shape()); });
  const Spec type{{4, 2}, Dtype::f32};
  BOOST_CHECK_THROW(
      (void)trace([&](const Tensors& x) { return Tensors{layer(x[0], {.replicas = &reads})}; }, {&type, 1}),
      TraceError);
}

BOOST_AUTO_TEST_SUITE_END()
