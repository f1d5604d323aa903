/// The words of the builder for sequences as transformers read them.
#include "ferrite/dsl/builder.h"
#include "ferrite/dsl/detail/dry_run.h"

namespace ferrite::dsl {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

/// The features of the steps of a sequence [B, T, D].
std::int64_t step_features_of(const Flow& in) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (is_float(in.spec.dtype) && shape.size() == 3)
    if (const std::optional<std::int64_t> n = shape[2].constant()) return *n;
  throw ShapeError("expects [B, T, D], the layer before it gives " + detail::text_of(in));
}

std::int64_t vocabulary_of(const Flow& in) {
  if (in.vocabulary < 1)
    throw ShapeError("expects tokens, the layer before it gives " + detail::text_of(in) +
                     "; start with dsl::tokens(vocabulary)");
  return in.vocabulary;
}

}  // namespace

Builder& Builder::embedding(std::int64_t features, const nn::EmbeddingOptions& options, std::string name) {
  if (options.vocabulary != 1 || options.features != 1)
    throw ValueError("embedding: the options give sizes, which the word infers and gives");
  return word("embedding", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::EmbeddingOptions all = options;
    all.vocabulary = vocabulary_of(in);
    all.features = features;
    return std::make_unique<nn::Embedding>(all, init);
  });
}

Builder& Builder::embedding_bag(std::int64_t features, const nn::EmbeddingBagOptions& options, std::string name) {
  if (options.vocabulary != 0 || options.features != 0)
    throw ValueError("embedding_bag: the options give sizes, which the word infers and gives");
  return word("embedding_bag", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::EmbeddingBagOptions all = options;
    all.vocabulary = vocabulary_of(in);
    all.features = features;
    return std::make_unique<nn::EmbeddingBag>(all, init);
  });
}

Builder& Builder::positions(std::string name) {
  return word("positions", std::move(name), [](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::SinusoidalPositions>(nn::SinusoidalPositionsOptions{.features = step_features_of(in)},
                                                     init);
  });
}

Builder& Builder::positions(std::int64_t learned, std::string name) {
  return word("positions", std::move(name), [learned](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::LearnedPositions>(
        nn::LearnedPositionsOptions{.features = step_features_of(in), .capacity = learned}, init);
  });
}

Builder& Builder::transformer(std::int64_t heads, const nn::TransformerLayerOptions& options, std::string name) {
  if (options.d_model != 0 || options.nhead != 1)
    throw ValueError("transformer: the options give d_model or nhead, which the word infers and gives");
  return word("transformer", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::TransformerLayerOptions all = options;
    all.d_model = step_features_of(in);
    all.nhead = heads;
    return std::make_unique<nn::TransformerEncoderLayer>(all, init);
  });
}

Builder& Builder::attention(std::int64_t heads, const nn::MultiheadAttentionOptions& options, std::string name) {
  if (options.embed_dim != 0 || options.num_heads != 1)
    throw ValueError("attention: the options give embed_dim or num_heads, which the word infers and gives");
  return word("attention", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::MultiheadAttentionOptions all = options;
    all.embed_dim = step_features_of(in);
    all.num_heads = heads;
    return std::make_unique<nn::MultiheadAttention>(all, init);
  });
}

}  // namespace ferrite::dsl
