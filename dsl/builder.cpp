/// The words of the builder, each of which adds a layer of inferred size.
#include "ferrite/dsl/builder.h"

#include "ferrite/dsl/detail/dry_run.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/per_step.h"

namespace ferrite::dsl {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

std::int64_t features_of(const Flow& in) {
  const std::optional<std::int64_t> features =
      in.spec.shape.size() < 2 ? std::nullopt : in.spec.shape.back().constant();
  if (!is_float(in.spec.dtype) || !features)
    throw ShapeError("expects features, the layer before it gives " + detail::text_of(in));
  return *features;
}

Flow flow_of(const Input& input, Dtype dtype) {
  switch (input.kind) {
    case InputKind::sequence: return {{{detail::batch(), detail::time(), input.size}, dtype}, 0};
    case InputKind::features: return {{{detail::batch(), input.size}, dtype}, 0};
    case InputKind::image: {
      SymbolicSpec spec{{detail::batch(), input.size}, dtype};
      for (const std::int64_t n : input.space) spec.shape.emplace_back(n);
      return {spec, 0};
    }
    case InputKind::tokens: break;
  }
  return {{{detail::batch(), detail::time()}, Dtype::i64}, input.size};
}

std::string label(std::size_t position, const std::string& kind, const std::string& name) {
  return "layer " + std::to_string(position) + " (" + kind + " \"" + name + "\"): ";
}

void check_part(const char* word, const Builder::Part& part) {
  if (!part) throw ValueError(std::string(word) + ": the part is empty");
}

/// What came in, for the end of an error; a nested chain has said it already.
std::string what_came(const std::string& message, std::size_t position, const Flow& in) {
  if (message.starts_with("layer ")) return {};
  return std::string(position ? "; the layer before it gives " : "; the input is ") + detail::shape_of(in);
}

/// What makes a recurrent layer of one kind, by make(features, init).
template <class Options, class Make>
auto batch_first_recurrent(const Options& options, Make make) {
  return [options, make](const Flow& in, const nn::Init& init) -> LayerPtr {
    if (!options.batch_first) throw ValueError("time-first input does not fit a chain, which is batch-first");
    std::unique_ptr<nn::Recurrent> layer = make(features_of(in), init);
    if (in.spec.shape.size() != 3)  // without a batch it would be a sequence: not in a chain
      throw ShapeError(layer->kind() + ": expects input [B, T, " + std::to_string(layer->input_size()) + "], got " +
                       detail::shape_of(in));
    return layer;
  };
}
template <class L, class Options>
auto recurrent_of(std::int64_t hidden_size, const Options& options) {
  return batch_first_recurrent(options, [=](std::int64_t features, const nn::Init& init) {
    return std::make_unique<L>(features, hidden_size, options, init);
  });
}

Builder checked(InputKind kind, const char* word, std::int64_t size) {
  if (size < 1) throw ValueError(std::string(word) + ": the size must be positive, got " + std::to_string(size));
  return Builder({kind, size});
}

Builder on_space(const char* word, std::int64_t channels, const Shape& space) {
  for (const std::int64_t n : space)
    if (n < 1 || channels < 1)
      throw ValueError(std::string(word) + ": sizes must be positive, got " + std::to_string(channels) +
                       " channels of " + space.str());
  return Builder({InputKind::image, channels, space});
}

}  // namespace

Builder sequence(std::int64_t features) { return checked(InputKind::sequence, "sequence", features); }
Builder features(std::int64_t n) { return checked(InputKind::features, "features", n); }
Builder tokens(std::int64_t vocabulary) { return checked(InputKind::tokens, "tokens", vocabulary); }
Builder image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return on_space("image", channels, {height, width});
}
Builder volume(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width) {
  return on_space("volume", channels, {depth, height, width});
}

Builder& Builder::word(std::string kind, std::string name, Make make) {
  words_.push_back({std::move(kind), std::move(name), std::move(make)});
  return *this;
}

Builder& Builder::linear(std::int64_t n, std::string name) {
  return word("linear", std::move(name), [n](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::Linear>(features_of(in), n, init);
  });
}

Builder& Builder::causal_conv1d(std::int64_t out_channels, std::int64_t kernel_size,
                                const nn::CausalConv1dOptions& options, std::string name) {
  if (options.in_channels != 0 || options.out_channels != 0 || options.kernel_size != 0)
    throw ValueError("causal_conv1d: the options give sizes, " + std::to_string(options.in_channels) + " to " +
                     std::to_string(options.out_channels) + " channels and kernel_size " +
                     std::to_string(options.kernel_size) + "; give the word the last two, it infers the first");
  return word("causal_conv1d", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::CausalConv1dOptions all = options;
    all.in_channels = features_of(in);
    all.out_channels = out_channels;
    all.kernel_size = kernel_size;
    return std::make_unique<nn::CausalConv1d>(all, init);
  });
}

Builder& Builder::gru(std::int64_t hidden_size, const nn::GruOptions& options, std::string name) {
  return word("gru", std::move(name), recurrent_of<nn::Gru>(hidden_size, options));
}

Builder& Builder::lstm(std::int64_t hidden_size, const nn::LstmOptions& options, std::string name) {
  return word("lstm", std::move(name), recurrent_of<nn::Lstm>(hidden_size, options));
}

Builder& Builder::rnn(std::int64_t hidden_size, const nn::RnnOptions& options, std::string name) {
  return word("rnn", std::move(name), recurrent_of<nn::Rnn>(hidden_size, options));
}

Builder& Builder::recurrent(nn::Custom::Make cell, std::int64_t hidden_size, const nn::CustomOptions& options,
                            std::string name) {
  return word("recurrent", std::move(name),
              batch_first_recurrent(options, [=, cell = std::move(cell)](std::int64_t features, const nn::Init& init) {
                return std::make_unique<nn::Custom>(cell, features, hidden_size, options, init);
              }));
}

Builder& Builder::standardize(const nn::StandardizeOptions& options, std::string name) {
  if (options.features != 0)
    throw ValueError("standardize: the options give features, " + std::to_string(options.features) +
                     ", which the word infers");
  return word("standardize", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::StandardizeOptions all = options;
    all.features = features_of(in);
    return std::make_unique<nn::Standardize>(all, init);
  });
}

Builder& Builder::per_step(std::string name, std::function<Tensor(const Tensor&)> f) {
  const nn::PerStepOptions given{.name = name, .function = std::move(f)};
  (void)nn::PerStep(given);
  return word("per_step", std::move(name), [given](const Flow& in, const nn::Init&) -> LayerPtr {
    nn::PerStepOptions all = given;
    all.features = features_of(in);
    all.dtype = in.spec.dtype;
    auto layer = std::make_unique<nn::PerStep>(all);
    layer->check_promise();
    return layer;
  });
}

Builder& Builder::layer_norm(std::string name) {
  return word("layer_norm", std::move(name), [](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::LayerNorm>(features_of(in), init);
  });
}

Builder& Builder::dropout(double probability, std::string name) {
  return word("dropout", std::move(name), [probability](const Flow&, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::Dropout>(probability, init);
  });
}

Builder& Builder::last_step(std::string name) { return add(std::make_unique<nn::LastStep>(), std::move(name)); }
Builder& Builder::mean_over_time(std::string name) {
  return add(std::make_unique<nn::MeanOverTime>(), std::move(name));
}
Builder& Builder::flatten(std::string name) { return add(std::make_unique<nn::Flatten>(), std::move(name)); }

Builder& Builder::activation(const std::string& kind, std::string name) {
  const nn::Activation::Function f = nn::activation(kind);
  if (!f) {
    std::string known;
    for (const std::string& n : nn::activation_names()) known += (known.empty() ? "" : ", ") + n;
    throw ValueError("activation: '" + kind + "' is unknown; known are " + known);
  }
  return add(std::make_unique<nn::Activation>(kind, f), std::move(name));
}

Builder& Builder::stage(std::string name, const Part& part) {
  check_part("stage", part);
  Builder inner(input_);
  part(inner);
  return word("stage", std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto chain = std::make_unique<nn::Sequential>();
    inner.build_into(*chain, in, init, nullptr);
    return chain;
  });
}

Builder& Builder::residual(const Part& part, std::string name) {
  check_part("residual", part);
  Builder inner(input_);
  part(inner);
  return word("residual", std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto chain = std::make_unique<nn::Residual>();
    inner.build_into(*chain, in, init, nullptr);
    return chain;
  });
}

Builder::Make Builder::only_word(const char* kind, const Part& part, const Input& input) {
  check_part(kind, part);
  Builder inner(input);
  part(inner);
  if (inner.words_.size() != 1)
    throw ValueError(std::string(kind) + ": takes the part of one word, got " + std::to_string(inner.words_.size()));
  return [make = inner.words_[0].make](const Flow& in, const nn::Init& init) {
    return make(in, {.seed = {}, .prefix = {}, .dtype = init.dtype});
  };
}

Builder& Builder::weight_norm(const Part& part, const nn::WeightNormOptions& options, std::string name) {
  const Make make = only_word("weight_norm", part, input_);
  return word("weight_norm", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto layer = std::make_unique<nn::WeightNorm>(make(in, init), options);
    if (init.seed) layer->draw(init);
    return layer;
  });
}

Builder& Builder::spectral_norm(const Part& part, const nn::SpectralNormOptions& options, std::string name) {
  const Make make = only_word("spectral_norm", part, input_);
  return word("spectral_norm", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto layer = std::make_unique<nn::SpectralNorm>(make(in, init), options);
    if (init.seed) layer->draw(init);
    return layer;
  });
}

template <class Branches>
Builder& Builder::branches(const char* kind, const std::vector<Part>& parts, std::string name) {
  if (parts.empty()) throw ValueError(std::string(kind) + ": there are no parts");
  std::vector<Builder> inner;
  for (const Part& part : parts) {
    check_part(kind, part);
    part(inner.emplace_back(input_));
  }
  return word(kind, std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto all = std::make_unique<Branches>();
    for (std::size_t i = 0; i < inner.size(); ++i) {
      auto chain = std::make_unique<nn::Sequential>();
      inner[i].build_into(*chain, in, init.child(std::to_string(i)), nullptr);
      all->add(std::to_string(i), std::move(chain));
    }
    return all;
  });
}

Builder& Builder::parallel(const std::vector<Part>& parts, std::string name) {
  return branches<nn::Parallel>("parallel", parts, std::move(name));
}

Builder& Builder::concat(const std::vector<Part>& parts, std::string name) {
  return branches<nn::Concat>("concat", parts, std::move(name));
}

Builder& Builder::unflatten(const Sizes& sizes, std::string name) {
  return add(std::make_unique<nn::Unflatten>(nn::UnflattenOptions{.axis = 1, .sizes = sizes.numbers}), std::move(name));
}

Builder& Builder::repeat(int n, const Part& part) {
  check_part("repeat", part);
  if (n < 0) throw ValueError("repeat: the count must not be negative, got " + std::to_string(n));
  for (int i = 0; i < n; ++i) part(*this);
  return *this;
}

Builder& Builder::add(std::unique_ptr<nn::Layer> layer, std::string name) {
  if (!layer) throw ValueError("add: the layer is null");
  std::string kind = layer->kind();
  const std::shared_ptr<const nn::Layer> original = std::move(layer);
  return word(std::move(kind), std::move(name), [original](const Flow&, const nn::Init& init) {
    std::unique_ptr<nn::Layer> copy = original->clone();
    if (init.seed) copy->draw(init);
    return copy;
  });
}

void Builder::build_into(nn::Sequential& chain, Flow flow, const nn::Init& init, std::vector<SummaryRow>* rows) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const Word& w = words_[i];
    const std::string name = w.name.empty() ? std::to_string(i) : w.name;
    const auto wrapped = [&](const std::exception& e) { return label(i, w.kind, name) + e.what(); };
    try {
      std::unique_ptr<nn::Layer> layer = w.make(flow, init.child(name));
      const Flow output = detail::dry_run(*layer, flow, w.kind);
      if (rows)
        rows->push_back({name, layer->kind(), detail::shape_of(output), layer->parameter_count(),
                         detail::multiply_adds(*layer, flow, output)});
      flow = output;
      chain.add(name, std::move(layer));
    } catch (const ShapeError& e) {
      throw ShapeError(wrapped(e) + what_came(e.what(), i, flow));
    } catch (const DtypeError& e) {
      throw DtypeError(wrapped(e));
    } catch (const TraceError& e) {
      throw TraceError(wrapped(e));
    } catch (const ValueError& e) {
      throw ValueError(wrapped(e));
    }
  }
}

Network Builder::build(std::optional<std::uint64_t> seed, Dtype dtype) const {
  if (words_.empty()) throw ValueError("build: the network has no layers");
  Network net(input_, {});
  std::vector<SummaryRow> rows;
  build_into(net, flow_of(input_, dtype), {seed, {}, dtype}, &rows);
  net.rows_ = std::move(rows);
  return net;
}

}  // namespace ferrite::dsl
