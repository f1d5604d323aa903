// The operations that a recorder sees of a recurrent layer: the number of products.
#include <map>

#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/recorder.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

/// A recorder that counts applications by name.
struct Counter final : Recorder {
  std::map<std::string, int, std::less<>> counts;
  void record(const Primitive& op, const Attrs&, Inputs, std::span<Tensor>) override { ++counts[std::string(op.name)]; }
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable&, const Tensor&) override { return false; }
  int of(std::string_view name) const {
    const auto at = counts.find(name);
    return at == counts.end() ? 0 : at->second;
  }
};

template <class Net>
Counter counted(const Net& net) {
  Counter counter;
  const Tensor x = zeros({2, 7, 3});
  const Recording recording(counter);
  (void)net(x);
  return counter;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recorded)

BOOST_AUTO_TEST_CASE(unrolled_one_input_product_a_layer_and_direction_and_one_product_a_step) {
  for (const std::int64_t layers : {1, 2})
    for (const bool both_ways : {false, true}) {
      const int n = static_cast<int>(layers) * (both_ways ? 2 : 1);
      const nn::Form form = nn::Form::unrolled;
      BOOST_TEST(counted(nn::Gru(3, 4, {.layers = layers, .bidirectional = both_ways, .form = form}, {.seed = 0}))
                     .of("matmul") == n * (1 + 7));
      BOOST_TEST(counted(nn::Lstm(3, 4, {.layers = layers, .bidirectional = both_ways, .form = form}, {.seed = 0}))
                     .of("matmul") == n * (1 + 7));
      BOOST_TEST(counted(nn::Rnn(3, 4, {.layers = layers, .bidirectional = both_ways, .form = form}, {.seed = 0}))
                     .of("matmul") == n * (1 + 7));
    }
}

BOOST_AUTO_TEST_CASE(fused_one_operation_a_layer_and_direction) {
  for (const std::int64_t layers : {1, 2})
    for (const bool both_ways : {false, true}) {
      const int n = static_cast<int>(layers) * (both_ways ? 2 : 1);
      const Counter gru = counted(nn::Gru(3, 4, {.layers = layers, .bidirectional = both_ways}, {.seed = 0}));
      const Counter lstm =
          counted(nn::Lstm(3, 4, {.layers = layers, .bidirectional = both_ways, .proj_size = 2}, {.seed = 0}));
      const Counter rnn = counted(nn::Rnn(3, 4, {.layers = layers, .bidirectional = both_ways}, {.seed = 0}));
      const Counter before =
          counted(nn::Gru(3, 4, {.layers = layers, .bidirectional = both_ways, .reset_after = false}, {.seed = 0}));
      BOOST_TEST(gru.of("gru_sequence") == n);
      BOOST_TEST(before.of("gru_reset_before_sequence") == n);
      BOOST_TEST(lstm.of("lstm_sequence") == n);
      BOOST_TEST(rnn.of("rnn_sequence") == n);
      for (const Counter* c : {&gru, &lstm, &rnn, &before}) BOOST_TEST(c->of("matmul") == 0);
    }
}

BOOST_AUTO_TEST_SUITE_END()
