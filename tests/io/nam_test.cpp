/// `.nam`: models compared with numpy's results, trained further, streamed sample by sample, and written with their
/// bits.
#include <fstream>
#include <iterator>
#include <map>

#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/io/nam.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "temporary_folder.h"

namespace {

using ferrite::IoError;
using ferrite::Shape;
using ferrite::Tensor;
using ferrite::Tensors;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
using support::within;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

fs::path fixtures() { return support::fixture_path("nam"); }
io::TensorFile expected() { return io::read_safetensors(fixtures() / "expected.safetensors"); }

const std::vector<std::string> kModels = {"lstm",          "wavenet",        "wavenet_gated",
                                          "wavenet_newer", "wavenet_bounds", "wavenet_modulated"};

io::NamModel model(const std::string& name) { return io::read_nam(fixtures() / (name + ".nam")); }

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

io::NamModel parsed(const std::string& text) { return io::parse_nam(std::as_bytes(std::span(text))); }

Tensor input() {
  const Tensor x = expected().tensor("x");
  return ferrite::reshape(x, {1, x.shape()[0], 1});
}

std::vector<Tensor> parameters(const nn::Layer& l) {
  std::vector<Tensor> all;
  for (const auto& p : l.named_parameters()) all.push_back(p.variable.peek());
  return all;
}

/// Returns all outputs of a stream, step by step.
Tensor streamed(nn::Stream& stream, const Tensor& x) {
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(in.size());
  for (std::size_t t = 0; t < in.size(); ++t) stream.step(std::span(&in[t], 1), std::span(&out[t], 1));
  return Tensor::from<float>(out, x.shape());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nam)

BOOST_AUTO_TEST_CASE(models_compute_what_numpy_computes) {
  const Tensor x = input();
  for (const std::string& name : kModels) {
    BOOST_TEST_CONTEXT(name) {
      const io::NamModel m = model(name);
      const Tensor y = (*m.layer)(x);
      BOOST_TEST(within(ferrite::reshape(y, {x.shape()[1], 1}), expected().tensor(name), 1e-6));
      BOOST_TEST(m.sample_rate.value() == 48000);
    }
  }
}

BOOST_AUTO_TEST_CASE(streams_have_the_bits_of_the_whole) {
  const Tensor x = input();
  for (const std::string& name : kModels) {
    BOOST_TEST_CONTEXT(name) {
      const io::NamModel m = model(name);
      const Tensor whole = (*m.layer)(x);
      nn::Stream stream = m.layer->stream();
      BOOST_TEST(stream.on_tensors() == 0u);
      BOOST_TEST(identical(streamed(stream, x), whole));
      stream.reset();
      BOOST_TEST(identical(streamed(stream, x), whole));
      stream.reset();
      const std::vector<float> in = x.to_vector<float>();
      std::vector<float> out(in.size());
      stream.steps(7, std::span(in).first(7), std::span(out).first(7));
      nn::Stream other = stream.clone();
      const std::vector<Tensor> states = stream.save();
      const auto rest = std::span(in).subspan(7);
      other.steps(93, rest, std::span(out).subspan(7));
      BOOST_TEST(identical(Tensor::from<float>(out, x.shape()), whole));
      nn::Stream restored = m.layer->stream();
      restored.restore(states);
      restored.steps(93, rest, std::span(out).subspan(7));
      BOOST_TEST(identical(Tensor::from<float>(out, x.shape()), whole));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_of_a_stream_begin_anew_by_themselves) {
  for (const std::string& name : kModels) {
    BOOST_TEST_CONTEXT(name) {
      const io::NamModel m = model(name);
      nn::Stream two = m.layer->stream(2), one = m.layer->stream();
      std::vector<float> y(2), z(1);
      for (int t = 0; t < 40; ++t) {
        const std::vector<float> x = {0.01F * static_cast<float>(t), 0.5F - 0.02F * static_cast<float>(t)};
        if (t == 20) two.reset(1);
        two.step(x, y);
        if (t >= 20) {
          one.step(std::span(&x[1], 1), z);
          BOOST_TEST(y[1] == z[0]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_as_the_same_bits) {
  const TemporaryFolder folder;
  for (const std::string& name : kModels) {
    BOOST_TEST_CONTEXT(name) {
      const io::NamModel m = model(name);
      io::save_nam(m, folder / "x.nam");
      const io::NamModel again = io::read_nam(folder / "x.nam");
      const std::vector<Tensor> a = parameters(*m.layer), b = parameters(*again.layer);
      BOOST_REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(identical(a[i], b[i]));
      BOOST_TEST(identical((*m.layer)(input()), (*again.layer)(input())));
      BOOST_TEST(again.metadata == m.metadata);
      BOOST_TEST(again.version == m.version);
      BOOST_TEST(again.sample_rate.value() == 48000);
      BOOST_TEST(io::serialize_nam(again) == content(folder / "x.nam"));
    }
  }
}

BOOST_AUTO_TEST_CASE(weights_of_the_file_are_those_that_are_written) {
  // Compares the list itself, number by number, for the two forms of old files.
  for (const char* name : {"lstm", "wavenet"}) {
    const std::string from = content(fixtures() / (std::string(name) + ".nam")), to = io::serialize_nam(model(name));
    const auto weights = [](const std::string& text) {
      const std::size_t at = text.find("\"weights\": [");
      return text.substr(at, text.find(']', at) - at);
    };
    BOOST_TEST(weights(from) == weights(to));
  }
}

/// The bounds are written as the trainer writes them; without a bound PyTorch's is used.
BOOST_AUTO_TEST_CASE(bounds_of_hardtanh_are_read_and_written) {
  const std::string bounds = content(fixtures() / "wavenet_bounds.nam");
  const std::string written = io::serialize_nam(parsed(bounds));
  BOOST_TEST(written.find(R"("activation": [{"type": "Hardtanh", "min_val": -0.3, "max_val": 0.1}, )"
                          R"({"type": "LeakyReLU", "negative_slope": 0.3)") != std::string::npos,
             written.substr(0, 600));
  BOOST_TEST(written.find(R"("Hardtanh"])") != std::string::npos);
  const io::NamModel low = parsed(replaced(bounds, ", \"max_val\": 0.1", ""));
  BOOST_TEST(dynamic_cast<const nn::Wavenet&>(*low.layer).options().arrays[0].units[0].activation.high == 1);
}

BOOST_AUTO_TEST_CASE(metadata_is_kept) {
  const io::NamModel m = model("wavenet");
  BOOST_TEST(m.metadata ==
             R"({"name": "a \"test\"", "gain": 0.5, "date": {"year": 2024, "list": [1, 2.5, null, true]}})");
  io::NamModel other = model("lstm");
  other.metadata = "[1]";
  BOOST_CHECK_EXCEPTION(io::serialize_nam(other), IoError, says("metadata: is no JSON object"));
}

BOOST_AUTO_TEST_CASE(models_train_further) {
  const Tensor x = input();
  for (const std::string& name : kModels) {
    BOOST_TEST_CONTEXT(name) {
      const io::NamModel m = model(name);
      const Tensor target = ferrite::zeros(x.shape());
      const auto loss = [&] { return ferrite::mean(ferrite::square((*m.layer)(x)-target)); };
      const float before = loss().item<float>();
      const std::vector<ferrite::Parameter> all = m.layer->parameters();
      for (int i = 0; i < 3; ++i) {
        ferrite::Tape tape;
        const Tensors grads = tape.grad(loss(), all);
        for (std::size_t k = 0; k < all.size(); ++k) all[k].assign(all[k].peek() - 0.02 * grads[k]);
      }
      BOOST_TEST(loss().item<float>() < before);
      const io::NamModel again = parsed(io::serialize_nam(m));
      BOOST_TEST(within((*again.layer)(x), (*m.layer)(x), 1e-6));
    }
  }
}

BOOST_AUTO_TEST_CASE(initial_states_of_an_lstm_train) {
  const io::NamModel m = model("lstm");
  const auto& net = dynamic_cast<const io::NamLstm&>(*m.layer);
  ferrite::Tape tape;
  const Tensors grads = tape.grad(ferrite::sum(net(input())), {net.initial_h, net.initial_c});
  for (const Tensor& g : grads) BOOST_TEST(ferrite::sum(ferrite::abs(g)).item<float>() > 1e-3F);
}

BOOST_AUTO_TEST_CASE(a_step_program_of_an_lstm_begins_where_the_model_does) {
  const io::NamModel m = model("lstm");
  const ferrite::exchange::StepProgram step = ferrite::exchange::step_program(*m.layer, {.batch = 2, .width = 1});
  const Tensor x = ferrite::uniform({2, 7, 1}, {.seed = 3}, -1, 1), whole = (*m.layer)(x);
  ferrite::Tensors states = step.initial_states();
  for (int t = 0; t < 7; ++t) {
    ferrite::Tensors in{ferrite::select(x, 1, t)};
    for (const Tensor& s : states) in.push_back(s);
    const ferrite::Tensors out = step.function(in);
    BOOST_TEST(identical(out[0], ferrite::contiguous(ferrite::select(whole, 1, t))), "step " << t);
    states = ferrite::Tensors(out.begin() + 1, out.end());
  }
}

BOOST_AUTO_TEST_CASE(a_container_runs_the_model_that_is_selected) {
  const Tensor x = input();
  const io::NamModel m = model("container");
  auto& net = dynamic_cast<io::NamContainer&>(*m.layer);
  BOOST_TEST(net.size() == 2u);
  const Tensor small = (*model("lstm").layer)(x), large = (*model("wavenet").layer)(x);
  BOOST_TEST(identical(net(x), large));
  nn::Stream stream = net.stream();
  BOOST_TEST(identical(streamed(stream, x), large));
  for (const auto& [size, y] : std::map<double, Tensor>{{0.0, small}, {0.49, small}, {0.5, large}, {2.0, large}}) {
    net.select(size);
    BOOST_TEST(identical(net(x), y));
  }
  net.select(0.1);
  nn::Stream of_small = net.stream();
  BOOST_TEST(identical(streamed(of_small, x), small));
  const io::NamModel again = parsed(io::serialize_nam(m));
  const auto& same = dynamic_cast<const io::NamContainer&>(*again.layer);
  BOOST_TEST(identical(same[0](x), small));
  BOOST_TEST(identical(same[1](x), large));
  BOOST_TEST(again.version == "0.7.0");
  BOOST_TEST(again.metadata == R"({"name": "both"})");
  BOOST_TEST(identical((*net.clone())(x), small));
}

BOOST_AUTO_TEST_CASE(negative_zeros_and_digits_are_kept) {
  const std::string text =
      R"({"version": "0.5.4", "architecture": "LSTM", "config": {"input_size": 1, "hidden_size": 1, "num_layers": 1},)"
      R"( "weights": [1e-45, -0.0, 3.4028234663852886e+38, 0.10000000149011612, 1, 2, 3, 4, -0.0, -0.0, 1.5, -1e-40,)"
      R"( -0.0, 7, -0.0, 9]})";
  const std::string written = io::serialize_nam(parsed(text));
  BOOST_TEST(io::serialize_nam(parsed(written)) == written);
  const std::size_t at = written.find("[");
  BOOST_TEST(written.substr(at, written.find(']') - at) ==
             "[1.401298464324817e-45, -0.0, 3.4028234663852886e+38, 0.10000000149011612, 1, 2, 3, 4, -0.0, -0.0, 1.5, "
             "-9.99994610111476e-41, -0.0, 7, -0.0, 9");
}

BOOST_AUTO_TEST_CASE(a_wavenet_is_made_without_a_file) {
  const nn::Wavenet net({.arrays = {{.channels = 4, .bottleneck = 4, .units = {{3, 1}, {3, 2}}}}}, {.seed = 1});
  BOOST_TEST(net.receptive_field() == 7);
  const io::NamModel m = parsed(io::serialize_nam({.layer = net.clone()}));
  BOOST_TEST(identical((*m.layer)(input()), net(input())));
  nn::Layer* const layer = m.layer.get();
  const auto compiled = layer->compiled();
  BOOST_TEST(identical(compiled(input()), net(input())));
}

BOOST_AUTO_TEST_CASE(wrong_sizes_of_layers_are_refused) {
  using ferrite::ValueError;
  BOOST_CHECK_THROW(nn::Wavenet(nn::WavenetOptions{}), ValueError);
  BOOST_CHECK_THROW(nn::Wavenet({.arrays = {{.channels = 4, .bottleneck = 4}}}), ValueError);
  BOOST_CHECK_EXCEPTION(nn::Wavenet({.arrays = {{.channels = 4, .bottleneck = 4, .units = {{3, 1, {"none"}}}}}}),
                        ValueError, says("no activation of this name: 'none'"));
  BOOST_CHECK_THROW(io::NamLstm({.hidden_size = 0}), ValueError);
  io::NamContainer container;
  BOOST_CHECK_THROW(container(input()), ValueError);
  BOOST_CHECK_THROW(container.add(1, nullptr), ValueError);
  const io::NamLstm lstm({.hidden_size = 2}, {.seed = 1});
  BOOST_CHECK_EXCEPTION(lstm(input(), {.reset_mask = ferrite::zeros({1, 100}, ferrite::Dtype::boolean)}), ValueError,
                        says("begins from its own states"));
  BOOST_CHECK_EXCEPTION(io::serialize_nam({.layer = std::make_unique<nn::Linear>(1, 1, nn::Init{.seed = 1})}), IoError,
                        says("a layer linear cannot be written"));
  BOOST_CHECK_EXCEPTION(
      io::serialize_nam({.layer = std::make_unique<io::NamLstm>(io::NamLstmOptions{},
                                                                nn::Init{.seed = 1, .dtype = ferrite::Dtype::f64})}),
      IoError, says("not f32"));
}

BOOST_AUTO_TEST_CASE(what_changes_numbers_is_refused_by_name) {
  const std::string wavenet = content(fixtures() / "wavenet.nam"), lstm = content(fixtures() / "lstm.nam"),
                    newer = content(fixtures() / "wavenet_newer.nam"), both = content(fixtures() / "container.nam");
  const auto refused = [](const std::string& text, const std::string& from, const std::string& to,
                          const std::string& message) {
    BOOST_TEST_CONTEXT(to) { BOOST_CHECK_EXCEPTION(parsed(replaced(text, from, to)), IoError, says(message)); }
  };
  refused(lstm, "\"LSTM\"", "\"ConvNet\"", "nam: the architecture 'ConvNet' is not supported");
  refused(lstm, "0.5.4", "0.8.0", "nam: the version '0.8.0' is not supported");
  refused(lstm, "0.5.4", "0.5.", "the version '0.5.' is not supported");
  refused(lstm, "\"num_layers\": 2", "\"num_layers\": 2, \"dropout\": 1", "nam.config: the key 'dropout'");
  refused(lstm, "\"num_layers\": 2", "\"num_layers\": 3", "nam: has 160 weights, its sizes need 250");
  refused(lstm, "\"num_layers\": 2", "\"num_layers\": 2147483647", "its sizes need");
  refused(lstm, "\"hidden_size\": 3", "\"hidden_size\": 2147483647", "its sizes need");
  refused(lstm, "\"hidden_size\": 3", "\"hidden_size\": 3.5", "nam.config.hidden_size: is no size");
  refused(lstm, "\"hidden_size\": 3", "\"hidden_size\": 0", "is no size from 1 to 2^31 - 1: 0");
  refused(lstm, "\"hidden_size\": 3", "\"hidden_size\": \"3\"", "is no size");
  refused(lstm, "\"input_size\": 1", "\"input_size\": 1, \"in_channels\": 2", "in_channels differ from input_size");
  refused(lstm, "48000", "-1", "the sample_rate is not positive");
  refused(lstm, "\"weights\": [", "\"weights\": [\"a\", ", "'weights' are no list of numbers");
  refused(lstm, "\"weights\": [", "\"weights\": [1e300, ", "a weight does not fit f32");
  refused(wavenet, "\"head\": null", "\"head\": {}", "nam.config.head: has no 'channels'");
  refused(wavenet, "\"head\": null", "\"condition_dsp\": {}, \"head\": null",
          "nam.config.condition_dsp: has no 'version'");
  refused(wavenet, "\"head\": null", "\"skip\": 1, \"head\": null", "nam.config: the key 'skip' is not supported");
  refused(wavenet, "\"Tanh\"", "\"Fasttanh\"", "nam.config.layers 0.activation: the activation 'Fasttanh'");
  refused(wavenet, "\"gated\": false", "\"gated\": false, \"norm\": 1", "nam.config.layers 0: the key 'norm'");
  refused(wavenet, "\"gated\": false", "\"gating_mode\": \"mixed\"", "'mixed' is not supported");
  refused(wavenet, "\"gated\": false", "\"gated\": 0", "'gated' is neither true nor false");
  refused(wavenet, "\"condition_size\": 1", "\"condition_size\": 2", "condition_size is 2, must be 1");
  refused(wavenet, "\"input_size\": 4", "\"input_size\": 3", "nam.config.layers 1: input_size is 3, must be 4");
  refused(wavenet, "\"head_size\": 2", "\"head_size\": 3", "the head's input is 2, must be 3");
  refused(wavenet, "\"kernel_size\": 3", "\"kernel_size\": 3, \"kernel_sizes\": [3, 3, 3]", "must have one of");
  refused(wavenet, "[1, 2, 8]", "[1, 2, 16777216]", "reaches further back than 2^24 steps");
  refused(wavenet, "[1, 2, 8]", "[]", "nam.config.layers 0.dilations: is not a list of dilations");
  refused(wavenet, "[1, 2, 8]", "[1, 2, 8, 8]", "its sizes need");
  refused(newer, "[2, 5, 3]", "[2, 5]", "has 2 values for 3 layers");
  refused(newer, "\"groups_input\": 2", "\"groups_input\": 3", "groups_input 3 do not divide the channels");
  refused(newer, "\"groups_input_mixin\": 1", "\"groups_input_mixin\": 2",
          "groups_input_mixin 2 do not divide the channels, 1 to 12");
  refused(newer, "\"conv_pre_film\": {\"active\": false", "\"conv_pre_film\": {\"active\": true", "its sizes need");
  const std::string modulated = content(fixtures() / "wavenet_modulated.nam");
  refused(modulated, "\"condition_size\": 2", "\"condition_size\": 3", "do not divide the channels");
  refused(modulated, "\"layer1x1\": {\"active\": true", "\"layer1x1\": {\"active\": false",
          "layer1x1_post_film has no product in front of it");
  refused(modulated, "\"head1x1\": {\"active\": true", "\"head1x1\": {\"active\": false",
          "head1x1_post_film has no product in front of it");
  refused(modulated, "\"head_size\": 2, \"channels\": 3", "\"head_size\": 3, \"channels\": 3", "its sizes need");
  refused(modulated, "\"kernel_sizes\": [2, 1, 3]", "\"kernel_sizes\": []",
          "nam.config.head.kernel_sizes: is not a list");
  refused(modulated, "\"kernel_sizes\": [2, 1, 3]", "\"kernel_sizes\": [2, 1]", "its sizes need");
  refused(modulated, "\"channels\": 3, \"out_channels\": 1", "\"in_channels\": 3, \"channels\": 3, \"out_channels\": 1",
          "in_channels must be those that the last array gives, 2");
  refused(modulated, "\"shift\": false", "\"scale\": false", "the key 'scale' is not supported");
  refused(newer, "\"negative_slope\": 0.2", "\"slope\": 0.2", "the key 'slope' is not supported");
  const std::string bounds = content(fixtures() / "wavenet_bounds.nam");
  refused(bounds, "\"max_val\": 0.1", "\"max_val\": -0.31",
          "the min_val of a Hardtanh is above its max_val: {\"type\": \"Hardtanh\", \"min_val\": -0.3, \"max_val\": "
          "-0.31}");
  refused(bounds, "\"max_val\": 0.1", "\"max_val\": \"1\"", "'max_val' is no number");
  refused(bounds, "\"max_val\": 0.1", "\"max_slope\": 0.1", "the key 'max_slope' is not supported");
  refused(bounds, "\"negative_slope\": 0.3", "\"negative_slopes\": [0.3]", "has no 'negative_slope'");
  refused(bounds, "\"Sigmoid\"", "\"Sigmoid\", \"max_val\": 2", "the key 'max_val' is not supported");
  refused(wavenet, "\"Tanh\"", "\"PReLU\"", "is no object");
  refused(both, "\"max_value\": 0.5", "\"max_value\": 1.5", "max_value is not above the one before");
  refused(both, "\"max_value\": 1.0", "\"max_value\": 0.9", "the last max_value is below 1");
  refused(both, "48000}}, {", "44100}}, {", "the sample_rate differs from that of the container");
}

BOOST_AUTO_TEST_SUITE_END()
