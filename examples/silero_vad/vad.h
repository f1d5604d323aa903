#pragma once
// The network of Silero VAD, made of the library's layers: the probability of speech, frame by frame.
#include <ferrite/ferrite.h>

#include <array>
#include <memory>
#include <vector>

/// The sizes that follow from the rate of the samples, 16000 or 8000 a second.
struct VadOptions {
  std::int64_t rate = 16000;
  static constexpr auto fields = ferrite::attr_list(ferrite::attr("rate", &VadOptions::rate));

  std::int64_t frame() const { return rate * 32 / 1000; }
  std::int64_t context() const { return frame() / 8; }  ///< samples before a frame that the net sees again
  std::int64_t window() const { return frame() / 2; }   ///< length of the Fourier transform
  std::int64_t bins() const { return window() / 2 + 1; }
};

/// A layer whose step is a frame of samples, 32 ms: x [B, T, frame] -> the probability of speech [B, T, 1]. A
/// short-time Fourier transform by a convolution with its basis, with mirrored samples at the end; magnitudes; four
/// convolutions, which leave one step of four; an LSTM from frame to frame; a linear layer. Names are those of Silero's
/// module.
struct Vad final : ferrite::nn::LayerOf<Vad, VadOptions> {
  static constexpr auto name = "silero_vad";
  static constexpr std::int64_t kUnits = 128;

  ferrite::nn::Conv1d stft;
  std::array<ferrite::nn::Conv1d, 4> encoder;
  ferrite::nn::LstmCell rnn{kUnits, kUnits};
  ferrite::nn::Conv1d head{{.in_channels = kUnits, .out_channels = 1, .kernel_size = {1}}};

  explicit Vad(const VadOptions& o = {}, const ferrite::nn::Init& init = {})
      : LayerOf(o, init),
        stft({.in_channels = 1,
              .out_channels = 2 * o.bins(),
              .kernel_size = {o.window()},
              .stride = {o.window() / 2},
              .bias = false}),
        encoder{block(o.bins(), 128, 1), block(128, 64, 2), block(64, 64, 2), block(64, 128, 1)} {
    adopt("stft", stft);
    for (std::size_t i = 0; i < encoder.size(); ++i)
      adopt("encoder." + std::to_string(i) + ".reparam_conv", encoder[i]);
    adopt("decoder.rnn", rnn), adopt("decoder.decoder.2", head);
  }

  bool causal() const override { return true; }
  ferrite::nn::StepInput step_input() const override { return {options().frame(), head.weight.dtype()}; }

  ferrite::Tensor forward(const ferrite::Tensor& x, const ferrite::nn::Context&) const override {
    using namespace ferrite;
    const std::int64_t B = x.shape()[0], T = x.shape()[1], C = options().context();
    const Tensor ends = slice(x, 2, -C), before = concat({zeros({B, 1, C}, x.dtype()), slice(ends, 1, 0, T - 1)}, 1);
    const Tensor encoded =
        reshape(encode(reshape(concat({before, x}, 2), {B * T, C + options().frame()})), {B, T, kUnits});
    nn::RecurrentState state;
    Tensors speech;
    for (std::int64_t t = 0; t < T; ++t) {
      state = rnn(select(encoded, 1, t), state);
      speech.push_back(decode(state.h));
    }
    return stack(speech, 1);
  }

  std::vector<ferrite::nn::StepState> states(const ferrite::nn::StepRows& in) const override {
    return {{.name = "context", .shape = {in.batch, options().context()}, .dtype = in.dtype},
            {.name = "h", .shape = {in.batch, kUnits}, .dtype = in.dtype},
            {.name = "c", .shape = {in.batch, kUnits}, .dtype = in.dtype}};
  }
  ferrite::nn::StepResult step(const ferrite::Tensor& x, const ferrite::Tensors& states) const override {
    const ferrite::nn::RecurrentState next = rnn(encode(ferrite::concat({states[0], x}, 1)), {states[1], states[2]});
    return {decode(next.h), {ferrite::slice(x, 1, -options().context()), next.h, next.c}};
  }

 private:
  static ferrite::nn::Conv1d block(std::int64_t in, std::int64_t out, std::int64_t stride) {
    return ferrite::nn::Conv1d(
        {.in_channels = in, .out_channels = out, .kernel_size = {3}, .stride = {stride}, .padding = {1}});
  }

  /// Encodes samples [B, context + frame] -> [B, 128].
  ferrite::Tensor encode(const ferrite::Tensor& samples) const {
    using namespace ferrite;
    const std::int64_t B = samples.shape()[0], C = options().context(), bins = options().bins();
    const Tensor padded = pad(samples, {0, 0}, {0, C}, PaddingMode::reflect);
    const Tensor parts = stft(reshape(padded, {B, 1, padded.shape()[1]}));
    Tensor y = sqrt(square(slice(parts, 1, 0, bins)) + square(slice(parts, 1, bins)));
    for (const nn::Conv1d& layer : encoder) y = relu(layer(y));
    return reshape(y, {B, kUnits});
  }

  /// Computes h [B, 128] -> the probability of speech [B, 1].
  ferrite::Tensor decode(const ferrite::Tensor& h) const {
    using namespace ferrite;
    const std::int64_t B = h.shape()[0];
    return reshape(sigmoid(head(reshape(relu(h), {B, kUnits, 1}))), {B, 1});
  }
};

/// Reads the net with the weights of the package's silero_vad.jit, for 16000 or 8000 samples a second.
inline Vad read_vad(const std::string& path, std::int64_t rate) {
  const std::string_view part = rate == 16000 ? "_model" : "_model_8k";
  Vad vad({.rate = rate});
  ferrite::io::load(vad, ferrite::io::read_torch(path, part).renamed([](std::string_view theirs) -> std::string {
    return theirs == "stft.forward_basis_buffer" ? "stft.weight" : std::string(theirs);
  }));
  vad.eval();
  return vad;
}
