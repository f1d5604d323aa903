// Generating: chains whose next token is known, and draws compared with those of sample_logits one by one.
#include "ferrite/nn/stream/generate.h"

#include "ferrite/dsl/builder.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

/// Returns a net whose row i of a table holds the logits after token i.
dsl::Network chain(const std::vector<float>& logits, std::int64_t n) {
  auto net = dsl::tokens(n).embedding(n).build(/*seed=*/0);
  net.parameters()[0].assign(Tensor::from(logits, {n, n}));
  return net;
}

/// Returns the chain 0 -> 1 -> 2 -> 0.
dsl::Network circle() { return chain({0, 5, 0, 0, 0, 5, 5, 0, 0}, 3); }

Tensor tokens(std::initializer_list<std::int64_t> t) { return Tensor::from<std::int64_t>(t); }

}  // namespace

BOOST_AUTO_TEST_SUITE(generate)

BOOST_AUTO_TEST_CASE(the_likeliest_one_after_the_other) {
  nn::Stream stream = circle().stream();
  const SamplingOptions likeliest{.temperature = 0};
  BOOST_TEST(
      identical(nn::generate(stream, tokens({0}), {.length = 5, .sampling = likeliest}), tokens({1, 2, 0, 1, 2})));
  BOOST_TEST(identical(nn::generate(stream, tokens({0, 2}), {.length = 2, .sampling = likeliest}), tokens({0, 1})));
  BOOST_TEST(
      identical(nn::generate(stream, tokens({0}), {.length = 9, .stop = 0, .sampling = likeliest}), tokens({1, 2})));
  BOOST_TEST(nn::generate(stream, tokens({2}), {.length = 9, .stop = 0, .sampling = likeliest}).numel() == 0);
  BOOST_TEST(nn::generate(stream, tokens({2}), {.length = 0}).numel() == 0);
}

BOOST_AUTO_TEST_CASE(draws_are_those_of_their_keys) {
  const std::vector<float> logits = {0.1F, 0.9F, 0.3F, 0.2F, 0, 1, 2, 0.4F, 0.1F};
  nn::Stream stream = chain(logits, 3).stream();
  const SamplingOptions sampling{.temperature = 1.5};
  const Tensor drawn =
      nn::generate(stream, tokens({1}), {.length = 40, .sampling = sampling, .seed = 3, .sequence = 5, .drawn = 7});
  std::int64_t last = 1;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const Tensor row = Tensor::from(std::span(logits).subspan(static_cast<std::size_t>(3 * last), 3), {3});
    last = sample_logits(row, RandomKey{3, 5, 7 + n}, sampling).item<std::int64_t>();
    BOOST_TEST(drawn[static_cast<std::int64_t>(n)].item<std::int64_t>() == last);
  }
}

// A recurrent net depends on all that it has read; a call that begins with the last token continues the stream.
BOOST_AUTO_TEST_CASE(goes_on_where_the_stream_stands) {
  const auto net = dsl::tokens(9).embedding(4).gru(8).linear(9).build(/*seed=*/2);
  nn::Stream whole = net.stream(), parts = net.stream();
  const Tensor all = nn::generate(whole, tokens({4, 1}), {.length = 20, .seed = 1});
  const Tensor first = nn::generate(parts, tokens({4, 1}), {.length = 8, .seed = 1});
  const Tensor rest = nn::generate(parts, slice(first, 0, 7), {.length = 12, .seed = 1, .drawn = 8});
  BOOST_TEST(identical(concat({first, rest}), all));
}

// All tokens of a prompt are read, including the first ones.
BOOST_AUTO_TEST_CASE(reads_the_whole_prompt) {
  const auto net = dsl::tokens(9).embedding(4).gru(8).linear(9).build(/*seed=*/2);
  nn::Stream stream = net.stream(), by_hand = net.stream();
  std::vector<float> logits(9);
  const auto next = [&](std::int64_t token) {
    by_hand.step(std::span(&token, 1), std::span(logits));
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  };
  std::int64_t token = 0;
  for (const std::int64_t read : {4, 1, 7, 2}) token = next(read);
  const Tensor all = nn::generate(stream, tokens({4, 1, 7, 2}), {.length = 12, .sampling = {.temperature = 0}});
  for (std::int64_t i = 0; i < 12; ++i, token = next(token)) BOOST_TEST(all[i].item<std::int64_t>() == token);
  std::vector<float> after(9), wanted = logits;
  token = all[-1].item<std::int64_t>();
  stream.step(std::span(&token, 1), std::span(after));
  BOOST_TEST(after == wanted, "its state is that of all tokens");
}

BOOST_AUTO_TEST_CASE(streams_tell_what_they_give) {
  const nn::StepRows rows = dsl::tokens(9).embedding(4).linear(7).build(/*seed=*/2).stream(3).result();
  BOOST_TEST(rows.batch == 3);
  BOOST_TEST(rows.width == 7);
  BOOST_TEST((rows.dtype == Dtype::f32));
}

BOOST_AUTO_TEST_CASE(refusals) {
  nn::Stream stream = circle().stream(), two = circle().stream(2);
  BOOST_CHECK_EXCEPTION((void)nn::generate(stream, zeros({1})), DtypeError, says("the prompt must be i64, got f32[1]"));
  BOOST_CHECK_EXCEPTION((void)nn::generate(stream, zeros({0}, Dtype::i64)), ShapeError, says("at least one token"));
  BOOST_CHECK_THROW((void)nn::generate(stream, zeros({1, 1}, Dtype::i64)), ShapeError);
  BOOST_CHECK_EXCEPTION((void)nn::generate(two, tokens({0})), ValueError, says("must have one row, it has 2"));
  BOOST_CHECK_EXCEPTION((void)nn::generate(stream, tokens({0}), {.length = -1}), ValueError, says("got -1"));
}

BOOST_AUTO_TEST_SUITE_END()
