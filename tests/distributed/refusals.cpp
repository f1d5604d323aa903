// Errors of training steps, after which training can continue; run on one rank and on several.
#include <cmath>
#include <functional>
#include <iostream>
#include <set>

#include "ferrite/distributed/checkpoint.h"
#include "ferrite/distributed/data_parallel.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;

namespace ranks {

int refusals(const mpi::World& world, const Arguments&) {
  int wrong = 0;
  const auto throws = [&](const std::string& words, const std::function<void()>& f) {
    std::string told = "nothing was thrown";
    try {
      f();
    } catch (const Error& e) {
      told = e.what();
    }
    if (told.find(words) != std::string::npos) return;
    std::cout << "wanted '" << words << "', got '" << told << "'\n";
    ++wrong;
  };
  const auto check = [&](bool right, const char* what) {
    if (!right) std::cout << "wrong: " << what << '\n';
    wrong += !right;
  };
  struct Two : nn::Module {
    nn::Linear used{{.in_features = 2, .out_features = 1}}, unused{{.in_features = 2, .out_features = 1}};
    nn::BatchNorm1d norm{{.num_features = 2}};
    Two() : Module({.seed = 1}) { adopt("used", used), adopt("unused", unused), adopt("norm", norm); }
  };
  const Two net;
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const Generator noise(3);
  const Tensor x = normal({24, 2}, {.seed = 2});
  const auto loss = [&](const mpi::ShardBatch& b) {
    return mpi::Sum(sum(square(net.used(b.x))), static_cast<double>(b.rows.size()));
  };
  throws("do not divide the shards: 7", [&] {
    if (world.size() == 1) throw ValueError("do not divide the shards: 7");
    mpi::DataParallel(world, net, sgd, {.shards = 7});
  });
  throws("bucket_bytes must be positive", [&] { mpi::DataParallel(world, net, sgd, {.bucket_bytes = 0}); });
  throws("clip_norm must be finite", [&] { mpi::DataParallel(world, net, sgd, {.clip_norm = -1}); });
  throws("have different variables", [&] {
    if (world.size() == 1) throw ValueError("have different variables");
    const nn::Linear other({.in_features = 2 + world.rank(), .out_features = 1}, {.seed = 1});
    nn::Sgd of_other(other.parameters(), {.learning_rate = 0.1});
    mpi::DataParallel(world, other, of_other);
  });
  const mpi::DataParallel dp(world, net, sgd, {.variables = {noise.calls}});
  const Tensor before = net.used.weight.peek();
  throws("the count of all shards",
         [&] { (void)dp.step({x}, [&](const auto& b) { return mpi::Sum(loss(b).sum, 0.0); }); });
  throws("must hold one element", [&] {
    (void)dp.step({x}, [&](const auto& b) { return mpi::Sum(net.used(b.x), static_cast<double>(b.rows.size() + 1)); });
  });
  throws("differ in their rows", [&] { (void)dp.step({x, zeros({3})}, loss); });
  throws("the batch has no rows", [&] { (void)dp.step({zeros({0, 2})}, loss); });
  throws("of 24 rows, and was given", [&] { (void)dp.step(mpi::OwnRows{{zeros({1, 2})}, 24}, loss); });
  throws("called under a tape", [&] {
    Tape tape;
    (void)dp.step({x}, loss);
  });
  throws("is not a variable of the model", [&] {
    const Generator other(1);
    (void)dp.step({x}, [&](const auto& b) { return mpi::Sum(loss(b).sum * sum(other.uniform({1})), 1.0); });
  });
  throws("do not call Replicas::sum equally often", [&] {
    (void)dp.step({x}, [&](const auto& b) {
      const Tensor h = b.shard % 2 == 0 ? b.x : net.norm(b.x, b.context);
      return mpi::Sum(sum(net.used(h)), 1.0);
    });
  });
  check(same(net.used.weight.peek(), before), "a step that was refused changed something");

  // No two shards see the same random draws.
  std::set<float> draws;
  int shards = 0;
  (void)dp.evaluate({x}, [&](const auto&) {
    const Tensor one = noise.uniform({1});
    draws.insert(one.item<float>());
    ++shards;
    return mpi::Sum(sum(one), 1.0);
  });
  check(shards > 0 && draws.size() == static_cast<std::size_t>(shards), "draws of shards");
  noise.calls.assign(full({}, 0, Dtype::i64));

  // Draws of generators, recomputed values and unread parameters.
  const auto drawing = [&](const mpi::ShardBatch& b) {
    const Tensor h = checkpoint([&](const Tensor& t) { return net.used(t * noise.uniform(t.shape())); }, b.x);
    return mpi::Sum(sum(square(h)), static_cast<double>(b.rows.size()));
  };
  const Tensor unused = net.unused.weight.peek();
  const Tensor first = dp.step({x}, drawing), second = dp.step({x}, drawing);
  check(noise.calls.peek().item<std::int64_t>() == 2, "the counter of draws");
  check(same(net.unused.weight.peek(), unused), "a parameter that no shard reads has changed");
  throws("did not depend on parameter 'unused.weight' in the first step",
         [&] { (void)dp.step({x}, [&](const auto& b) { return mpi::Sum(sum(net.unused(b.x)), 1.0); }); });
  throws("nowhere", [&] { mpi::save_checkpoint(world, "nowhere/at/all/x", net, sgd, {}); });
  std::cout << "rank " << world.rank() << ": digest " << digest(second, digest(first, digest(net.used.weight.peek())))
            << " \n";
  return wrong ? 1 : 0;
}

/// A step on the shards of a batch with a masked loss and a batch norm equals, up to rounding, one step on the batch.
int plain_step(const mpi::World& world, const Arguments&) {
  struct Net : nn::Module {
    nn::Linear first{{.in_features = 3, .out_features = 4}}, last{{.in_features = 4, .out_features = 1}};
    nn::BatchNorm1d norm{{.num_features = 4}};
    Net() : Module({.seed = 7}) { adopt("first", first), adopt("norm", norm), adopt("last", last); }
    Tensor forward(const Tensor& x, const nn::Context& context) const { return last(tanh(norm(first(x), context))); }
  };
  bool right = true;
  for (const std::int64_t rows : {7, 30}) {
    const Net plain, parallel;
    const Tensor x = normal({rows, 3}, {.seed = 1}), m = gt(uniform({rows, 1}, {.seed = 2}), 0.4F);
    const auto masked = [&](const Net& net, const Tensor& in, const Tensor& mask, const nn::Context& context) {
      return sum(where(mask, square(net.forward(in, context) - 1), 0));
    };
    nn::Sgd by_plain(plain.parameters(), {.learning_rate = 0.1}),
        by_parallel(parallel.parameters(), {.learning_rate = 0.1});
    const mpi::DataParallel dp(world, parallel, by_parallel, {.clip_norm = 0.5});
    for (int k = 0; k < 3; ++k) {
      Tensor loss;
      {
        Tape tape;
        loss = masked(plain, x, m, {}) / sum(cast(m, Dtype::f32));
        by_plain.step(nn::clip_grad_norm(tape.grad(loss, plain.parameters()), 0.5).grads);
      }
      const Tensor mean = dp.step({x, m}, [&](const mpi::ShardBatch& b) {
        return mpi::Sum(masked(parallel, b.x, b.y, b.context), sum(cast(b.y, Dtype::f64)));
      });
      right &= std::abs(mean.item() - loss.item()) < 2e-6F;
    }
    const auto near = [&](const Tensor& a, const Tensor& b) {
      right &= amax(abs(cast(a - b, Dtype::f64))).item<double>() < 2e-6;
    };
    for (std::size_t i = 0; i < plain.named_parameters().size(); ++i)
      near(parallel.named_parameters()[i].variable.peek(), plain.named_parameters()[i].variable.peek());
    for (std::size_t i = 0; i < plain.named_buffers().size(); ++i)
      near(parallel.named_buffers()[i].variable.peek(), plain.named_buffers()[i].variable.peek());
  }
  return right ? 0 : 1;
}

}  // namespace ranks
