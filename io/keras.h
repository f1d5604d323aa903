#pragma once
/// Weights in Keras's layout.
#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// Converts weights from Keras's names and layout to PyTorch's. For each prefix, `kernel`, `recurrent_kernel` and
/// `bias` of a GRU, LSTM or SimpleRNN become weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0; `kernel` and `bias`
/// of a Dense layer become weight and bias, `embeddings` of an Embedding becomes weight. All other names stay. The
/// gates of a GRU, z, r, h in the file, are reordered to r, z, n; a bias [2, 3H] belongs to reset_after=True, one of
/// [3H] to GruOptions::reset_after = false; an LSTM's gates already have PyTorch's order. Of `<name>.forward_layer` and
/// `<name>.backward_layer`, the two layers of a Bidirectional, the second one's names end with _l0_reverse. A
/// running_var without num_batches_tracked gets one of 0. Numbers that decide what a layer computes
/// (nn::Module::settings) are kept, so that io::load refuses a net that was built with others; a GRU has `reset_after`,
/// 1 or 0, where the file or the shape of the bias determines it.
/// scripts/keras_weights.py writes such files from .keras and .weights.h5. Throws IoError when shapes do not fit.
///
///   io::load(net, io::from_keras(io::read_safetensors("keras.safetensors")));
TensorFile from_keras(const TensorFile& file);

}  // namespace ferrite::io
