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
  throw ShapeError("expects [B, T, D], the layer before it gives " + detail::text_of(in.spec));
}

}  // namespace

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
