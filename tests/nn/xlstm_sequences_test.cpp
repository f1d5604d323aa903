// The layers of an xLSTM over rows of different lengths, with resets, in pieces and as streams.
#include <cmath>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/fed.h"
#include "xlstm_cases.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

constexpr std::int64_t kRows = 3, kSteps = 23;

/// A layer of every kind and form, with weights other than its first ones.
struct Tried {
  std::string name;
  std::unique_ptr<nn::SequenceLayer> layer;
  /// True if pieces and streams have the bits of the whole; otherwise they agree within `most`.
  bool to_the_bit;
};

std::vector<Tried> all(Dtype dtype) {
  std::vector<Tried> them;
  const nn::Init init{.seed = 1, .dtype = dtype};
  const auto add = [&](const std::string& name, std::unique_ptr<nn::SequenceLayer> layer, bool to_the_bit) {
    xlstm_cases::stir(*layer);
    them.push_back({name, std::move(layer), to_the_bit});
  };
  for (const std::int64_t chunk : {1, 5, 64})
    add("mlstm, chunk " + std::to_string(chunk),
        std::make_unique<nn::MLstm>(
            nn::MLstmOptions{.embedding_dim = 4, .num_heads = 2, .round_up_to = 8, .chunk = chunk}, init),
        chunk == 1);
  add("mlstm, no taps",
      std::make_unique<nn::MLstm>(
          nn::MLstmOptions{.embedding_dim = 4, .num_heads = 1, .round_up_to = 4, .conv1d_kernel_size = 1, .chunk = 6},
          init),
      false);
  add("slstm", std::make_unique<nn::SLstm>(nn::SLstmOptions{.embedding_dim = 4, .num_heads = 2}, init), true);
  add("slstm, no convolution",
      std::make_unique<nn::SLstm>(nn::SLstmOptions{.embedding_dim = 4, .num_heads = 2, .conv1d_kernel_size = 0}, init),
      true);
  return them;
}

Tensor input(Dtype dtype) { return uniform({kRows, kSteps, 4}, {.seed = 2}, -1, 1, dtype); }
Tensor row(const Tensor& x, std::int64_t b) { return slice(x, 0, b, b + 1); }
Tensor joined(const Tensors& parts, std::int64_t axis) {
  return concat(std::span<const Tensor>(parts.data(), parts.size()), axis);
}

/// Checks equality to the bit if that is promised, else within a tolerance.
auto equal(const Tensor& a, const Tensor& b, bool to_the_bit, Dtype dtype) {
  return to_the_bit ? identical(contiguous(a), contiguous(b)) : within(a, b, dtype == Dtype::f64 ? 1e-12 : 1e-5);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(xlstm_sequences)

/// Rows of a padded batch have the results that they have alone; NaN in the padding reaches nothing and gets no
/// gradient.
BOOST_AUTO_TEST_CASE(rows_of_different_lengths) {
  const std::vector<std::int64_t> lengths = {kSteps, 1, 11};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Tried& t : all(dtype)) {
      Tensors padded;
      for (std::int64_t b = 0; b < kRows; ++b) {
        const std::int64_t n = lengths[static_cast<std::size_t>(b)];
        padded.push_back(concat({slice(row(input(dtype), b), 1, 0, n), full({1, kSteps - n, 4}, NAN, dtype)}, 1));
      }
      Tape tape;
      const Tensor x = tape.watch(joined(padded, 0));
      const nn::RecurrentResult r = t.layer->run(x, {.lengths = Tensor::from(lengths, {kRows})});
      const Tensor weight = uniform(r.output.shape(), {.seed = 3}, -1, 1, dtype);
      const Tensor dx = tape.grad(sum(r.output * weight) + sum(r.state), {x}, {.retain = true})[0];
      for (const Tensor& g : tape.grad(sum(r.output * weight) + sum(r.state), t.layer->parameters()))
        BOOST_TEST(sum(cast(!isfinite(g), Dtype::i64)).item<std::int64_t>() == 0, t.name);
      for (std::int64_t b = 0; b < kRows; ++b) {
        const std::int64_t n = lengths[static_cast<std::size_t>(b)];
        Tape alone;
        const Tensor own = alone.watch(slice(row(x, b), 1, 0, n));
        const nn::RecurrentResult wanted = t.layer->run(own);
        const Tensor d = alone.grad(sum(wanted.output * slice(row(weight, b), 1, 0, n)) + sum(wanted.state), {own})[0];
        BOOST_TEST(equal(slice(row(r.output, b), 1, 0, n), wanted.output, t.to_the_bit, dtype), t.name << " " << b);
        BOOST_TEST(equal(row(r.state, b), wanted.state, t.to_the_bit, dtype), t.name << ", state " << b);
        BOOST_TEST(equal(slice(row(dx, b), 1, 0, n), d, false, dtype), t.name << ", gradient " << b);
        BOOST_TEST(identical(contiguous(slice(row(r.output, b), 1, n)), zeros({1, kSteps - n, 4}, dtype)), t.name);
        BOOST_TEST(identical(contiguous(slice(row(dx, b), 1, n)), zeros({1, kSteps - n, 4}, dtype)), t.name);
      }
    }
}

/// After a reset a row is what begins there; the steps before may be NaN and get no gradient from those after.
BOOST_AUTO_TEST_CASE(resets_begin_anew) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Tried& t : all(dtype))
      for (const bool blemished : {false, true}) {
        const std::vector<std::vector<std::int64_t>> at = {{}, {0, 2, 3, 12}, {9, 22}};
        std::vector<std::int64_t> marks(kRows * kSteps, 0);
        for (std::size_t b = 0; b < at.size(); ++b)
          for (const std::int64_t s : at[b]) marks[b * kSteps + static_cast<std::size_t>(s)] = 1;
        const Tensor mask = cast(Tensor::from(marks, {kRows, kSteps}), Dtype::boolean);
        std::vector<double> holes(kRows * kSteps, 0);
        if (blemished) holes[kSteps + 10] = holes[2 * kSteps + 3] = holes[2 * kSteps + 21] = NAN;  // in three parts
        Tape tape;
        const Tensor x = tape.watch(input(dtype) + cast(Tensor::from(holes, {kRows, kSteps, 1}), dtype));
        const nn::RecurrentResult r = t.layer->run(x, {.reset_mask = mask});
        const Tensor weight = uniform(r.output.shape(), {.seed = 3}, -1, 1, dtype);
        const Tensor dx = blemished ? Tensor() : tape.grad(sum(r.output * weight) + sum(r.state), {x})[0];
        for (std::int64_t b = 0; b < kRows; ++b) {
          std::vector<std::int64_t> begins = at[static_cast<std::size_t>(b)];
          if (begins.empty() || begins[0] > 0) begins.insert(begins.begin(), 0);
          begins.push_back(kSteps);
          for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
            const std::int64_t from = begins[i], to = begins[i + 1];
            Tape alone;
            const Tensor own = alone.watch(slice(row(x, b), 1, from, to));
            const nn::RecurrentResult wanted = t.layer->run(own);
            const std::string about = t.name + ", row " + std::to_string(b) + " from " + std::to_string(from);
            const Tensor y = slice(row(r.output, b), 1, from, to);
            const bool last = to == kSteps;
            const bool holed = isnan(sum(own)).item<bool>();
            if (!holed) {
              BOOST_TEST(equal(y, wanted.output, t.to_the_bit, dtype), about);
              if (last) BOOST_TEST(equal(row(r.state, b), wanted.state, t.to_the_bit, dtype), about << ", state");
            } else {  // from the hole on, and up to the reset
              const Tensor steps = sum(cast(isnan(y), Dtype::i64), {0, 2});
              const Tensor hole = cummax(select(sum(cast(isnan(own), Dtype::i64), {2}), 0, 0), 0).values;
              BOOST_TEST(identical(steps, hole), about);
              if (last) BOOST_TEST(isnan(sum(row(r.state, b))).item<bool>(), about);
            }
            if (blemished) continue;
            Tensor loss = sum(wanted.output * slice(row(weight, b), 1, from, to));
            if (last) loss = loss + sum(wanted.state);
            BOOST_TEST(equal(slice(row(dx, b), 1, from, to), alone.grad(loss, {own})[0], false, dtype), about);
          }
        }
      }
}

/// A state that is not finite does not cross a reset at the first step, and resets after a row's end do not count.
BOOST_AUTO_TEST_CASE(resets_at_the_ends) {
  for (const Tried& t : all(Dtype::f64)) {
    const Tensor x = input(Dtype::f64);
    std::vector<std::int64_t> marks(kRows * kSteps, 0);
    marks[0] = marks[kSteps + 15] = marks[3 * kSteps - 2] = 1;
    const Tensor mask = cast(Tensor::from(marks, {kRows, kSteps}), Dtype::boolean);
    const std::int64_t W = t.layer->state_size();
    const Tensor lengths = Tensor::from<std::int64_t>({kSteps, 15, kSteps});
    const Tensor given = t.layer->run(uniform({kRows, 4, 4}, {.seed = 8}, -1, 1, Dtype::f64)).state;
    const Tensor before = concat({full({1, W}, NAN, Dtype::f64), slice(given, 0, 1)}, 0);
    const nn::RecurrentResult r = t.layer->run(x, {.lengths = lengths, .reset_mask = mask, .state = before});
    const auto alone = [&](std::int64_t b, std::int64_t n, const Tensor& state) {
      return t.layer->run(slice(row(x, b), 1, 0, n), {.state = state});
    };
    const nn::RecurrentResult first = alone(0, kSteps, {}), second = alone(1, 15, row(given, 1));
    BOOST_TEST(within(row(r.output, 0), first.output, 1e-12), t.name);
    BOOST_TEST(within(row(r.state, 0), first.state, 1e-12), t.name);
    BOOST_TEST(within(slice(row(r.output, 1), 1, 0, 15), second.output, 1e-12), t.name);
    BOOST_TEST(within(row(r.state, 1), second.state, 1e-12), t.name);
    const nn::RecurrentResult third = t.layer->run(slice(row(x, 2), 1, kSteps - 2));  // fewer steps than taps
    BOOST_TEST(within(slice(row(r.output, 2), 1, kSteps - 2), third.output, 1e-12), t.name);
    BOOST_TEST(within(row(r.state, 2), third.state, 1e-12), t.name);
  }
}

/// Values that are computed together with a later step do not see it.
BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_shows_from_there_on) {
  for (const Tried& t : all(Dtype::f32))
    for (const double hole : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      const Tensor x = input(Dtype::f32), y = (*t.layer)(x);
      const Tensor holed = concat({slice(x, 1, 0, 12), full({kRows, 1, 4}, hole), slice(x, 1, 13)}, 1);
      const nn::RecurrentResult r = t.layer->run(holed);
      BOOST_TEST(identical(contiguous(slice(r.output, 1, 0, 12)), contiguous(slice(y, 1, 0, 12))), t.name);
      BOOST_TEST(sum(cast(isnan(slice(r.output, 1, 12)), Dtype::i64)).item<std::int64_t>() == kRows * 11 * 4, t.name);
      BOOST_TEST(isnan(sum(r.state)).item<bool>(), t.name);
    }
}

BOOST_AUTO_TEST_CASE(pieces_with_a_carry_or_a_state_are_the_whole) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Tried& t : all(dtype)) {
      const Tensor x = input(dtype);
      const nn::RecurrentResult whole = t.layer->run(x);
      for (const std::int64_t length : {1, 2, 7}) {
        const nn::Carry carry(*t.layer, kRows);
        const auto planned = compile([&](const Tensor& piece) { return (*t.layer)(piece, {.carry = &carry}); });
        for (const bool compiled : {false, true}) {
          carry.reset();
          Tensors parts, by_state;
          Tensor state;
          for (const Tensor& piece : nn::pieces(x, length)) {
            parts.push_back(compiled ? planned(piece) : (*t.layer)(piece, {.carry = &carry}));
            const nn::RecurrentResult r = t.layer->run(piece, {.state = state});
            by_state.push_back(r.output);
            state = r.state;
          }
          BOOST_TEST(equal(joined(parts, 1), whole.output, t.to_the_bit, dtype), t.name << ", " << length);
          BOOST_TEST(identical(joined(by_state, 1), joined(parts, 1)), t.name << ", " << length);
          BOOST_TEST(equal(state, whole.state, t.to_the_bit, dtype), t.name << ", " << length);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(streams_are_the_whole) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Tried& t : all(dtype)) {
      const Tensor x = input(dtype), y = (*t.layer)(x);
      nn::Stream stream = t.layer->stream(kRows);
      const support::RowOutputs rows = support::fed(stream, x, y.spec());
      BOOST_TEST(stream.on_tensors() == 0U, t.name);
      for (std::int64_t b = 0; b < kRows; ++b)
        BOOST_TEST(equal(rows[static_cast<std::size_t>(b)], select(y, 0, b), t.to_the_bit, dtype), t.name);
    }
}

BOOST_AUTO_TEST_SUITE_END()
