#pragma once
/// RTNeural's JSON files of networks.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "ferrite/nn/layers/sequential.h"

/// RTNeural's JSON: layers with their weights in Keras's layout. Its other form, a state_dict as nested lists, is read
/// with io/json_weights.h.
namespace ferrite::io {

/// A chain that computes what RTNeural computes: dense and time-distributed-dense, gru (reset_after), lstm, activation;
/// an activation of a dense layer is a layer of its own behind it. Layers are named by position. Throws IoError, its
/// message beginning with `where`, for what is not such a file, another type of layer or activation, shapes that do
/// not fit.
std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where = "rtneural");
std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path);

/// The same for a chain of Linear, Gru, Lstm and activations (tanh, relu, sigmoid, softmax), f32. Layers of a deep GRU
/// or LSTM become one each; an LSTM's two biases become their sum. Throws IoError for what RTNeural does not have:
/// other layers, two directions, a projection, a reset before the product, other activations, a recurrent layer without
/// bias.
std::string serialize_rtneural(const nn::Sequential& net);
void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path);

}  // namespace ferrite::io
