#pragma once
/// Weights in Keras's layout.
#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// Weights under Keras's names and in its layout as PyTorch's: for each prefix, `kernel`, `recurrent_kernel` and `bias`
/// of a GRU, LSTM or SimpleRNN become weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0; `kernel` and `bias` of a
/// Dense layer become weight and bias, `embeddings` of an Embedding weight. What else is there keeps its name. A GRU's
/// gates come in the order z, r, h and leave as r, z, n; a bias [2, 3H] is that of reset_after=True, one of [3H]
/// belongs to GruOptions::reset_after = false; an LSTM's gates have our order. Of layers
/// `<name>.forward_layer` and `<name>.backward_layer`, a Bidirectional's, the second one's names end with _l0_reverse.
/// Beside a running_var without num_batches_tracked there is one of 0. Numbers that decide what a layer computes
/// (nn::Module::settings) are kept, so that io::load refuses a net that was built with others, and a GRU has
/// `reset_after`, 1 or 0, where the file or the bias tells it.
/// scripts/keras_weights.py writes such files from .keras and .weights.h5. Throws IoError when shapes do not fit.
///
///   io::load(net, io::from_keras(io::read_safetensors("keras.safetensors")));
TensorFile from_keras(const TensorFile& file);

}  // namespace ferrite::io
