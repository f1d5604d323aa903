// Nets around every causal word of the builder.
#include "dsl/layer_catalogue.h"

#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "support/causal_layers.h"

using namespace ferrite;

namespace layer_catalogue {
namespace {

/// Returns a batch norm whose statistics come from batches.
nn::BatchNorm1d trained_batch_norm(const nn::Init& init) {
  nn::BatchNorm1d layer({.num_features = kFeatures, .channels_last = true}, init);
  for (std::uint64_t i = 0; i < 3; ++i) (void)layer(uniform({2, 4, kFeatures}, {6, i, 0}, -1, 3, init.dtype));
  return layer;
}

}  // namespace

std::map<std::string, std::vector<Words>> catalogue(Dtype dtype) {
  const auto one = [](auto word) -> Words {
    return [word] {
      dsl::Builder b = dsl::sequence(kFeatures);
      word(b);
      return b;
    };
  };
  using B = dsl::Builder;
  const nn::Init init{.seed = 4, .prefix = {}, .dtype = dtype};
  std::map<std::string, std::vector<Words>> all;
  all["linear"] = {one([](B& b) { b.linear(4); })};
  all["causal_conv1d"] = {one([](B& b) { b.causal_conv1d(4, 1); }), one([](B& b) { b.causal_conv1d(4, 3); }),
                          one([](B& b) { b.causal_conv1d(5, 2, {.dilation = 4, .bias = false}); }),
                          one([](B& b) { b.causal_conv1d(3, 3, {.dilation = 2, .groups = 3}); }),
                          one([](B& b) { b.causal_conv1d(6, 2).causal_conv1d(4, 2, {.dilation = 2, .groups = 2}); })};
  all["causal_conv1d"].push_back(one([](B& b) { b.causal_conv1d(4, 3, {.dilation = 2, .stride = 2}); }));
  all["causal_conv1d"].push_back(one([](B& b) { b.causal_conv1d(4, 1, {.stride = 3}).gru(2); }));
  all["mlstm"] = {one([](B& b) { b.mlstm({.num_heads = 2, .round_up_to = 4, .chunk = 1}); }), one([](B& b) {
                    b.linear(4).mlstm({.proj_factor = 1, .round_up_to = 4, .conv1d_kernel_size = 1, .chunk = 1}).gru(2);
                  })};
  all["slstm"] = {one([](B& b) { b.slstm({.num_heads = 3}); }),
                  one([](B& b) { b.linear(4).slstm({.num_heads = 2, .conv1d_kernel_size = 0}).gru(2); })};
  constexpr auto causal = ConvolutionPadding::causal;
  all["conv1d"] = {one([](B& b) { b.conv1d(4, 3, {.padding = causal}); }),
                   one([](B& b) { b.conv1d(4, 3, {.padding = causal, .dilation = {2}}).gru(3); }),
                   one([](B& b) { b.conv1d(4, 3, {.stride = {2}, .padding = causal}).gru(3); }),
                   one([](B& b) { b.conv1d(6, 2, {.stride = {3}, .groups = 3, .bias = false}).lstm(3); }),
                   one([](B& b) { b.linear(6).conv1d(6, 3, {.dilation = {2}, .groups = 6}).linear(2); }),
                   one([](B& b) { b.conv1d(4, 2, {.stride = {2}}).conv1d(3, 2, {.stride = {2}}); })};
  all["max_pool1d"] = {one([](B& b) { b.max_pool1d(2); }),
                       one([](B& b) { b.gru(4).max_pool1d(3, {.stride = {1}}).rnn(2); }),
                       one([](B& b) { b.max_pool1d(2, {.stride = {3}, .dilation = {3}}); })};
  all["avg_pool1d"] = {one([](B& b) { b.avg_pool1d(3); }), one([](B& b) { b.avg_pool1d(4, {.stride = {2}}); }),
                       one([](B& b) { b.avg_pool1d(2, {.divisor_override = 3}).linear(2); })};
  all["lp_pool1d"] = {one([](B& b) { b.lp_pool1d(2, 3); }), one([](B& b) { b.lp_pool1d(3, 2, {.stride = {1}}); })};
  all["stft"] = {one([](B& b) { b.stft(4, {.center = false}); }), one([](B& b) {
                   b.stft(5, {.hop_length = 2, .spectrum = nn::Spectrum::magnitude, .center = false}).gru(3);
                 }),
                 one([](B& b) {
                   b.linear(1).stft(5, {.hop_length = 3,
                                        .win_length = 3,
                                        .window = nn::SpectralWindow::hamming,
                                        .spectrum = nn::Spectrum::power,
                                        .center = false,
                                        .normalized = true});
                 })};
  all["inverse_stft"] = {
      one([](B& b) {
        b.stft(4, {.hop_length = 2, .center = false}).inverse_stft(4, {.hop_length = 2, .center = false});
      }),
      one([](B& b) { b.linear(12).inverse_stft(5, {.hop_length = 3, .center = false, .normalized = true}).linear(2); }),
      one([](B& b) {
        b.linear(6).inverse_stft(4, {.hop_length = 4, .window = nn::SpectralWindow::ones, .center = false}).gru(2);
      })};
  all["gru"] = {one([](B& b) { b.gru(4); }), one([](B& b) { b.gru(4, {.layers = 2}); }),
                one([](B& b) { b.gru(4, {.reset_after = false}); }),
                one([](B& b) { b.gru(4, {.layers = 2, .zoneout = 0.25}); })};
  all["lstm"] = {one([](B& b) { b.lstm(4); }), one([](B& b) { b.lstm(4, {.layers = 2, .proj_size = 2}); }),
                 one([](B& b) { b.lstm(4, {.proj_size = 2, .zoneout = 0.25, .zoneout_cell = 0.5}).linear(2); })};
  all["rnn"] = {one([](B& b) { b.rnn(4); }), one([](B& b) { b.rnn(4, {.zoneout = 0.1}); })};
  all["recurrent"] = {one([](B& b) { b.recurrent<nn::LayerNormGruCell>(4); }),
                      one([](B& b) { b.recurrent<nn::LayerNormGruCell>(4, {.layers = 2}); }),
                      one([](B& b) { b.recurrent<nn::LayerNormGruCell>(4, {.zoneout = 0.3}); })};
  all["embedding"] = {[] { return dsl::tokens(7).embedding(4); },
                      [] { return dsl::tokens(7).embedding(4, {.padding_idx = 2}); }};
  all["min_gru"] = {one([](B& b) { b.min_gru(5); }),
                    one([](B& b) { b.linear(3).min_gru(20, {.proj_size = 4, .bias = true}).gru(2); })};
  all["min_lstm"] = {one([](B& b) { b.min_lstm(17, {.proj_size = 3, .bias = true}).relu(); })};
  all["lru"] = {one([](B& b) { b.lru(5); }), one([](B& b) { b.linear(4).lru(9).tanh(); })};
  all["s5"] = {one([](B& b) { b.s5(4, {.blocks = 2}); }),
               one([](B& b) { b.residual([](B& r) { r.s5(3, {.bilinear = true}).gelu(); }); })};
  all["mamba"] = {one([](B& b) { b.mamba({.state = 3}); }),
                  one([](B& b) { b.linear(4).mamba({.expand = 1, .kernel_size = 2}).gru(2); })};
  all["rg_lru"] = {one([](B& b) { b.linear(6).rg_lru(3).linear(2); })};
  all["standardize"] = {one([](B& b) { b.standardize().linear(2); }),
                        one([](B& b) { b.standardize({.skip_missing = true}); })};
  all["per_step"] = {
      one([](B& b) { b.per_step("saturate", [](const Tensor& x) { return tanh(3 * x) / 3; }); }),
      one([](B& b) { b.gru(4).per_step("halves", [](const Tensor& x) { return slice(x, -1, 0, 2); }).linear(3); })};
  all["mel_bands"] = {one([](B& b) { b.softplus().mel_bands(2, 16, {.log_offset = 1e-3}); }), one([](B& b) {
                        b.linear(8)
                            .stft(6, {.hop_length = 3, .spectrum = nn::Spectrum::power, .center = false})
                            .mel_bands(3, 100, {.scale = MelScale::slaney, .channels = 8})
                            .gru(2);
                      })};
  all["layer_norm"] = {one([](B& b) { b.layer_norm(); })};
  all["batch_norm"] = {one([](B& b) { b.linear(4).batch_norm({.affine = false}); }),
                       one([init](B& b) { b.add(trained_batch_norm(init)); })};
  all["rms_norm"] = {one([](B& b) { b.rms_norm(); }), one([](B& b) { b.rms_norm({.affine = false}).linear(2); })};
  const auto heads = [&](std::int64_t n, nn::MultiheadAttentionOptions o) {
    o.causal = true;
    if (o.capacity == 1024) o.capacity = 2 * kSteps;
    return one([=](B& b) { b.linear(8).attention(n, o); });
  };
  all["attention"] = {
      heads(2, {}),
      heads(4, {.kv_heads = 2, .bias = false, .dropout = 0.5}),
      heads(4, {.kv_heads = 1, .positions = nn::Positions::rotary}),
      heads(2, {.positions = nn::Positions::rotary, .rotary = {.interleaved = true}, .capacity = kSteps}),
      heads(8, {.positions = nn::Positions::alibi}),
      heads(2, {.add_bias_kv = true, .add_zero_attn = true, .positions = nn::Positions::alibi}),
      heads(1, {.capacity = 600})};
  const auto blocks = [&](nn::TransformerLayerOptions o, int n = 1) {
    o.causal = true;
    o.dim_feedforward = 5;
    o.capacity = kSteps + 2;
    return one([=](B& b) { b.linear(4).repeat(n, [&](B& r) { r.transformer(2, o); }); });
  };
  all["transformer"] = {blocks({}), blocks({.activation = "gelu", .norm_first = true}, 2),
                        blocks({.bias = false, .kv_heads = 1, .positions = nn::Positions::rotary})};
  all["positions"] = {one([](B& b) { b.positions(); }), one([](B& b) { b.linear(4).positions().gru(2); }),
                      one([](B& b) { b.positions(kSteps).linear(2); }),
                      [] { return dsl::tokens(7).embedding(4).positions(kSteps + 1); }};
  all["elu"] = {one([](B& b) { b.elu(0.5); })};
  all["leaky_relu"] = {one([](B& b) { b.leaky_relu(); })};
  all["prelu"] = {one([](B& b) { b.prelu(); }), one([](B& b) { b.prelu(true); })};
  all["glu"] = {one([](B& b) { b.linear(6).glu(); })};
  const auto linear = [](B& w) { w.linear(4); };
  all["weight_norm"] = {one([=](B& b) { b.weight_norm(linear); }), one([](B& b) {
                          b.weight_norm([](B& w) { w.causal_conv1d(4, 3, {.dilation = 2}); }, {.axis = {}})
                              .weight_norm([](B& w) { w.gru(3); }, {.parameter = "weight_hh_l0"});
                        })};
  all["spectral_norm"] = {one([=](B& b) { b.spectral_norm(linear); }), one([](B& b) {
                            b.spectral_norm([](B& w) { w.residual([](B& r) { r.causal_conv1d(kFeatures, 2); }); },
                                            {.parameter = "0.weight"});
                          })};
  all["dropout"] = {one([](B& b) { b.dropout(0.5); })};
  all["last_step"] = {one([](B& b) { b.last_step(); })};
  all["stage"] = {one([](B& b) { b.stage("part", [](B& s) { s.gru(4).layer_norm(); }); })};
  all["residual"] = {one([](B& b) { b.residual([](B& r) { r.layer_norm().gru(kFeatures); }); }),
                     one([](B& b) { b.linear(5).residual([](B& r) { r.gru(5).tanh(); }).lstm(4); })};
  using Parts = std::vector<B::Part>;
  const Parts even = {[](B& b) { b.gru(4); }, [](B& b) { b.causal_conv1d(4, 3, {.dilation = 2}).relu(); },
                      [](B& b) { b.linear(8).attention(2, {.causal = true, .capacity = 2 * kSteps}).linear(4); }};
  const Parts strided = {[](B& b) { b.avg_pool1d(2).linear(3).gru(3); }, [](B& b) { b.conv1d(3, 2, {.stride = {2}}); }};
  all["parallel"] = {one([=](B& b) { b.parallel(even).gru(2); }), one([=](B& b) { b.parallel(strided).gru(2); }),
                     one([](B& b) {
                       b.parallel({[](B& p) { p.tanh(); }, [](B& p) { p.relu(); }});
                     })};
  all["concat"] = {one([=](B& b) { b.concat(even); }), one([=](B& b) { b.concat(strided).lstm(2); }), [] {
                     return dsl::tokens(7).concat({[](B& p) { p.embedding(2).gru(3); }, [](B& p) { p.embedding(4); }});
                   }};
  all["repeat"] = {one([](B& b) { b.repeat(2, [](B& r) { r.rnn(3).silu(); }); })};
  all["add"] = {
      one([init](B& b) { b.add(causal_layers::Fir(kFeatures, init)); }),
      one([](B& b) { b.linear(4).add(causal_layers::Delays()); }),
      one([](B& b) { b.linear(4).add(causal_layers::History(2 * kSteps)); }),
      one([](B& b) { b.linear(4).add(causal_layers::Same(true)); }),
      one([](B& b) { b.linear(4).add(causal_layers::Same(false)); }),
      one([init](B& b) { b.add(nn::PeepholeLstm(kFeatures, 4, {.layers = 2}, init)); }),
      one([init](B& b) { b.add(causal_layers::FilteredGru(kFeatures, init)); }),
      one([init](B& b) { b.add(causal_layers::Attention(kFeatures, 2 * kSteps, init)); }),
      one([init](B& b) {
        b.gru(kFeatures).residual([&](B& r) { r.add(causal_layers::Fir(kFeatures, init)).gru(kFeatures).softmax(); });
      })};
  for (const std::string& name : nn::activation_names()) {
    all["activation"].push_back(one([name](B& b) { b.activation(name); }));
    all[name] = {all["activation"].back()};
  }
  return all;
}

Tensor input(const dsl::Network& net, std::int64_t batch, Dtype dtype, std::int64_t steps) {
  if (net.input().kind == dsl::InputKind::tokens) return cast(uniform({batch, steps}, {5, 1, 0}, 0, 6.99), Dtype::i64);
  return uniform({batch, steps, kFeatures}, {5, 2, 0}, -1, 1, dtype);
}

}  // namespace layer_catalogue
