// Programs over time as streams: every step has the bits of the whole program, and programs that are not causal are
// refused by name.
#include "ferrite/exchange/program_stream.h"

#include <algorithm>

#include "ferrite/compile/scan.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/pooling.h"
#include "support/compare.h"
#include "support/frozen.h"

using namespace ferrite;
using support::identical;
using support::says;
using Program = exchange::ProgramStream::Program;

namespace {

Tensor weights(const Shape& s, std::uint64_t seed) { return uniform(s, {.seed = seed}, -0.5, 0.5); }

/// Compares the steps of a stream as C, step by step, with steps of the whole program; `x` and `whole` hold the latter.
void check_as_c(const Program& f, const Spec& step, int axis, const Tensor& x, const Tensor& whole, int out_axis) {
  if (!frozen::rounds_once()) return;
  frozen::Library library;
  const exchange::ProgramInput input{.step = step, .time_axis = axis};
  library.add("net", exchange::freeze(f, std::span(&input, 1), {.verify = false}, {.name = "net"}));
  const std::string built = library.build(frozen::compilers()[0]);
  BOOST_TEST_REQUIRE(built == "");
  const auto c = library.functions<float, float>("net");
  std::vector<std::byte> memory(c.bytes);
  BOOST_TEST(c.check(memory.data()) == 0);
  std::vector<float> y(c.outputs);
  for (std::int64_t t = 0; t < x.shape()[axis]; ++t) {
    const Tensor frame = contiguous(slice(x, axis, t, t + 1));
    BOOST_TEST_REQUIRE(c.step(memory.data(), frame.values<float>().data(), y.data()) == 0);
    const Tensor wanted = contiguous(slice(whole, out_axis, t, t + 1));
    BOOST_TEST(identical(Tensor::from(y, wanted.shape()), wanted), "step " << t << " differs as C");
  }
}

/// Compares the joined steps of a stream of one input and one output with the whole program: from the beginning, and
/// again after a reset. Does the same with the stream as C.
void check_against_whole(const Program& f, const Spec& step, int axis, int out_axis) {
  exchange::ProgramStream s(f, {{.step = step, .time_axis = axis}}, {.verify = false});
  constexpr std::int64_t T = 40;
  Shape shape = step.shape;
  shape[axis] = T;
  const Tensor x = uniform(shape, {.seed = 77}, -1, 1);
  const Tensor whole = f({x})[0];
  for (int round = 0; round < 2; ++round, s.reset()) {
    Tensors steps;
    for (std::int64_t t = 0; t < T; ++t) {
      const Tensor frame = contiguous(slice(x, axis, t, t + 1));
      std::ranges::copy(frame.values<float>(), s.input(0).begin());
      s.step();
      steps.push_back(Tensor::from(s.output(0), s.output_spec(0).shape));
    }
    BOOST_TEST(identical(concat(std::span<const Tensor>(steps.data(), steps.size()), out_axis), whole));
  }
  check_as_c(f, step, axis, x, whole, out_axis);
}

void check_refused(const Program& f, const Spec& step, int axis, const std::string& words) {
  BOOST_CHECK_EXCEPTION(exchange::ProgramStream(f, {{.step = step, .time_axis = axis}}, {.verify = false}), ValueError,
                        says(words));
}

const Spec kPlane{{1, 3, 1, 8}};  // [B, C, T, F]

/// Returns x with zeros, or another value, before the first step.
Tensor before(const Tensor& x, int axis, std::int64_t n, Scalar value = 0) {
  Shape front = Shape::filled(x.rank(), 0), back = front;
  front[axis] = n;
  return pad(x, front, back, value);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(program_stream)

BOOST_AUTO_TEST_CASE(windows_reach_back_to_frames_that_are_held) {
  const Tensor w = weights({4, 3, 3, 3}, 1), b = weights({4}, 2), narrow = weights({5, 4, 2, 1}, 3);
  check_against_whole(
      [&](const Tensors& in) {
        const Tensor y = relu(conv2d(before(in[0], 2, 2), w, b, {.padding = {0, 1}}));
        return Tensors{tanh(conv2d(before(y, 2, 3), narrow, {}, {.dilation = {3, 1}}))};
      },
      kPlane, 2, 2);
  // Padding by the convolution itself, on both sides, cut off at the end.
  check_against_whole(
      [&](const Tensors& in) {
        return Tensors{slice(conv2d(in[0], w, b, {.padding = {2, 1}}), 2, 0, in[0].shape()[2])};
      },
      kPlane, 2, 2);
  const Tensor w1 = weights({6, 3, 4}, 5);
  check_against_whole([&](const Tensors& in) { return Tensors{conv1d(before(in[0], 2, 3, 0.5), w1)}; }, {{2, 3, 1}}, 2,
                      2);
}

BOOST_AUTO_TEST_CASE(frames_before_the_first_pass_through_what_follows) {
  // Three frames of a constant before the first, through a layer whose window needs one of them, then joined with a
  // path that is not ahead.
  const Tensor w = weights({3, 3, 2}, 4), b = weights({3}, 6);
  check_against_whole(
      [&](const Tensors& in) {
        const Tensor ahead = sigmoid(conv1d(before(in[0], 2, 3, 0.25), w, b));  // two frames ahead
        return Tensors{slice(ahead, 2, 0, in[0].shape()[2]) * in[0]};
      },
      {{1, 3, 1}}, 2, 2);
  // A program with a recurrence.
  const nn::Gru gru(3, 4, {.layers = 2}, {.seed = 3});
  check_against_whole(
      [&](const Tensors& in) { return Tensors{slice(gru(before(in[0], 1, 2, 1)), 1, 1, in[0].shape()[1] + 1)}; },
      {{1, 1, 3}}, 1, 1);
}

BOOST_AUTO_TEST_CASE(one_path_ahead_of_another_waits) {
  check_against_whole(
      [&](const Tensors& in) {
        const std::int64_t T = in[0].shape()[1];
        Tensor y = in[0];
        for (const std::int64_t n : {1, 3, 4}) y = y + 0.5 * slice(concat({full({2, n, 4}, 2.0), in[0]}, 1), 1, 0, T);
        return Tensors{y};
      },
      {{2, 1, 4}}, 1, 1);
}

BOOST_AUTO_TEST_CASE(recurrences_go_on_from_their_states) {
  const nn::Gru gru(5, 7, {.layers = 2}, {.seed = 1});
  check_against_whole([&](const Tensors& in) { return Tensors{gru(in[0])}; }, {{3, 1, 5}}, 1, 1);
  const nn::Lstm lstm(5, 7, {}, {.seed = 2});
  check_against_whole([&](const Tensors& in) { return Tensors{lstm(in[0])}; }, {{3, 1, 5}}, 1, 1);
  const nn::Rnn rnn(5, 7, {}, {.seed = 3});
  check_against_whole([&](const Tensors& in) { return Tensors{rnn(in[0])}; }, {{3, 1, 5}}, 1, 1);
  const nn::Gru scanned(5, 7, {.form = nn::Form::scan}, {.seed = 4});
  check_against_whole([&](const Tensors& in) { return Tensors{scanned(in[0])}; }, {{3, 1, 5}}, 1, 1);
}

BOOST_AUTO_TEST_CASE(a_net_of_planes_features_and_recurrence) {
  const Tensor w = weights({4, 3, 3, 3}, 1), head = weights({6, 2}, 5);
  const nn::Gru gru(32, 6, {}, {.seed = 9});
  check_against_whole(
      [&](const Tensors& in) {
        const std::int64_t T = in[0].shape()[2];
        Tensor y = relu(conv2d(before(in[0], 2, 2), w, {}, {.padding = {0, 1}}));  // [1, 4, T, 8]
        y = reshape(permute(y, {0, 2, 1, 3}), {1, T, 32});
        return Tensors{softmax(matmul(gru(y), head), -1)};
      },
      kPlane, 2, 1);
  const Tensor mean_of = weights({1, 3, 1}, 8);
  check_against_whole(
      [&](const Tensors& in) {
        const Tensor m = mean(in[0], {1, 3}, true);
        return Tensors{max_pool2d((in[0] - m) * ones({1, 3, in[0].shape()[2], 8}), {1, 2})};
      },
      kPlane, 2, 2);
}

BOOST_AUTO_TEST_CASE(several_inputs_outputs_and_declared_states) {
  const Tensor w = weights({2, 2}, 3);
  const Program f = [&](const Tensors& in) {
    const Tensor h = tanh(matmul(in[0], w) + in[1]);
    return Tensors{h * 2, h};
  };
  exchange::ProgramStream s(f, {{.step = {{1, 2}}, .time_axis = -1}, {.step = {{1, 2}}, .time_axis = -1}},
                            {.states = {{1, 1}}});
  Tensor h = zeros({1, 2});
  for (int t = 0; t < 5; ++t) {
    const Tensor x = weights({1, 2}, static_cast<std::uint64_t>(20 + t));
    std::ranges::copy(x.values<float>(), s.input(0).begin());
    s.step();
    const Tensors out = f({x, h});
    h = out[1];
    BOOST_TEST(identical(Tensor::from(s.output(0), {1, 2}), out[0]));
    BOOST_TEST(identical(Tensor::from(s.output(1), {1, 2}), h));
  }
  BOOST_TEST(s.state_bytes() == 8);
  BOOST_CHECK_THROW((void)s.input(1), ValueError);
  BOOST_CHECK_THROW((void)s.input<double>(0), DtypeError);
  BOOST_CHECK_THROW((void)s.input(2), ValueError);
  BOOST_CHECK_THROW((void)s.output(2), ValueError);
}

/// The states stay: the new weights continue from them, and a reset starts with the values of the new weights before
/// the first step.
BOOST_AUTO_TEST_CASE(parameters_are_followed_by_refresh) {
  nn::Gru gru(2, 2, {}, {.seed = 1});
  const auto f = [&](const Tensors& in) { return Tensors{gru(sigmoid(before(gru(in[0]), 1, 1)))}; };
  const auto causal = [&](const Tensors& in) { return Tensors{slice(f(in)[0], 1, 0, in[0].shape()[1])}; };
  exchange::ProgramStream s(causal, {{.step = {{1, 1, 2}}, .time_axis = 1}});
  const auto step = [](exchange::ProgramStream& of, std::uint64_t seed) {
    std::ranges::copy(weights({1, 1, 2}, seed).to_vector<float>(), of.input(0).begin());
    of.step();
    return Tensor::from(of.output(0), {1, 1, 2});
  };
  (void)step(s, 2);
  const std::vector<Tensor> saved = s.save();
  for (const Parameter& p : gru.parameters()) p.assign(p.peek() * 0.5);
  s.refresh();
  for (std::size_t k = 0; k < saved.size(); ++k) BOOST_TEST(identical(s.save()[k], saved[k]));
  s.reset();
  const Tensor x = concat({weights({1, 1, 2}, 3), weights({1, 1, 2}, 4)}, 1), whole = causal({x})[0];
  BOOST_TEST(identical(concat({step(s, 3), step(s, 4)}, 1), whole));
}

BOOST_AUTO_TEST_CASE(streams_are_cloned_saved_and_restored) {
  const nn::Gru gru(3, 3, {}, {.seed = 1});
  const Program f = [&](const Tensors& in) {
    return Tensors{in[0] + slice(before(gru(in[0]), 1, 2), 1, 0, in[0].shape()[1])};
  };
  const auto made = [&] { return exchange::ProgramStream(f, {{.step = {{2, 1, 3}}, .time_axis = 1}}); };
  const Tensor x = weights({2, 12, 3}, 5), whole = f({x})[0];
  exchange::ProgramStream s = made(), other = made();
  const auto goes = [&](exchange::ProgramStream& of, std::int64_t from, std::int64_t to) {
    bool same = true;
    for (std::int64_t t = from; t < to; ++t) {
      std::ranges::copy(slice(x, 1, t, t + 1).to_vector<float>(), of.input(0).begin());
      of.step();
      same = same && identical(Tensor::from(of.output(0), {2, 1, 3}), contiguous(slice(whole, 1, t, t + 1)));
    }
    return same;
  };
  BOOST_TEST(goes(s, 0, 5));
  exchange::ProgramStream copy = s.clone();
  const std::vector<Tensor> saved = s.save();
  BOOST_TEST(goes(s, 5, 12));
  BOOST_TEST(goes(copy, 5, 12));
  BOOST_TEST(goes(other, 0, 9));
  other.restore(saved);
  BOOST_TEST(goes(other, 5, 12));
  BOOST_CHECK_THROW(other.restore({}), ValueError);
  std::vector<Tensor> wrong = saved;
  wrong.back() = zeros({7});
  BOOST_CHECK_THROW(other.restore(wrong), ShapeError);
  for (std::size_t k = 0; k < saved.size(); ++k) BOOST_TEST(!identical(other.save()[k], wrong[k]));
}

BOOST_AUTO_TEST_CASE(what_is_not_causal_is_refused_by_name) {
  const Tensor w = weights({3, 3, 3}, 1);
  const Spec wave{{1, 3, 1}}, rows{{1, 1, 3}};
  check_refused([&](const Tensors& in) { return Tensors{conv1d(in[0], w, {}, {.padding = {1}})}; }, wave, 2,
                "convolution looks 1 steps ahead");
  check_refused([&](const Tensors& in) { return Tensors{conv1d(before(in[0], 2, 2), w, {}, {.stride = {2}})}; }, wave,
                2, "strides over time");
  check_refused([&](const Tensors& in) { return Tensors{in[0] - mean(in[0], {2}, true)}; }, wave, 2,
                "reduces over time");
  check_refused([&](const Tensors& in) { return Tensors{softmax(in[0], 2)}; }, wave, 2, "goes along time");
  check_refused([&](const Tensors& in) { return Tensors{flip(in[0], {2})}; }, wave, 2, "slice");
  check_refused([&](const Tensors& in) { return Tensors{matmul(transpose(in[0], 1, 2), in[0])}; }, rows, 1,
                "sums over time");
  check_refused([&](const Tensors& in) { return Tensors{cumsum(in[0], 1)}; }, rows, 1, "goes along time");
  check_refused(
      [&](const Tensors& in) {
        return Tensors{in[0] * reshape(arange(0, in[0].shape()[1], 1, Dtype::f32), {-1, 1})};
      },
      rows, 1, "differs from step to step");
  check_refused([&](const Tensors& in) { return Tensors{slice(in[0], 1, 1)}; }, rows, 1, "looks 1 steps ahead");
  check_refused([&](const Tensors& in) { return Tensors{before(in[0], 1, 2)}; }, rows, 1, "has 13 steps for 11");
  check_refused([&](const Tensors& in) { return Tensors{concat({in[0], in[0]}, 1)}; }, rows, 1, "joins two sequences");
  check_refused([&](const Tensors& in) { return Tensors{reshape(in[0], {-1, 3})}; }, {{2, 1, 3}}, 1, "joins time");
  // An axis that is as long as time but is another one.
  check_refused(
      [&](const Tensors& in) {
        const std::int64_t steps = in[0].size(1);
        return Tensors{reshape(in[0], {steps, 2 * 3})};
      },
      {{2, 1, 3}}, 1, "joins time");
  const nn::Gru both(3, 4, {.bidirectional = true}, {.seed = 1});
  check_refused([&](const Tensors& in) { return Tensors{both(in[0])}; }, rows, 1, "runs backwards in time");
  BOOST_CHECK_THROW(exchange::ProgramStream([](const Tensors& in) { return in; }, {{.step = {{1, 2}}, .time_axis = 1}}),
                    ShapeError);
  BOOST_CHECK_THROW(exchange::ProgramStream([](const Tensors& in) { return in; }, {{.step = {{1, 2}}, .time_axis = 0}},
                                            {.states = {{0, 0}}}),
                    ValueError);
}

BOOST_AUTO_TEST_CASE(what_depends_on_the_number_of_steps_is_found_by_verifying) {
  const Program f = [](const Tensors& in) { return Tensors{in[0] / static_cast<double>(in[0].shape()[1])}; };
  BOOST_CHECK_EXCEPTION(exchange::ProgramStream(f, {{.step = {{1, 1, 3}}, .time_axis = 1}}), Error,
                        says("depends on the number of steps"));
}

BOOST_AUTO_TEST_CASE(frames_are_transformed_one_by_one) {
  check_against_whole(
      [](const Tensors& in) {
        const Tensor y = irfft(rfft(in[0]) * 0.5), late = before(y, 1, 1);
        return Tensors{y + slice(late, 1, 0, y.shape()[1])};
      },
      {{1, 1, 8}}, 1, 1);
  check_refused([](const Tensors& in) { return Tensors{select(rfft(in[0]), -1, 0)}; }, {{1, 8, 1}}, 2,
                "transforms time");
}

/// A scan whose body is linear in its carry runs as linear_scan, also after frames that come before the first.
BOOST_AUTO_TEST_CASE(running_means_carry_their_state) {
  for (const std::int64_t late : {0, 2})
    check_against_whole(
        [late](const Tensors& in) {
          const auto step = [](const Tensors& mean, const Tensors& x) -> ScanStep {
            const Tensor next = x[0] * 0.25 + mean[0] * 0.75;
            return {{next}, {next * 2}};
          };
          const Tensor x = slice(before(in[0], 1, late, 0.5), 1, 0, in[0].shape()[1]);
          return Tensors{unsqueeze(scan(step, {weights({3}, 8)}, {squeeze(x, 0)}).y[0], 0)};
        },
        {{1, 1, 3}}, 1, 1);
  const Tensor a = weights({2, 3}, 9);
  check_against_whole([&](const Tensors& in) { return Tensors{linear_scan(sigmoid(in[0]), in[0], a)}; }, {{2, 1, 3}}, 1,
                      1);
  check_against_whole([&](const Tensors& in) { return Tensors{linear_scan(select(a, 0, 0), in[0])}; }, {{2, 1, 3}}, 1,
                      1);
  check_refused([](const Tensors& in) { return Tensors{linear_scan(in[0], in[0], {}, {.reverse = true})}; },
                {{1, 1, 3}}, 1, "runs backwards in time");
  check_refused([](const Tensors& in) { return Tensors{linear_scan(in[0], in[0])}; }, {{1, 4, 1}}, 2,
                "runs along another axis than time");
}

BOOST_AUTO_TEST_SUITE_END()
