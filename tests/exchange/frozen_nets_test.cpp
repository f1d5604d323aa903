/// Streams of every layer and of random causal nets, written as C, compiled and compared with the library bit by bit.
/// FERRITE_FROZEN_NETS is the number of random nets; FERRITE_C_COMPILERS names the compilers with their options,
/// separated by semicolons, and FERRITE_C_FLAGS options for all of them.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "conformance/layer_examples.h"
#include "ferrite/exchange/freeze.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "support/causal_chains.h"
#include "support/compare.h"
#include "support/frozen.h"

using namespace ferrite;
using frozen::Functions;
using frozen::Library;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void draw(std::mt19937& random, std::vector<T>& to) {
  for (T& v : to) {
    if constexpr (std::is_integral_v<T>) {
      v = random() % 2;
    } else {
      v = static_cast<T>(std::ldexp(static_cast<double>(random()), -31) - 1);
    }
  }
}

/// Compares the C of a net with its stream; returns the first difference in words, or nothing.
template <class In, class Out>
class Comparison {
 public:
  Comparison(const nn::Layer& net, const nn::StepRows& rows, const Functions<In, Out>& c)
      : net_(net),
        rows_(rows),
        c_(c),
        x_(static_cast<std::size_t>(rows.batch * (is_integer(rows.dtype) ? 1 : rows.width))),
        expected_(c.outputs),
        got_(c.outputs + 1) {}

  std::string run(int steps) {
    Bytes a(c_.bytes), b(c_.bytes);
    if (const int bad = c_.check(a.data())) return "its check fails at step " + std::to_string(bad);
    c_.init(a.data()), c_.init(b.data());
    nn::Stream s = net_.stream(rows_.batch), other = net_.stream(rows_.batch);
    for (int t = 0; t < steps; ++t) {  // two instances in turns, one of which moves to used memory
      for (auto [stream, memory] : {std::pair{&s, &a}, std::pair{&other, &b}}) {
        if (std::string d = step(*stream, *memory); !d.empty()) return d == kFull ? "" : d;
      }
      if (t % 3 == 0) move(b);
    }
    if (c_.finish) return finish(s, a);
    return blocks();
  }

 private:
  static constexpr const char* kFull = "full";

  /// Runs a step of both. Both must give an output, or none, or refuse the step.
  std::string step(nn::Stream& s, Bytes& memory) {
    draw(random_, x_);
    got_.back() = Out(77);
    bool gave = false;
    try {
      gave = s.feed(std::span<const In>(x_), std::span<Out>(expected_));
    } catch (const Error&) {
      return c_.step(memory.data(), x_.data(), got_.data()) > 0 ? kFull : "it takes a step that the stream refuses";
    }
    const int result = c_.step(memory.data(), x_.data(), got_.data());
    return result == (gave ? 0 : -1) ? compare(gave) : "it returns " + std::to_string(result);
  }
  std::string compare(bool gave) const {
    if (got_.back() != Out(77)) return "it writes behind its outputs";
    const bool same = !gave || std::memcmp(got_.data(), expected_.data(), expected_.size() * sizeof(Out)) == 0;
    return same ? "" : "an output differs";
  }
  void move(Bytes& memory) const {
    Bytes saved(c_.saved + 1), used(c_.bytes);
    c_.save(memory.data(), saved.data());
    c_.init(used.data());
    std::vector<Out> ignored(c_.outputs);
    for (int t = 0; t < 3; ++t) (void)c_.step(used.data(), x_.data(), ignored.data());
    BOOST_TEST(c_.restore(used.data(), saved.data()) == 0);
    std::swap(memory, used);
  }
  std::string finish(nn::Stream& s, Bytes& memory) {
    for (;;) {
      got_.back() = Out(77);
      const bool gave = s.finish(std::span<Out>(expected_));
      if (c_.finish(memory.data(), got_.data()) != (gave ? 0 : -1)) return "it ends with other outputs";
      if (!gave) return "";
      if (std::string d = compare(true); !d.empty()) return d + " at the end";
    }
  }
  /// Compares runs of several steps with single ones.
  std::string blocks() {
    Bytes a(c_.bytes), b(c_.bytes);
    c_.init(a.data()), c_.init(b.data());
    for (const std::int32_t n : {1, 45, 32, 7, 64}) {
      std::vector<In> x(x_.size() * static_cast<std::size_t>(n));
      std::vector<Out> y(c_.outputs * static_cast<std::size_t>(n)), singles = y;
      draw(random_, x);
      const int result = c_.steps(a.data(), n, x.data(), y.data());
      int single = 0;
      for (std::size_t t = 0; t < static_cast<std::size_t>(n) && single == 0; ++t)
        single = c_.step(b.data(), x.data() + t * x_.size(), singles.data() + t * c_.outputs);
      if (result != single) return "several steps return " + std::to_string(result);
      if (result != 0) return "";
      if (std::memcmp(y.data(), singles.data(), y.size() * sizeof(Out)) != 0) return "several steps give other outputs";
    }
    return "";
  }

  const nn::Layer& net_;
  nn::StepRows rows_;
  Functions<In, Out> c_;
  std::vector<In> x_;
  std::vector<Out> expected_, got_;
  std::mt19937 random_{7};
};

/// Nets that are compiled together.
class Nets {
 public:
  /// Freezes a net; returns why it cannot be written, or nothing.
  std::string add(std::unique_ptr<nn::Layer> net, const nn::StepRows& rows, std::string text) {
    const std::string name = "net" + std::to_string(nets_.size());
    try {
      library_.add(name, exchange::freeze(*net, rows, {.name = name}));
    } catch (const exchange::ExportError& e) {
      return e.what();
    }
    nets_.push_back({std::move(net), rows, std::move(text)});
    return "";
  }
  void compare(const std::string& compiler, int steps = 100) {
    const std::string built = library_.build(compiler);
    BOOST_TEST(built == "", compiler << ": " << built);
    if (!built.empty() || !frozen::rounds_once()) return;
    for (std::size_t k = 0; k < nets_.size(); ++k) {
      const Net& n = nets_[k];
      const std::string name = "net" + std::to_string(k);
      std::string found;
      const auto run = [&]<class In, class Out>(In, Out) {
        found = Comparison<In, Out>(*n.net, n.rows, library_.functions<In, Out>(name)).run(steps);
      };
      if (is_integer(n.rows.dtype)) {
        run(std::int64_t{}, 0.0F);
      } else {
        n.rows.dtype == Dtype::f64 ? run(0.0, 0.0) : run(0.0F, 0.0F);
      }
      BOOST_TEST(found == "", n.text << " by " << compiler << ": " << found);
    }
  }
  std::size_t size() const { return nets_.size(); }

 private:
  struct Net {
    std::unique_ptr<nn::Layer> net;
    nn::StepRows rows;
    std::string text;
  };
  Library library_;
  std::vector<Net> nets_;
};

/// Gives variables that were made without a seed values.
void fill_values(const nn::Layer& layer) {
  const auto fill = [](auto v) {
    try {
      (void)v.peek();
    } catch (const Error&) {
      v.assign(cast(uniform(v.shape(), {.seed = 5}, -0.5, 0.5), v.dtype()));
    }
  };
  for (const Parameter& p : layer.parameters()) fill(p);
  for (const auto& b : layer.named_buffers()) fill(b.variable);
}

std::int64_t count_of(const char* name, std::int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_nets)

BOOST_AUTO_TEST_CASE(every_streaming_layer) {
  for (const std::string& compiler : frozen::compilers()) {
    Nets nets;
    for (const conformance::LayerSection& section : conformance::layer_examples())
      for (const conformance::LayerExample& e : section.entries)
        for (const std::int64_t batch : {1, 3}) {
          std::unique_ptr<nn::Layer> layer = e.example();
          if (!layer->streams()) continue;
          layer->eval();
          fill_values(*layer);
          const nn::StepInput in = layer->step_input();
          const std::string why = nets.add(std::move(layer), {batch, in.width ? in.width : 4, in.dtype}, e.name);
          BOOST_TEST(why == "", e.name << ": " << why);
        }
    BOOST_TEST(nets.size() > 80U);
    nets.compare(compiler);
  }
}

BOOST_AUTO_TEST_CASE(random_causal_nets) {
  const std::int64_t first = count_of("FERRITE_FIRST_SEED", 1), count = count_of("FERRITE_FROZEN_NETS", 40);
  constexpr std::int64_t kTogether = 25;
  for (std::int64_t begin = 0; begin < count; begin += kTogether) {
    for (const std::string& compiler : frozen::compilers()) {
      Nets nets;
      for (std::int64_t k = begin; k < std::min(begin + kTogether, count); ++k) {
        const auto seed = static_cast<std::uint64_t>(first + k);
        causal_chains::Maker maker(seed);
        causal_chains::Chain chain = maker.chain();
        auto net = std::make_unique<dsl::Network>(chain.words.build(seed));
        const nn::StepRows rows{k % 5 == 0 ? 2 : 1, net->input().size, net->step_input().dtype};
        const std::string why = nets.add(std::move(net), rows, std::to_string(seed) + ": " + chain.text);
        BOOST_TEST(why == "", seed << ": " << chain.text << ": " << why);
      }
      nets.compare(compiler);
    }
  }
}

BOOST_AUTO_TEST_CASE(doubles) {
  Nets nets;
  for (const bool lstm : {false, true}) {
    auto words = dsl::sequence(3);
    auto net = std::make_unique<dsl::Network>((lstm ? words.lstm(9) : words.gru(20)).linear(2).build(2, Dtype::f64));
    BOOST_TEST(nets.add(std::move(net), {1, 3, Dtype::f64}, lstm ? "lstm" : "gru") == "");
  }
  nets.compare("cc -std=c99 -O1 -march=native");
}

BOOST_AUTO_TEST_CASE(forms) {
  if (!frozen::rounds_once()) return;
  struct Form {
    const char *flags, *vectors;  ///< the second ones for every net
  };
  for (const Form& form : {Form{"-std=c99 -O0", "VECTOR_BYTES=0"},
                           {"-O3 -march=native", ""},
                           {"-std=c99 -O2 -march=native -DNET0_INTEGER_FMA -DNET1_INTEGER_FMA", "VECTOR_BYTES=0"},
                           {"-O2 -march=native", "VECTOR_BYTES=32"},
                           {"-O2 -march=haswell", "VECTOR_BYTES=32"},
                           {"-O2 -march=native", "VECTOR_BYTES=16"},
                           {"-O1", ""},
                           {"-x c++ -std=c++17 -O1 -march=native", ""}}) {
    Nets nets;
    const auto add = [&](const dsl::Builder& words, std::int64_t width) {
      const std::string why = nets.add(std::make_unique<dsl::Network>(words.build(1)), {1, width, Dtype::f32}, "a net");
      BOOST_TEST(why == "");
    };
    add(dsl::sequence(2).gru(21).linear(3), 2);
    add(dsl::sequence(2).causal_conv1d(5, 3, {.dilation = 2}).tanh().layer_norm().linear(1), 2);
    add(dsl::sequence(6).linear(1009).tanh().linear(1), 6);  // the last group of vectors is not full in any form
    std::string compiler = std::string("cc ") + form.flags;
    for (std::size_t k = 0; *form.vectors && k < nets.size(); ++k)
      compiler += " -DNET" + std::to_string(k) + "_" + form.vectors;
    nets.compare(compiler, 40);
  }
}

// A saved state whose number of steps is negative or larger than the store of keys is refused and changes nothing.
BOOST_AUTO_TEST_CASE(bad_states_are_refused) {
  const auto net = dsl::sequence(4).attention(2, {.causal = true, .capacity = 8}).build(1);
  Library library;
  library.add("net", exchange::freeze(net, {1, 4, Dtype::f32}, {.name = "net"}));
  BOOST_TEST_REQUIRE(library.build("cc -O1") == "");
  const auto f = library.functions<float, float>("net");
  Bytes memory(f.bytes), saved(f.saved);
  const std::vector<float> x(4, 0.5F);
  std::vector<float> y(f.outputs);
  f.init(memory.data());
  for (int t = 0; t < 3; ++t) BOOST_TEST(f.step(memory.data(), x.data(), y.data()) == 0);
  f.save(memory.data(), saved.data());
  BOOST_TEST(f.restore(memory.data(), saved.data()) == 0);
  const Bytes before = memory;
  for (const int byte : {0xFF, 0x7F, 0x09}) {
    const Bytes bad(f.saved, static_cast<std::byte>(byte));
    BOOST_TEST(f.restore(memory.data(), bad.data()) == 3);  // NF_BAD_STATE
    BOOST_TEST((memory == before), "a refused state has changed the instance");
  }
}

// A number outside of the table is an error, where the stream throws; the step has then changed nothing.
BOOST_AUTO_TEST_CASE(numbers_outside_of_a_table_are_refused) {
  const auto net = dsl::tokens(5).embedding(3).gru(4).build(1);
  Library library;
  library.add("net", exchange::freeze(net, {1, 1, Dtype::i64}, {.name = "net"}));
  BOOST_TEST_REQUIRE(library.build("cc -O1 -march=native") == "");
  const auto f = library.functions<std::int64_t, float>("net");
  Bytes memory(f.bytes);
  std::vector<float> y(f.outputs), again(f.outputs);
  f.init(memory.data());
  const std::int64_t good = 3;
  BOOST_TEST(f.step(memory.data(), &good, y.data()) == 0);
  Bytes before(f.saved), after(f.saved);
  f.save(memory.data(), before.data());
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-6}, std::numeric_limits<std::int64_t>::min()}) {
    BOOST_TEST(f.step(memory.data(), &bad, again.data()) == 1);  // NF_BAD_INDEX
    f.save(memory.data(), after.data());
    BOOST_TEST((before == after), bad << " has changed the state");
  }
}

// The check notices what flags do to the bits.
BOOST_AUTO_TEST_CASE(bad_flags_fail_the_check) {
  const auto net = dsl::sequence(2).gru(16).linear(1).build(1);
  const exchange::FrozenNet good = exchange::freeze(net, {1, 2, Dtype::f32}, {.name = "net"});
  const auto with = [&](const std::string& from, const std::string& to) {
    exchange::FrozenNet changed = good;
    const std::size_t at = changed.source.find(from);
    BOOST_TEST_REQUIRE(at != std::string::npos, from);
    changed.source.replace(at, from.size(), to);
    return changed;
  };
  const auto checked = [&](const exchange::FrozenNet& c, const std::string& flags) {
    Library library;
    library.add("net", c);
    BOOST_TEST_REQUIRE(library.build("cc -O2 -march=native " + flags) == "");
    const auto f = library.functions<float, float>("net");
    Bytes memory(f.bytes);
    return f.check(memory.data());
  };
  if (!frozen::rounds_once()) return;
  BOOST_TEST(checked(good, "") == 0);
  BOOST_TEST(checked(with("fp-contract=off", "fp-contract=fast"), "-ffp-contract=fast") != 0);
  // -ffast-math does not even compile.
  Library fast;
  fast.add("net", good);
  BOOST_TEST(fast.build("cc -O2 -march=native -ffast-math").find("failed") == 0U);
}

BOOST_AUTO_TEST_CASE(the_text_is_the_same_each_time) {
  const auto net = dsl::sequence(2).causal_conv1d(4, 3).gru(8).linear(1).build(1);
  const auto a = exchange::freeze(net, {1, 2, Dtype::f32}), b = exchange::freeze(net, {1, 2, Dtype::f32});
  BOOST_TEST(a.source == b.source);
  BOOST_TEST(a.header == b.header);
  BOOST_TEST(a.source.find("malloc") == std::string::npos);
  BOOST_TEST(a.source.find("#include <std") != std::string::npos);
  const auto other = dsl::sequence(2).causal_conv1d(4, 3).gru(8).linear(1).build(2);
  BOOST_TEST(exchange::freeze(other, {1, 2, Dtype::f32}).header != a.header);  // the hash of the model
}

// The text of a net of 32 units is mostly its weights, and at most three times as long. It holds no
// function that nothing calls.
BOOST_AUTO_TEST_CASE(the_text_is_short) {
  const auto net = dsl::sequence(1).gru(32).linear(1).build(1);
  const exchange::FrozenNet c = exchange::freeze(net, {1, 1, Dtype::f32});
  std::size_t weights = 0;
  for (std::size_t at = 0; (at = c.source.find("static const float net_c", at)) != std::string::npos; ++at)
    weights += c.source.find("};\n", at) - at;
  BOOST_TEST(weights > 30000U);
  BOOST_TEST(c.source.size() + c.header.size() < 3 * weights);
  for (const char* const function : {"net_asin_f", "net_gather_f", "net_floor_f"})
    BOOST_TEST(c.source.find(function) == std::string::npos, function);
}

BOOST_AUTO_TEST_CASE(refusals) {
  using support::says;
  const auto net = dsl::sequence(2).gru(4).build(1);
  BOOST_CHECK_EXCEPTION((void)exchange::freeze(net, {1, 2, Dtype::f32}, {.name = "Net"}), ValueError,
                        says("freeze: 'Net' is no name for a net"));
  BOOST_CHECK_EXCEPTION((void)exchange::freeze(net, {1, 3, Dtype::f32}), ShapeError, says("2"));
  const auto ends = dsl::sequence(2).gru(4).mean_over_time().build(1);
  BOOST_CHECK_EXCEPTION((void)exchange::freeze(ends, {1, 2, Dtype::f32}), ValueError,
                        says("does not stream; write it as a whole program of fixed length"));
}

BOOST_AUTO_TEST_SUITE_END()
