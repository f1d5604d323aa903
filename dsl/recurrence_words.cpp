/// The words of the builder for recurrences without a product in their loop.
#include "ferrite/dsl/builder.h"
#include "ferrite/dsl/detail/dry_run.h"

namespace ferrite::dsl {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

/// Features of the steps of a sequence. Throws ShapeError for anything else.
std::int64_t features_of_steps(const Flow& in) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (shape.size() == 3 && is_float(in.spec.dtype))
    if (const std::optional<std::int64_t> n = shape[2].constant()) return *n;
  throw ShapeError("expects [B, T, D], the layer before it gives " + detail::text_of(in));
}

/// A layer of two sizes, the first of which is what comes in.
template <class L, class Options>
auto sized(std::int64_t hidden_size, const Options& options) {
  return [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<L>(features_of_steps(in), hidden_size, options, init);
  };
}

/// A layer over sequences of embedding_dim features, as many as come in.
template <class L, class Options>
auto as_wide(const char* word, const Options& options) {
  if (options.embedding_dim != 0)
    throw ValueError(std::string(word) + ": the options give embedding_dim " + std::to_string(options.embedding_dim) +
                     ", which the word infers");
  return [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    Options all = options;
    all.embedding_dim = features_of_steps(in);
    return std::make_unique<L>(all, init);
  };
}

}  // namespace

Builder& Builder::min_gru(std::int64_t hidden_size, const nn::MinGruOptions& options, std::string name) {
  return word("min_gru", std::move(name), sized<nn::MinGru>(hidden_size, options));
}

Builder& Builder::min_lstm(std::int64_t hidden_size, const nn::MinLstmOptions& options, std::string name) {
  return word("min_lstm", std::move(name), sized<nn::MinLstm>(hidden_size, options));
}

Builder& Builder::lru(std::int64_t state_size, const nn::LruOptions& options, std::string name) {
  return word("lru", std::move(name), sized<nn::Lru>(state_size, options));
}

Builder& Builder::s5(std::int64_t state_size, const nn::S5Options& options, std::string name) {
  return word("s5", std::move(name), sized<nn::S5>(state_size, options));
}

Builder& Builder::rg_lru(std::int64_t heads, std::string name) {
  return word("rg_lru", std::move(name), [heads](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::RgLru>(nn::RgLruOptions{features_of_steps(in), heads}, init);
  });
}

Builder& Builder::mlstm(const nn::MLstmOptions& options, std::string name) {
  return word("mlstm", std::move(name), as_wide<nn::MLstm>("mlstm", options));
}

Builder& Builder::slstm(const nn::SLstmOptions& options, std::string name) {
  return word("slstm", std::move(name), as_wide<nn::SLstm>("slstm", options));
}

Builder& Builder::mamba(const nn::MambaOptions& options, std::string name) {
  if (options.features != 0)
    throw ValueError("mamba: the options give features " + std::to_string(options.features) +
                     ", which the word infers");
  return word("mamba", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::MambaOptions all = options;
    all.features = features_of_steps(in);
    return std::make_unique<nn::Mamba>(all, init);
  });
}

}  // namespace ferrite::dsl
