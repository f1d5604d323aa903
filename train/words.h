#pragma once
/// Networks described in words, as the command line and files of nets have them.
#include <string>

#include "ferrite/dsl/builder.h"

namespace ferrite::train {

/// Parses the builder's words as a text: "sequence(12).gru(64).last_step().linear(9)". The first word is sequence,
/// features, tokens or image (channels, height, width); then come linear, embedding, gru, lstm, rnn (units, and number
/// of layers: gru(64, 2)), min_gru, min_lstm, lru, mamba, causal_conv1d (channels, kernel, dilation), conv2d (channels,
/// kernel, padding), max_pool2d, batch_norm, layer_norm, standardize, dropout, last_step, mean_over_time, flatten and
/// the activations. Throws ValueError, naming the word, for an unknown word or wrong numbers.
dsl::Builder parse_words(const std::string& text);

}  // namespace ferrite::train
