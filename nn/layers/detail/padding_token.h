#pragma once
/// The padding token in tables of tokens.
#include <optional>
#include <string>

#include "ferrite/nn/init.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

/// Returns the index of a token that may count from the end of the vocabulary.
inline std::int64_t token_of(std::int64_t token, std::int64_t vocabulary) {
  return token < 0 ? token + vocabulary : token;
}

/// Returns a fill of N(0, 1) with 0 in the row of the padding token. Throws ValueError, beginning with `who`, for a
/// token outside the vocabulary.
inline Fill rows_of_normal(const char* who, std::int64_t vocabulary, std::optional<std::int64_t> padding) {
  const Fill normal = init::normal(0, 1);
  if (!padding) return normal;
  if (*padding < -vocabulary || *padding >= vocabulary)
    throw ValueError(std::string(who) + ": padding_idx " + std::to_string(*padding) + " is no token of " +
                     std::to_string(vocabulary));
  return [normal, row = token_of(*padding, vocabulary)](const Shape& shape, const RandomKey& key, Dtype dtype) {
    return where(eq(reshape(arange(shape[0]), {-1, 1}), row), 0, normal(shape, key, dtype));
  };
}

}  // namespace ferrite::nn::detail
