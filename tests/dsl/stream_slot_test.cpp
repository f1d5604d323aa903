// Slots: what is heard before, while and after a stream is replaced, errors, and streams of other rates. What threads
// may do is tested in tests/alloc/stream_slot_alloc_test.cpp and tests/threads/stream_slot_test.cpp.
#include "ferrite/nn/stream/stream_slot.h"

#include <algorithm>
#include <numbers>
#include <vector>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/layers.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;
using Values = std::vector<float>;

namespace {

dsl::Network gru(std::uint64_t seed, std::int64_t units = 6) {
  return dsl::sequence(2).gru(units).linear(2).build(seed);
}

/// A network that multiplies its input by a number.
dsl::Network times(float factor) {
  auto net = dsl::sequence(1).linear(1).build(1);
  net.named_parameters()[0].variable.assign(full({1, 1}, factor));
  net.named_parameters()[1].variable.assign(zeros({1}));
  return net;
}

Values noise(std::int64_t n, std::uint64_t seed) { return uniform({n}, {seed, 1, 0}, -1, 1).to_vector<float>(); }

Values run(nn::Stream stream, std::int64_t n, std::span<const float> x) {
  Values y(static_cast<std::size_t>(n * stream.result().batch * stream.result().width));
  stream.steps(n, x, y);
  return y;
}

/// Runs a slot in calls of changing sizes, at most `most` steps each.
void play(nn::StreamSlot& slot, std::int64_t values, std::span<const float> x, std::span<float> y, std::int64_t most) {
  const std::size_t step = static_cast<std::size_t>(values);
  for (std::size_t at = 0, k = 0; at < x.size(); ++k) {
    const auto n = static_cast<std::size_t>(1 + static_cast<std::int64_t>(k) * 37 % most);
    const std::size_t now = std::min(n * step, x.size() - at);
    slot.steps(static_cast<std::int64_t>(now / step), x.subspan(at, now), y.subspan(at, now));
    at += now;
  }
}

/// The tone of this frequency and phase 0 at a time in seconds.
double tone(double hertz, double time) { return std::sin(2 * std::numbers::pi * hertz * time); }

Values tone(double hertz, double rate, std::int64_t n) {
  Values x;
  for (std::int64_t t = 0; t < n; ++t) x.push_back(static_cast<float>(tone(hertz, static_cast<double>(t) / rate)));
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_slot)

BOOST_AUTO_TEST_CASE(a_slot_plays_its_stream) {
  const auto net = gru(1);
  const Values x = noise(2 * 300, 2), expected = run(net.stream(), 300, x);
  for (const std::int64_t most : {1, 5, 64, 200}) {
    nn::StreamSlot slot(net.stream());
    Values y(x.size());
    play(slot, 2, x, y, most);
    BOOST_TEST(y == expected, "calls of up to " << most);
    slot.reset();
    Values in_place = x;
    play(slot, 2, in_place, in_place, most);
    BOOST_TEST(in_place == expected, "in place, calls of up to " << most);
  }
  nn::StreamSlot slot(net.stream());
  slot.steps(0, {}, {});
  BOOST_TEST(slot.settled());
  BOOST_TEST(slot.latency() == 0);
}

/// Against the formula of the header, in f64. Both streams are in use from the call on that takes the new one, and the
/// new one begins with its first states.
BOOST_AUTO_TEST_CASE(streams_are_mixed_by_the_formula) {
  const std::int64_t B = 3, before = 50, after = 400, all = before + after;
  const std::size_t row = static_cast<std::size_t>(B * 2);
  const auto a = gru(1), b = gru(2, 9);
  const Values x = noise(all * B * 2, 3), first = run(a.stream(B), all, x),
               second = run(b.stream(B), after, std::span(x).subspan(before * row));
  for (const std::int64_t crossfade : {0, 1, 7, 64, 100})
    for (const std::int64_t lead : {0, 3, 90}) {
      BOOST_TEST_CONTEXT("crossfade " << crossfade << ", lead " << lead) {
        Values expected = first;
        for (std::size_t i = before * row; i < expected.size(); ++i) {
          const auto t = static_cast<std::int64_t>(i / row) - before - lead;
          const double w = std::clamp(static_cast<double>(t + 1) / static_cast<double>(crossfade + 1), 0.0, 1.0);
          const double to = static_cast<double>(second[i - before * row]), from = static_cast<double>(first[i]);
          expected[i] = static_cast<float>(from + w * (to - from));
        }
        for (const std::int64_t most : {1, 30, 1000}) {
          nn::StreamSlot slot(a.stream(B), {.crossfade = crossfade, .lead = lead});
          Values y(x.size());
          slot.steps(before, std::span(x).first(before * row), std::span(y).first(before * row));
          slot.put(b.stream(B));
          BOOST_TEST(!slot.settled());
          play(slot, B * 2, std::span(x).subspan(before * row), std::span(y).subspan(before * row), most);
          BOOST_TEST(slot.settled());
          const std::size_t mixed = (before + static_cast<std::size_t>(lead)) * row;
          const std::size_t alone = mixed + static_cast<std::size_t>(crossfade) * row;
          for (std::size_t i = 0; i < y.size(); ++i) {
            const bool fades = i >= mixed && i < alone;
            if (fades ? std::fabs(y[i] - expected[i]) <= 1e-6F : y[i] == expected[i]) continue;
            BOOST_TEST_REQUIRE(y[i] == expected[i], "step " << i / row << " of calls up to " << most);
          }
        }
      }
    }
}

/// The promise of the header about neighbouring steps.
BOOST_AUTO_TEST_CASE(a_change_is_no_jump) {
  const Values x(1000, 1.0F);
  for (const std::int64_t n : {1, 10, 333}) {
    nn::StreamSlot slot(times(1).stream(), {.crossfade = n});
    Values y(x.size());
    slot.steps(100, std::span(x).first(100), std::span(y).first(100));
    slot.put(times(-1).stream());
    play(slot, 1, std::span(x).subspan(100), std::span(y).subspan(100), 50);
    float largest = 0;
    for (std::size_t i = 1; i < y.size(); ++i) largest = std::max(largest, std::fabs(y[i] - y[i - 1]));
    BOOST_TEST(largest <= 2 / static_cast<float>(n + 1) + 1e-6F);
    BOOST_TEST(largest >= 2 / static_cast<float>(n + 1) - 1e-6F);
    BOOST_TEST(y.front() == 1);
    BOOST_TEST(y.back() == -1);
  }
}

/// A stream that waits is replaced; one that comes while another is faded in waits.
BOOST_AUTO_TEST_CASE(the_last_stream_counts) {
  nn::StreamSlot slot(times(1).stream(), {.crossfade = 10});
  Values x(40, 1.0F), y(40);
  const auto steps = [&](std::size_t n) {
    slot.steps(static_cast<std::int64_t>(n), std::span(x).first(n), std::span(y).first(n));
    return y[n - 1];
  };
  slot.put(times(2).stream());
  slot.put(times(3).stream());
  BOOST_TEST(steps(5) == 2.0F - 2.0F / 22, boost::test_tools::tolerance(1e-5F));  // 1 + 2 * 5 / 11
  slot.put(times(4).stream());
  slot.put(times(5).stream());
  BOOST_TEST(steps(5) == 1 + 2 * 10.0F / 11, boost::test_tools::tolerance(1e-5F));
  BOOST_TEST(!slot.settled());
  BOOST_TEST(steps(5) == 3 + 2 * 5.0F / 11, boost::test_tools::tolerance(1e-5F));
  slot.reset();
  BOOST_TEST(steps(1) == 5);
  BOOST_TEST(slot.settled());
}

/// States that a stream has are kept, and `reset` gives the first ones.
BOOST_AUTO_TEST_CASE(streams_keep_the_states_they_come_with) {
  const auto net = gru(4);
  const Values x = noise(2 * 60, 5), whole = run(net.stream(), 60, x);
  nn::Stream begun = net.stream();
  Values y(60), z(120);
  begun.steps(30, std::span(x).first(60), y);
  nn::StreamSlot slot(gru(1).stream(), {.crossfade = 0});
  slot.put(std::move(begun));
  slot.steps(30, std::span(x).subspan(60), y);
  BOOST_TEST(std::equal(y.begin(), y.end(), whole.begin() + 60));
  slot.reset();
  slot.steps(60, x, z);
  BOOST_TEST(z == whole);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto net = gru(1);
  nn::StreamSlot slot(net.stream(), {.rate = 48000});
  const auto put = [&](const dsl::Builder& words, std::int64_t batch = 1) { slot.put(words.build(1).stream(batch)); };
  BOOST_CHECK_EXCEPTION(
      put(dsl::sequence(3).linear(2)), ShapeError,
      says("stream slot: a step of the slot is [1, 2] -> [1, 2], one of this stream [1, 3] -> [1, 2]"));
  BOOST_CHECK_THROW(put(dsl::sequence(2).linear(3)), ShapeError);
  BOOST_CHECK_THROW(put(dsl::sequence(2).linear(2), 2), ShapeError);
  BOOST_CHECK_EXCEPTION(put(dsl::sequence(2).causal_conv1d(2, 3, {.stride = 2})), nn::PaceError, says("a stride of 2"));
  BOOST_CHECK_EXCEPTION(put(dsl::sequence(2).conv1d(2, 3, {.padding = ConvolutionPadding::same})), nn::PaceError,
                        says("a delay of 1"));
  BOOST_CHECK_EXCEPTION(slot.put(dsl::sequence(2).linear(2).build(1, Dtype::f64).stream()), DtypeError,
                        says("takes f64"));
  const nn::Activation relu("relu", nn::activation("relu"));
  BOOST_CHECK_EXCEPTION(slot.put(relu.stream()), ValueError, says("does not know its width yet; run a step"));
  BOOST_CHECK_EXCEPTION(slot.put(net.stream(), 44100.5), ValueError, says("whole number of Hz"));
  BOOST_CHECK_EXCEPTION(slot.put(net.stream(), -1), ValueError, says("whole number of Hz"));
  BOOST_CHECK_EXCEPTION(slot.put(net.stream(), 1000), ValueError, says("slot's 48000 Hz and the stream's 1000 Hz"));
  BOOST_CHECK_EXCEPTION(slot.put(net.stream(), 700001), ValueError, says("no conversion"));
  BOOST_TEST(slot.settled());
  BOOST_CHECK_THROW(nn::StreamSlot(net.stream(), {.crossfade = -1}), ValueError);
  BOOST_CHECK_THROW(nn::StreamSlot(net.stream(), {.lead = -1}), ValueError);
  BOOST_CHECK_THROW(nn::StreamSlot(net.stream(), {.rate = 0.5}), ValueError);
  Values x(4), y(4);
  const std::span<const float> in(x);
  const std::span<float> out(y);
  BOOST_CHECK_EXCEPTION(slot.steps(2, in.first(3), out), ShapeError,
                        says("stream slot: 2 steps take 4 values and give 4, got 3 and 4"));
  BOOST_CHECK_THROW(slot.steps(2, in, out.first(2)), ShapeError);
  BOOST_CHECK_THROW(slot.steps(-1, in, out), ShapeError);
  slot.steps(2, in, out);
  BOOST_TEST(y == run(net.stream(), 2, x));  // as if nothing had been
}

/// Attention whose room is full throws; the stream before it goes on.
BOOST_AUTO_TEST_CASE(a_new_stream_that_throws_is_dropped) {
  const auto net = gru(1);
  const auto short_of_room = dsl::sequence(2).attention(1, {.causal = true, .capacity = 4}).build(1);
  nn::StreamSlot slot(net.stream(), {.crossfade = 100});
  const Values x = noise(2 * 20, 1), expected = run(net.stream(), 20, x);
  slot.put(short_of_room.stream());
  Values y(x.size());
  slot.steps(4, std::span(x).first(8), std::span(y).first(8));
  BOOST_CHECK_THROW(slot.steps(1, std::span(x).subspan(8, 2), std::span(y).subspan(8, 2)), nn::CapacityError);
  BOOST_TEST(slot.settled());
  slot.steps(16, std::span(x).subspan(8), std::span(y).subspan(8));
  BOOST_TEST(std::equal(y.begin() + 8, y.end(), expected.begin() + 8));
}

/// A network that copies its input, at another rate: the same tone, `latency` steps later.
BOOST_AUTO_TEST_CASE(a_stream_of_another_rate_hears_the_same_sound) {
  for (const auto& [here, own] : {std::pair{44100.0, 48000.0},
                                  {48000.0, 44100.0},
                                  {96000.0, 48000.0},
                                  {48000.0, 96000.0},
                                  {192000.0, 44100.0},
                                  {16000.0, 44100.0},
                                  {8000.0, 128000.0}}) {
    BOOST_TEST_CONTEXT("the slot has " << here << " Hz, the stream " << own) {
      nn::StreamSlot slot(times(1).stream(), {.rate = here}, own);
      const double lower = std::min(here, own), flat = std::pow(10, 0.01 / 20) - 1;
      for (const double part : {0.01, 0.1, 0.3, 0.42}) {
        slot.reset();
        const Values x = tone(part * lower, here, 6000);
        Values y(x.size());
        play(slot, 1, x, y, 100);
        const auto late = static_cast<std::size_t>(slot.latency());
        BOOST_TEST(late < 64 * here / lower + 6);
        BOOST_TEST(std::all_of(y.begin(), y.begin() + slot.latency(), [](float v) { return v == 0; }));
        double worst = 0;
        for (std::size_t t = late + 1000; t < y.size(); ++t)
          worst = std::max(worst, std::fabs(static_cast<double>(y[t]) - static_cast<double>(x[t - late])));
        BOOST_TEST(worst <= 2 * flat, part << " of the lower rate");
      }
      Values once(3000), in_pieces(3000);
      const Values x = noise(3000, 7);
      slot.reset();
      slot.steps(3000, x, once);
      slot.reset();
      play(slot, 1, x, in_pieces, 150);
      BOOST_TEST(once == in_pieces);
    }
  }
}

/// A tone above what the lower rate can hold is not heard.
BOOST_AUTO_TEST_CASE(a_lower_rate_hears_no_aliases) {
  nn::StreamSlot slot(times(1).stream(), {.rate = 96000}, 44100);
  const Values x = tone(0.6 * 44100, 96000, 8000);
  Values y(x.size());
  slot.steps(8000, x, y);
  for (std::size_t t = 2000; t < y.size(); ++t) BOOST_REQUIRE_SMALL(y[t], 2e-4F);
}

/// A network with states, at half of the slot's rate, computes what it computes from the same sound at its own.
BOOST_AUTO_TEST_CASE(a_stream_of_another_rate_runs_at_its_own) {
  const auto net = dsl::sequence(1).gru(8).linear(1).build(3);
  nn::StreamSlot slot(net.stream(), {.rate = 96000}, 48000);
  const Values x = tone(997, 96000, 8000), own = run(net.stream(), 4000, tone(997, 48000, 4000));
  Values y(x.size());
  slot.steps(8000, x, y);
  const auto late = static_cast<std::size_t>(slot.latency());
  for (std::size_t u = 500; 2 * u + late < y.size(); ++u) BOOST_REQUIRE_SMALL(y[2 * u + late] - own[u], 3e-4F);
}

/// A stream of another rate is heard only when the zeros before its first output have passed.
BOOST_AUTO_TEST_CASE(a_stream_of_another_rate_begins_without_a_jump) {
  nn::StreamSlot slot(times(1).stream(), {.crossfade = 50, .rate = 48000});
  const Values x(600, 1.0F);
  Values y(x.size());
  slot.put(times(-1).stream(), 44100);
  play(slot, 1, x, y, 100);
  BOOST_TEST(slot.latency() > 0);
  for (std::size_t t = 1; t < y.size(); ++t) BOOST_REQUIRE_SMALL(y[t] - y[t - 1], 2.0F / 51 + 1e-4F);
  BOOST_TEST(y.back() == -1, boost::test_tools::tolerance(1e-4F));
}

/// The rate of the slot or of the stream may be unknown.
BOOST_AUTO_TEST_CASE(rates_that_are_not_known_count_as_equal) {
  const auto net = gru(1);
  nn::StreamSlot known(net.stream(), {.crossfade = 0, .rate = 48000}, 44100);
  BOOST_TEST(known.latency() > 0);
  known.put(net.stream());
  Values x(2), y(2);
  known.steps(1, x, y);
  BOOST_TEST(known.latency() == 0);
  BOOST_TEST(nn::StreamSlot(net.stream(), {}, 44100).latency() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
