#pragma once
/// Layers of a user that can be streamed: a filter over time, the same around a GRU, attention over all steps so far.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/recurrent/gru.h"

namespace causal_layers {

using namespace ferrite;

/// y_t = a x_t + b x_(t-1) + c x_(t-2), for each feature separately. The taps are a parameter [3, D].
struct Fir final : nn::Layer {
  Parameter taps;
  Fir(std::int64_t features, const nn::Init& init) : Layer(init) {
    taps = parameter("taps", {3, features}, nn::init::uniform(-1, 1), init);
  }
  std::string kind() const override { return "fir"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return {taps.shape()[1], taps.dtype()}; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    const std::int64_t T = x.shape()[1];
    const Tensor padded = concat({zeros({x.shape()[0], 2, x.shape()[2]}, x.dtype()), x}, 1);
    return filtered(slice(padded, 1, 0, T), slice(padded, 1, 1, T + 1), x);
  }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override {
    return {{.name = "before", .shape = {in.batch, 2, in.width}, .dtype = in.dtype}};
  }
  nn::StepResult step(const Tensor& x, const Tensors& s) const override {
    const Tensor last = select(s[0], 1, 1);
    return {filtered(select(s[0], 1, 0), last, x), {stack({last, x}, 1)}};
  }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Fir>(taps.shape()[1], nn::Init{.seed = 0, .prefix = {}, .dtype = taps.dtype()});
    nn::copy_values(*this, *copy);
    return copy;
  }

 private:
  Tensor filtered(const Tensor& x2, const Tensor& x1, const Tensor& x0) const {
    const Tensor w = taps.value();
    return select(w, 0, 0) * x0 + select(w, 0, 1) * x1 + select(w, 0, 2) * x2;
  }
};

/// y_t = 2 x_t - x_(t-1) + x_(t-2) + x_(t-1) / 2, with two states of the same value, and one that was another's value.
struct Delays final : nn::Layer {
  std::string kind() const override { return "delays"; }
  bool causal() const override { return true; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    const std::int64_t T = x.shape()[1];
    const Tensor padded = concat({zeros({x.shape()[0], 2, x.shape()[2]}, x.dtype()), x}, 1);
    const Tensor last = slice(padded, 1, 1, T + 1);
    return 2 * x - last + slice(padded, 1, 0, T) + last / 2;
  }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override {
    const Shape row = {in.batch, in.width};
    return {{.name = "last", .shape = row, .dtype = in.dtype},
            {.name = "also_last", .shape = row, .dtype = in.dtype},
            {.name = "before", .shape = row, .dtype = in.dtype}};
  }
  nn::StepResult step(const Tensor& x, const Tensors& s) const override {
    return {2 * x - s[0] + s[2] + s[1] / 2, {x, x, s[0]}};
  }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Delays>(); }
};

/// y_t = x_t + the sum over s < t of x_(s-1): a state is appended as it was before the step.
struct History final : nn::Layer {
  std::int64_t capacity;
  explicit History(std::int64_t most_steps) : capacity(most_steps) {}
  std::string kind() const override { return "history"; }
  bool causal() const override { return true; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    const std::int64_t B = x.shape()[0], T = x.shape()[1], D = x.shape()[2], C = std::max(capacity, T);
    const Tensor nothing = zeros({B, 1, D}, x.dtype());
    const Tensor delayed = concat({nothing, slice(x, 1, 0, T - 1), expand(nothing, {B, C - T, D})}, 1);
    const Tensor before = lt(arange(C), reshape(arange(T), {T, 1}));  // [T, C]
    return x + sum(where(unsqueeze(before, 2), unsqueeze(delayed, 1), 0), {2});
  }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override {
    const Shape row = {in.batch, in.width};
    return {{.name = "last", .shape = row, .dtype = in.dtype},
            {.name = "past", .shape = row, .dtype = in.dtype, .capacity = capacity}};
  }
  nn::StepResult step(const Tensor& x, const Tensors& s) const override { return {x + sum(s[1], {1}), {x, s[0]}}; }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<History>(capacity); }
};

/// Returns its input, or values that are the same in every step.
struct Same final : nn::Layer {
  bool identity;
  explicit Same(bool gives_input) : identity(gives_input) {}
  std::string kind() const override { return "same"; }
  bool causal() const override { return true; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    return identity ? x : expand(cast(Tensor::from<float>({1, 2, 3}), x.dtype()), {x.shape()[0], x.shape()[1], 3});
  }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Same>(identity); }
};

/// x + gru(fir(x)) as one layer that holds the two others.
struct FilteredGru final : nn::Layer {
  Fir fir;
  nn::Gru gru;
  FilteredGru(std::int64_t features, const nn::Init& init)
      : Layer(init), fir(features, init.child("fir")), gru(features, features, init.child("gru")) {
    adopt("fir", fir), adopt("gru", gru);
  }
  std::string kind() const override { return "filtered_gru"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return fir.step_input(); }
  Tensor forward(const Tensor& x, const nn::Context& context) const override { return x + gru(fir(x), context); }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override {
    return {fir.states(in)[0], gru.states(in)[0]};
  }
  nn::StepResult step(const Tensor& x, const Tensors& s) const override {
    const nn::StepResult filtered = fir.advance(x, {s[0]}), next = gru.advance(filtered.y, {s[1]});
    return {x + next.y, {filtered.states[0], next.states[0]}};
  }
  std::unique_ptr<nn::Layer> clone() const override {
    const nn::Init init{.seed = 0, .prefix = {}, .dtype = fir.taps.dtype()};
    auto copy = std::make_unique<FilteredGru>(fir.taps.shape()[1], init);
    nn::copy_values(*this, *copy);
    return copy;
  }
};

/// softmax(q_t . k_s) v_s over the steps s <= t, where q, k, v are linear in x. Streams hold at most `capacity` steps.
struct Attention final : nn::Layer {
  nn::Linear query, key, value;
  std::int64_t capacity;
  Attention(std::int64_t features, std::int64_t most_steps, const nn::Init& init)
      : Layer(init),
        query(features, features, init.child("query")),
        key(features, features, init.child("key")),
        value(features, features, init.child("value")),
        capacity(most_steps) {
    adopt("query", query), adopt("key", key), adopt("value", value);
  }
  std::string kind() const override { return "attention"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return query.step_input(); }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    const std::int64_t T = x.shape()[1];
    const Tensor seen = ge(reshape(arange(T), {T, 1}), arange(T));  // [T, T]
    return attend(query(x), key(x), value(x), seen);
  }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override {
    const Shape entry = {in.batch, in.width};
    return {{.name = "keys", .shape = entry, .dtype = in.dtype, .capacity = capacity},
            {.name = "values", .shape = entry, .dtype = in.dtype, .capacity = capacity}};
  }
  nn::StepResult step(const Tensor& x, const Tensors& s) const override {
    const Tensor k = key(x), v = value(x), steps = unsqueeze(s[2], 1);
    const Tensor own = unsqueeze(eq(arange(capacity), steps), 2);   // [B, C, 1]: the place of this step
    const Tensor seen = unsqueeze(ge(steps, arange(capacity)), 1);  // [B, 1, C]
    const Tensor y =
        attend(unsqueeze(query(x), 1), where(own, unsqueeze(k, 1), s[0]), where(own, unsqueeze(v, 1), s[1]), seen);
    return {squeeze(y, 1), {k, v}};
  }
  std::unique_ptr<nn::Layer> clone() const override {
    const nn::Init init{.seed = 0, .prefix = {}, .dtype = query.weight.dtype()};
    auto copy = std::make_unique<Attention>(query.in_features(), capacity, init);
    nn::copy_values(*this, *copy);
    return copy;
  }

 private:
  /// Returns attention for q [B, T, D] and k, v [B, S, D]; `seen` says which of the S steps each of the T sees.
  static Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& seen) {
    const Tensor scores = matmul(q, permute(k, {0, 2, 1})) / std::sqrt(static_cast<double>(q.shape()[2]));
    return matmul(softmax(where(seen, scores, -std::numeric_limits<double>::infinity()), -1), v);
  }
};

}  // namespace causal_layers
