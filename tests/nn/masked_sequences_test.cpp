// Losses over alignments, of signals and of regions, and attention: NaN and infinities in sequences that do not count,
// beyond their ends, and in hidden keys reach neither value nor gradient. The expected values, bit for bit, are those
// of the same call with other, finite numbers there; the gradients there must be 0.
#include "ferrite/nn/loss.h"
#include "ferrite/tensor/attention.h"
#include "nn/hidden.h"

using namespace ferrite;
using namespace hidden;

BOOST_AUTO_TEST_SUITE(masked_sequences)

/// Frames beyond the lengths of inputs and of targets are hidden; those that count have the bits that they have alone.
BOOST_AUTO_TEST_CASE(alignments_read_nothing_beyond_their_lengths) {
  const std::int64_t T = 5, B = 3, C = 4, S = 2;
  const Tensor targets = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 1, 2, 2}, {B, S});
  const Tensor frames = integers({5, 2, 4}), labels = integers({2, 1, 2});
  const Tensor late = ge(unsqueeze(arange(T), 1), frames);  // [T, B]
  check_hidden(
      "ctc", [&](const Tensors& x) { return nn::ctc_loss(log_softmax(x[0], -1), targets, frames, labels); },
      {some({T, B, C}, 1)}, {expand(unsqueeze(late, 2), {T, B, C})}, 1);
  const Tensor outside = unsqueeze(ge(arange(T), unsqueeze(frames, 1)), 2) ||
                         unsqueeze(gt(arange(S + 1), unsqueeze(labels, 1)), 1);  // [B, T, S + 1]
  for (const bool logs : {false, true})
    check_hidden(
        "rnnt",
        [&](const Tensors& x) { return nn::rnnt_loss(x[0], targets, frames, labels, {.blank = 0, .log_probs = logs}); },
        {log_softmax(some({B, T, S + 1, C}, 2), -1)}, {expand(unsqueeze(outside, 3), {B, T, S + 1, C})}, 1);
}

/// Sequences are masked or have a weight of 0; the gradient of a weight is the loss if that is finite.
BOOST_AUTO_TEST_CASE(alignments_read_nothing_of_sequences_that_do_not_count) {
  const std::int64_t T = 5, B = 3, C = 4, S = 2;
  const Tensor targets = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 1, 2, 2}, {B, S});
  const Tensor counts = numbers({1.0, 0.0, 1.0}) > 0.5, weight = where(counts, some({B}, 5), 0.0);
  const Tensor by_frame = expand(reshape(!counts, {1, B, 1}), {T, B, C}),
               by_grid = expand(reshape(!counts, {B, 1, 1, 1}), {B, T, S + 1, C});
  for (const nn::Reduction r : {nn::Reduction::mean, nn::Reduction::sum})
    for (const bool masked : {true, false}) {
      const Tensor mask = masked ? counts : Tensor(), w = masked ? Tensor() : weight;
      check_hidden(
          "ctc",
          [&](const Tensors& x) {
            return nn::ctc_loss(x[0], targets, {}, {}, {.reduction = r, .element_weight = w, .mask = mask});
          },
          {log_softmax(some({T, B, C}, 1), -1)}, {by_frame}, 1);
      for (const bool logs : {false, true})
        check_hidden(
            "rnnt",
            [&](const Tensors& x) {
              return nn::rnnt_loss(x[0], targets, {}, {},
                                   {.blank = 0, .reduction = r, .element_weight = w, .mask = mask, .log_probs = logs});
            },
            {log_softmax(some({B, T, S + 1, C}, 2), -1)}, {by_grid}, 1);
    }
}

BOOST_AUTO_TEST_CASE(spectra_and_regions_read_nothing_beyond_their_lengths) {
  const Tensor lengths = integers({30, 0, 17}), behind = !lt(arange(30), unsqueeze(lengths, 1));
  const Tensors all{some({3, 30}, 1), some({3, 30}, 2)}, hidden{behind, behind};
  check_hidden(
      "stft",
      [&](const Tensors& x) {
        return nn::multi_resolution_stft_loss(
            x[0], x[1], {.resolutions = {{16, 4, 12}, {8, 8, 8}}, .magnitude = 1, .lengths = lengths});
      },
      all, hidden, 2);
  for (const nn::Reduction r : {nn::Reduction::mean, nn::Reduction::none}) {
    const nn::LossOptions o{.reduction = r, .lengths = lengths};
    check_hidden(
        "dice", [&](const Tensors& x) { return nn::dice_loss(x[0], x[1], 1, o); }, all, hidden, 2);
    check_hidden(
        "tversky", [&](const Tensors& x) { return nn::tversky_loss(x[0], x[1], {.alpha = 0.2}, o); }, all, hidden, 2);
  }
}

/// No query sees some of the keys, and some queries see others: the queries that do not are unaffected.
BOOST_AUTO_TEST_CASE(attention_reads_nothing_of_hidden_keys_and_values) {
  const std::int64_t B = 2, L = 5, S = 6, E = 3, N = 4;
  const Tensors all{some({B, S, E}, 1), some({B, S, N}, 2), some({B, L, E}, 3)};
  const Tensor seen = numbers({1.0, 1.0, 0.0, 1.0, 0.0, 1.0}) > 0.5;
  const Tensor added = where(seen, zeros({S}), -kInfinity);
  const Tensor hidden = reshape(!seen, {1, S, 1});
  for (const Tensor& mask : {seen, added})
    check_hidden(
        "attention", [&](const Tensors& x) { return scaled_dot_product_attention(x[2], x[0], x[1], {.mask = mask}); },
        all, {expand(hidden, {B, S, E}), expand(hidden, {B, S, N})}, 2);
  // In causal attention: the queries before a key, and their gradients.
  const Tensor last = ge(reshape(arange(S), {1, S, 1}), 3);
  check_hidden(
      "causal attention",
      [&](const Tensors& x) {
        return slice(scaled_dot_product_attention(x[2], x[0], x[1], {.causal = true}), 1, 0, 3);
      },
      all, {expand(last, {B, S, E}), expand(last, {B, S, N})}, 2);
  // A value that is visible is not hidden.
  const Tensor nan = where(eq(reshape(arange(S), {1, S, 1}), 1), kNan, all[1]);
  BOOST_TEST(std::isnan(sum(scaled_dot_product_attention(all[2], all[0], nan, {.mask = seen})).item<float>()));
}

/// Leading axes broadcast, also with heads that share keys; weights are computed alone; second derivatives are those of
/// the sum of squares of the gradients of q, k and v.
BOOST_AUTO_TEST_CASE(attention_reads_nothing_that_is_hidden_in_any_form) {
  const std::int64_t L = 5, S = 6, E = 3, N = 4;
  struct Form {
    std::string name;
    Shape q, k, v;
    bool gqa = false;
  };
  const std::vector<Form> forms = {{"equal", {2, L, E}, {2, S, E}, {2, S, N}},
                                   {"broadcast", {2, 1, L, E}, {3, S, E}, {1, S, N}},
                                   {"shared heads", {2, 4, L, E}, {2, 2, S, E}, {2, 2, S, N}, true},
                                   {"shared heads, broadcast", {3, 4, L, E}, {1, 2, S, E}, {3, 2, S, N}, true}};
  const Tensor seen = numbers({1.0, 1.0, 0.0, 1.0, 0.0, 1.0}) > 0.5, added = where(seen, zeros({S}), -kInfinity);
  const Tensor never = !reshape(seen, {S, 1}), late = ge(reshape(arange(S), {S, 1}), 3);
  for (const Form& f : forms) {
    const Tensors all{some(f.k, 1), some(f.v, 2), some(f.q, 3)};
    for (const bool causal : {false, true})
      for (const Tensor& mask : {seen, added}) {
        const AttentionOptions o{.mask = causal ? Tensor() : mask, .causal = causal, .enable_gqa = f.gqa};
        const Tensor hidden = causal ? late : never;
        const auto attention = [&](const Tensors& x) {
          const Tensor y = scaled_dot_product_attention(x[2], x[0], x[1], o);
          return causal ? slice(y, -2, 0, 3) : y;  // queries before the hidden keys
        };
        const auto weights = [&](const Tensors& x) { return square(attention_weights(x[2], x[0], o)); };
        const auto squares_of_gradients = [&](const Tensors& x) {
          Tape tape;
          const Tensors in{tape.watch(x[0]), tape.watch(x[1]), tape.watch(x[2])};
          const Tensors g = tape.grad(sum(square(attention(in))), {in[0], in[1], in[2]}, {.create_graph = true});
          return sum(square(g[0])) + sum(square(g[1])) + sum(square(g[2]));
        };
        const Tensors behind{expand(hidden, f.k), expand(hidden, f.v)};
        const std::string name = f.name + (causal ? ", causal" : "");
        check_hidden(name, attention, all, behind, 2);
        if (!causal) check_hidden(name + ", weights", weights, all, behind, 1);
        check_hidden(name + ", second derivative", squares_of_gradients, all, behind, 2);
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
