// Recurrent layers of user-defined cells.
#include "../bench/gate/minimal_gated.h"
#include "digests.h"

namespace digests {
namespace {

/// A cell with a memory that its gates read.
struct Peephole final : nn::CustomCell {
  std::int64_t H;
  Parameter w_x, w_h, p, b;
  Peephole(std::int64_t D, std::int64_t units, const nn::Init& i) : H(units) {
    const nn::Fill fill = nn::init::xavier_uniform();
    w_x = parameter("weight_x", {D, 3 * H}, fill, i);
    w_h = parameter("weight_h", {H, 3 * H}, fill, i);
    p = parameter("peephole", {2 * H}, nn::init::uniform(-0.5, 0.5), i);
    b = parameter("bias", {3 * H}, nn::init::constant(0.1), i);
  }
  std::string kind() const override { return "peephole"; }
  bool has_memory() const override { return true; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensors g = chunk(matmul(x, w_x) + matmul(s.h, w_h) + b, 3, 1), look = chunk(p, 2, 0);
    const Tensor f = sigmoid(g[0] + look[0] * s.c);
    const Tensor c = f * s.c + (1 - f) * tanh(g[1]);
    return {sigmoid(g[2] + look[1] * c) * tanh(c), c};
  }
};

template <class Cell>
void add(std::vector<Case>& all, const std::string& cell, nn::Form form, const std::string& form_name) {
  const auto with = [&](const std::string& what, nn::CustomOptions options, const Tensor& x,
                        const nn::Context& context = {}, std::int64_t hidden = 5) {
    options.form = form;
    all.push_back(derivatives("custom/" + cell + "/" + form_name + "/" + what, [=]() -> Instance {
      const auto layer = std::make_shared<nn::Custom>(
          nn::custom<Cell>(x.shape()[-1], hidden, options, {.seed = 4, .prefix = "layer", .dtype = x.dtype()}));
      return {{x}, [=](const Tensors& in) { return results_of(layer->run(in[0], context)); }, layer->parameters()};
    }));
  };
  const Tensor x = data({3, 5, 3});
  if (form == nn::Form::fused) return with("refused", {}, x);
  nn::Context lengths, resets;
  lengths.lengths = Tensor::from<std::int64_t>({5, 1, 3});
  resets.reset_mask = lt(uniform({3, 5}, {8, 8, 8}), 0.3);
  with("plain", {}, x);
  with("lengths", {}, x, lengths);
  with("resets", {}, x, resets);
  with("two-layers", {.layers = 2}, x, lengths);
  with("both-ways", {.bidirectional = true}, x, lengths);
  with("both-ways-resets", {.bidirectional = true}, x, resets);
  with("dropout", {.layers = 2, .dropout = 0.4}, x);
  with("variational", {.variational_dropout = 0.4}, x);
  with("time-first", {.batch_first = false}, x);
  with("f64", {}, data({3, 5, 3}, 1, Dtype::f64));
  with("unbatched", {}, data({5, 3}));
  with("large", {}, data({9, 12, 33}), {}, 40);
  if (form == nn::Form::scan) with("long", {}, data({2, 90, 6}), {}, 19);
}

}  // namespace

std::vector<Case> custom_cases() {
  std::vector<Case> all;
  for (const auto& [name, form] : {std::pair{"scan", nn::Form::scan}, std::pair{"unrolled", nn::Form::unrolled},
                                   std::pair{"fused", nn::Form::fused}}) {
    add<gate::MinimalGated>(all, "minimal_gated", form, name);
    add<Peephole>(all, "peephole", form, name);
    add<nn::LayerNormGruCell>(all, "layer_norm_gru", form, name);
  }
  return all;
}

}  // namespace digests
