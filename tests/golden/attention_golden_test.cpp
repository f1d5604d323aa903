// Attention and layers of tokens compared with PyTorch: values, gradients and double backward of functions and modules.
// tests/data/make_attention_fixtures.py writes the cases.
#include <map>
#include <set>

#include "ferrite/nn/layers/tokens.h"
#include "ferrite/nn/layers/transformer.h"
#include "golden/twice.h"
#include "support/compare.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;
const nn::Init kDoubles{.dtype = Dtype::f64};

const io::TensorFile& functions_file() {
  static const io::TensorFile f = support::fixture("attention.safetensors");
  return f;
}
Tensor mask(const std::string& name) { return functions_file().tensor(name + "/mask"); }

golden::Function attention(const AttentionOptions& o) {
  return [o](In x) { return scaled_dot_product_attention(x[0], x[1], x[2], o); };
}

golden::Functions functions() {
  return {
      {"plain", attention({})},
      {"matrices", attention({})},
      {"scale", attention({.scale = -0.75})},
      {"causal", attention({.causal = true})},
      {"causal_more_queries", attention({.causal = true})},
      {"bool", attention({.mask = mask("bool")})},
      {"padding", attention({.mask = mask("padding")})},
      {"hiding", attention({.mask = mask("hiding")})},
      {"added", [](In x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3]}); }},
      {"grouped", attention({.enable_gqa = true})},
      {"grouped_causal", attention({.causal = true, .enable_gqa = true})},
      {"grouped_one", attention({.mask = mask("bool"), .enable_gqa = true})},
      {"rotary",
       [](In x) {
         return square(rotary_embedding(x[0], Tensor::from<std::int64_t>({0, 1, 2, 70})));
       }},
      {"rotary_pairs",
       [](In x) {
         const Tensor at = Tensor::from(std::vector<std::int64_t>{3, 9, 5, 0}, {2, 2});
         return square(rotary_embedding(x[0], at, {.base = 500, .interleaved = true}));
       }},
  };
}

// ---- layers ----------------------------------------------------------------------------------------------

const io::TensorFile& layers_file() {
  static const io::TensorFile f = support::fixture("attention_layers.safetensors");
  return f;
}

/// Returns a constant of a case by name; undefined if the case does not have it.
Tensor constant(const std::string& name, const std::string& what) {
  const std::string full = name + "/c/" + what;
  return layers_file().contains(full) ? layers_file().tensor(full) : Tensor();
}

struct LayerCase {
  std::function<std::unique_ptr<nn::Layer>()> make;
  std::function<Tensor(const nn::Layer&, const Tensors&, const std::string&)> call;
};
using LayerCases = std::map<std::string, LayerCase>;

/// Calls a layer with the lengths of a case, and replaces padding by 0.
Tensor as_layer(const nn::Layer& layer, const Tensors& in, const std::string& name) {
  const Tensor lengths = constant(name, "lengths");
  if (!lengths.defined()) return layer(in[0]);
  const Tensor y = layer(in[0], {.lengths = lengths});
  return where(lt(reshape(arange(y.shape()[1]), {-1, 1}), reshape(lengths, {-1, 1, 1})), y, 0);
}
Tensor attended(const nn::Layer& layer, const Tensors& in, const std::string& name) {
  return dynamic_cast<const nn::MultiheadAttention&>(layer).attend(
      in[0], in[1], in[2],
      {.attn_mask = constant(name, "attn_mask"), .key_padding_mask = constant(name, "key_padding_mask")});
}

LayerCases attention_layers() {
  using O = nn::MultiheadAttentionOptions;
  const auto of = [](const O& o, auto call) {
    return LayerCase{[o] { return std::make_unique<nn::MultiheadAttention>(o, kDoubles); }, call};
  };
  const O two{.embed_dim = 6, .num_heads = 2};
  const auto with = [&](auto change) {
    O o = two;
    change(o);
    return o;
  };
  return {
      {"mha", of(two, as_layer)},
      {"mha_eval", of(two, as_layer)},
      {"mha_no_bias", of({.embed_dim = 6, .num_heads = 3, .bias = false}, as_layer)},
      {"mha_causal", of(with([](O& o) { o.causal = true; }), as_layer)},
      {"mha_padding", of(two, as_layer)},
      {"mha_nothing_seen", of(two, attended)},
      {"mha_cross", of(two, attended)},
      {"mha_cross_floats", of(two, attended)},
      {"mha_dims", of(with([](O& o) { o.kdim = 3, o.vdim = 4; }), attended)},
      {"mha_kdim", of(with([](O& o) { o.kdim = 3, o.bias = false; }), attended)},
      {"mha_bias_kv", of(with([](O& o) { o.add_bias_kv = o.causal = true; }), as_layer)},
      {"mha_zero", of(with([](O& o) { o.add_zero_attn = true; }), attended)},
      {"mha_both_first", of(with([](O& o) { o.add_bias_kv = o.add_zero_attn = true; }), as_layer)},
      {"heads_grouped", of({.embed_dim = 8, .num_heads = 4, .kv_heads = 2}, as_layer)},
      {"heads_one", of({.embed_dim = 6, .num_heads = 3, .kv_heads = 1, .bias = false, .causal = true}, as_layer)},
      {"heads_rotary",
       of({.embed_dim = 8, .num_heads = 2, .causal = true, .positions = nn::Positions::rotary}, as_layer)},
      {"heads_rotary_pairs", of({.embed_dim = 8,
                                 .num_heads = 2,
                                 .kv_heads = 1,
                                 .positions = nn::Positions::rotary,
                                 .rotary = {.interleaved = true}},
                                as_layer)},
      {"heads_alibi",
       of({.embed_dim = 12, .num_heads = 6, .kv_heads = 2, .causal = true, .positions = nn::Positions::alibi},
          as_layer)},
      {"heads_alibi_both_ways", of({.embed_dim = 8, .num_heads = 4, .positions = nn::Positions::alibi}, as_layer)},
  };
}

/// Returns a function that makes a layer with the given options.
template <class L, class Options>
auto made(const Options& o) {
  return [o] { return std::make_unique<L>(o, kDoubles); };
}

LayerCases transformer_layers() {
  using O = nn::TransformerLayerOptions;
  const O two{.d_model = 6, .nhead = 2, .dim_feedforward = 5, .dropout = 0};
  const auto with = [&](auto change) {
    O o = two;
    change(o);
    return o;
  };
  const auto encoder = [](const O& o) { return LayerCase{made<nn::TransformerEncoderLayer>(o), as_layer}; };
  const auto decoder = [](const O& o) {
    return LayerCase{
        made<nn::TransformerDecoderLayer>(o), [](const nn::Layer& layer, const Tensors& in, const std::string& name) {
          const nn::AttentionMasks target{.attn_mask = constant(name, "attn_mask"), .key_padding_mask = {}};
          return dynamic_cast<const nn::TransformerDecoderLayer&>(layer).decode(
              in[0], in[1],
              {target,
               {.attn_mask = constant(name, "memory_mask"),
                .key_padding_mask = constant(name, "memory_key_padding_mask")}});
        }};
  };
  const auto masked = [](const nn::Layer& layer, const Tensors& in, const std::string& name) {
    return dynamic_cast<const nn::TransformerEncoderLayer&>(layer).encode(
        in[0], {.attn_mask = constant(name, "attn_mask"), .key_padding_mask = {}});
  };
  return {
      {"encoder", encoder(two)},
      {"encoder_eval", encoder(two)},
      {"encoder_first", encoder({.d_model = 6,
                                 .nhead = 3,
                                 .dim_feedforward = 7,
                                 .dropout = 0,
                                 .activation = "gelu",
                                 .layer_norm_eps = 0.01,
                                 .norm_first = true})},
      {"encoder_no_bias", encoder(with([](O& o) { o.bias = false, o.activation = "silu"; }))},
      {"encoder_causal", encoder(with([](O& o) { o.causal = true; }))},
      {"encoder_padding", encoder(with([](O& o) { o.norm_first = true; }))},
      {"encoder_masks", {made<nn::TransformerEncoderLayer>(two), masked}},
      {"decoder", decoder(two)},
      {"decoder_eval", decoder(two)},
      {"decoder_first", decoder({.d_model = 6,
                                 .nhead = 3,
                                 .dim_feedforward = 4,
                                 .dropout = 0,
                                 .activation = "gelu",
                                 .norm_first = true,
                                 .causal = true})},
      {"decoder_no_bias", decoder({.d_model = 6, .nhead = 1, .dim_feedforward = 4, .dropout = 0, .bias = false})},
      {"decoder_masks", decoder(two)},
  };
}

LayerCases token_layers() {
  using O = nn::EmbeddingBagOptions;
  const auto embedding = [](std::int64_t padding) {
    return LayerCase{made<nn::Embedding>(nn::EmbeddingOptions{5, 3, padding}), as_layer};
  };
  const auto bag = [](nn::BagMode mode, std::optional<std::int64_t> padding = {}, bool ends = false) {
    const O o{.vocabulary = 5, .features = 3, .mode = mode, .padding_idx = padding, .include_last_offset = ends};
    return LayerCase{made<nn::EmbeddingBag>(o), [](const nn::Layer& layer, const Tensors& in, const std::string& name) {
                       const Tensor offsets = constant(name, "offsets");
                       const auto& bags = dynamic_cast<const nn::EmbeddingBag&>(layer);
                       if (offsets.defined()) return bags.bags(in[0], offsets);
                       return in.size() > 1 ? bags.weighted(in[0], in[1]) : bags(in[0]);
                     }};
  };
  const auto sines = [](std::int64_t features) {
    return LayerCase{made<nn::SinusoidalPositions>(nn::SinusoidalPositionsOptions{.features = features}), as_layer};
  };
  using enum nn::BagMode;
  return {
      {"embedding_padding", embedding(1)},
      {"embedding_padding_last", embedding(-1)},
      {"bag_sum", bag(sum)},
      {"bag_mean", bag(mean, 1)},
      {"bag_max", bag(max)},
      {"bag_max_padding", bag(max, -4)},
      {"bag_weighted", bag(sum)},
      {"bag_sum_offsets", bag(sum, 1)},
      {"bag_mean_offsets", bag(mean)},
      {"bag_mean_ends", bag(mean, 1, true)},
      {"bag_max_offsets", bag(max, 1)},
      {"sinusoidal", sines(6)},
      {"sinusoidal_odd", sines(5)},
      {"learned", {made<nn::LearnedPositions>(nn::LearnedPositionsOptions{.features = 6, .capacity = 5}), as_layer}},
  };
}

const LayerCases& layers() {
  static const LayerCases all = [] {
    LayerCases list = attention_layers();
    for (LayerCases more : {transformer_layers(), token_layers()}) list.merge(more);
    return list;
  }();
  return all;
}

/// Returns a tensor of a parameter as it is stored in memory.
Tensor laid_out(const Tensor& in_file, const Parameter& p) {
  return p.layout() == FileLayout::transposed ? transpose(in_file) : in_file;
}

/// Returns the layer of a case with its parameters.
std::unique_ptr<nn::Layer> loaded(const std::string& name) {
  std::unique_ptr<nn::Layer> layer = layers().at(name).make();
  layer->train(!name.ends_with("_eval"));
  for (const auto& [p, variable] : layer->named_parameters())
    variable.assign(laid_out(layers_file().tensor(name + "/p/" + p), variable));
  return layer;
}

Tensors inputs(const std::string& name) {
  Tensors in;
  while (layers_file().contains(name + "/in" + std::to_string(in.size())))
    in.push_back(layers_file().tensor(name + "/in" + std::to_string(in.size())));
  return in;
}

void check_layer(const std::string& name) {
  constexpr double kMost = 1e-10;
  const auto at = [&](const std::string& what) { return layers_file().tensor(name + "/" + what); };
  const std::unique_ptr<nn::Layer> layer = loaded(name);
  Tape tape;
  Tensors in = inputs(name), watched;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_float(in[i].dtype())) continue;
    in[i] = tape.watch(in[i]);
    watched.push_back(in[i]);
    names.push_back("in" + std::to_string(i));
  }
  const Tensor y = layers().at(name).call(*layer, in, name);
  BOOST_TEST(within(y, at("y"), kMost));
  for (const auto& p : layer->named_parameters()) names.push_back(p.name);
  const auto gradients = [&](const GradOf& of, const GradOptions& o) {
    Tensors g;
    if (!watched.empty()) g = tape.grad(std::span(&of, 1), {watched.data(), watched.size()}, o);
    for (const Tensor& t : tape.grad({of}, layer->parameters(), o)) g.push_back(t);
    return g;
  };
  const auto wanted = [&](const char* kind, std::size_t i) {
    const std::size_t inner = names.size() - layer->named_parameters().size();
    const Tensor t = at(kind + names[i]);
    return i < inner ? t : laid_out(t, layer->named_parameters()[i - inner].variable);
  };
  const Tensors g = gradients({y, at("cot")}, {.create_graph = true});
  Tensor total;
  for (std::size_t i = 0; i < names.size(); ++i) {
    BOOST_TEST(within(g[i], wanted("g/", i), kMost), "gradient of " << names[i]);
    const Tensor part = sum(g[i] * wanted("v/", i));
    total = total.defined() ? total + part : part;
  }
  Tensors h;
  if (total.tape_slot() == 0) {  // linear: no gradient depends on anything
    for (std::size_t i = 0; i < names.size(); ++i) h.push_back(zeros(wanted("h/", i).shape(), Dtype::f64));
  } else {
    h = gradients({total}, {.retain = true});
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    BOOST_TEST(within(h[i], wanted("h/", i), kMost), "double backward of " << names[i]);
}

bool add_layer_cases() {
  for (const auto& [name, one] : layers())
    boost::unit_test::framework::current_auto_test_suite().add(
        boost::unit_test::make_test_case([name = name] { check_layer(name); }, "torch_" + name, __FILE__, __LINE__));
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_golden)

const bool registered = golden::add_cases("attention.safetensors", functions()) && add_layer_cases();

BOOST_AUTO_TEST_CASE(every_case_of_the_fixtures_has_its_counterpart) {
  BOOST_TEST(registered);
  const auto names = [](const auto& table) {
    std::set<std::string> all;
    for (const auto& [name, one] : table) all.insert(name);
    return all;
  };
  BOOST_TEST(names(functions()) == golden::cases_of("attention.safetensors"), boost::test_tools::per_element());
  BOOST_TEST(names(layers()) == golden::cases_of("attention_layers.safetensors"), boost::test_tools::per_element());
}

/// The layer's parameters have the names that PyTorch gives them, and both have all of them.
BOOST_AUTO_TEST_CASE(names_are_those_of_pytorch) {
  for (const auto& [name, one] : layers()) {
    std::set<std::string> theirs, ours;
    for (const std::string_view n : layers_file().names())
      if (n.starts_with(name + "/p/")) theirs.insert(std::string(n.substr(name.size() + 3)));
    const std::unique_ptr<nn::Layer> layer = one.make();
    for (const auto& p : layer->named_parameters()) ours.insert(p.name);
    BOOST_TEST(theirs == ours, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(compiled_layers_and_copies_give_the_same_bits) {
  for (const auto& [name, one] : layers()) {
    const std::unique_ptr<nn::Layer> layer = loaded(name), other = layer->clone();
    const Tensors in = inputs(name);
    const Tensor y = one.call(*layer, in, name);
    const LayerCase& c = one;
    const std::string& n = name;
    const auto compiled = compile([&](const Tensors& x) { return Tensors{c.call(*layer, x, n)}; });
    BOOST_TEST(support::identical(compiled(in)[0], y), name);
    BOOST_TEST(support::identical(one.call(*other, in, name), y), name);
    BOOST_TEST(other->summary() == layer->summary());
  }
}

BOOST_AUTO_TEST_SUITE_END()
