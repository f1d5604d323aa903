// The net of the example silero_vad with random weights: its stream has the bits of the whole and allocates nothing.
#include "../../examples/silero_vad/vad.h"

#include <boost/test/unit_test.hpp>

#include "counted.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(silero_vad)

BOOST_AUTO_TEST_CASE(frames_stream_with_the_bits_of_the_whole_and_ask_for_nothing) {
  for (const std::int64_t rate : {16000, 8000}) {
    BOOST_TEST_CONTEXT(rate) {
      const Vad vad({.rate = rate}, {.seed = 3});
      vad.eval();
      const std::int64_t T = 12, frame = vad.options().frame();
      BOOST_TEST(frame * 1000 == rate * 32);
      const Tensor x = uniform({1, T, frame}, {.seed = 4}, -1, 1), whole = vad(x);
      BOOST_REQUIRE(whole.shape() == Shape({1, T, 1}));
      const std::vector<float> in = x.to_vector<float>();
      std::vector<float> out(static_cast<std::size_t>(T));
      nn::Stream stream(vad, 1);
      BOOST_TEST(stream.on_tensors() == 0U);
      const auto width = static_cast<std::size_t>(frame);
      const auto step = [&](std::size_t t) {
        stream.step(std::span(in).subspan(t * width, width), std::span(out).subspan(t, 1));
      };
      step(0);
      const std::uint64_t locks = counted::counts().locks;
      BOOST_TEST(counted::during([&] {
                   for (std::size_t t = 1; t < out.size(); ++t) step(t);
                 }) == 0U);
      BOOST_TEST(counted::counts().locks == locks);
      BOOST_TEST(out == whole.to_vector<float>(), boost::test_tools::per_element());
      BOOST_TEST(out.front() != out.back());
    }
  }
}

/// A frame depends on the last samples of the frame before it, and on the states of the LSTM.
BOOST_AUTO_TEST_CASE(frames_hear_those_before) {
  const Vad vad({}, {.seed = 3});
  const Tensor x = uniform({1, 2, 512}, {.seed = 4}, -1, 1);
  const float alone = vad(slice(x, 1, 1)).item(), after = vad(x).to_vector<float>()[1];
  BOOST_TEST(alone != after);
  const Tensor other = concat({slice(x, 1, 0, 1) * -1, slice(x, 1, 1)}, 1);  // the magnitudes of frame 0 are the same
  BOOST_TEST(vad(other).to_vector<float>()[1] != after);
}

BOOST_AUTO_TEST_SUITE_END()
