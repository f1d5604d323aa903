#pragma once
/// The operations of ONNX that are imported: one table, made of families that stand in files of their own under
/// exchange/onnx/operations/.
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "ferrite/exchange/onnx/call.h"

namespace ferrite::onnx::detail {

/// An operation, or one of its versions where these differ so much that each has a function of its own. Most functions
/// serve all versions and ask `call.version()`.
struct Operation {
  std::string_view name;  ///< "Gemm"
  /// Gives a value for each output that the node may have; undefined ones where it does not want them, fewer than it
  /// has is refused. A composition of Ferrite's operations: it runs eagerly, under a tape and while it is traced.
  Values (*lower)(const Call& call) = nullptr;
  /// Bit i: the numbers of input i have to be known while a program is traced, since they decide on shapes or the like.
  /// Initialisers that lead there by way of constants and extents alone are folded.
  std::uint32_t static_inputs = 0;
  /// The versions of its domain that this row is for.
  std::int64_t since = 1;
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
  std::string_view domain{};  ///< empty: ai.onnx
  bool draws = false;         ///< gives something else in each call (random numbers): never folded
  bool quoted = false;        ///< computes with the numbers of integers: no gradient reaches an operand
  /// Bit i: input i is a running statistic, which never trains.
  std::uint32_t statistics = 0;
};
using Operations = std::span<const Operation>;

/// Identity, Constant, Shape, Add, Sub, Mul, Div, MatMul, Gemm, Relu, Sigmoid, Tanh, Reshape, Transpose, Concat.
Operations core_operations();
/// Other arithmetic, comparisons, logic, functions, activations, casts.
Operations elementwise_operations();
/// Movement of data, and values that are made of shapes.
Operations shape_operations();
/// Reductions, softmax, orders, einsum.
Operations reduction_operations();
/// Convolutions, normalisation.
Operations window_operations();
/// Pooling.
Operations pooling_operations();
/// Scatter, GatherND, Compress, Unique, ReverseSequence.
Operations indexing_operations();
/// BatchNormalization, LRN, Dropout, Det, SwiGLU.
Operations network_operations();
/// Resize, Upsample.
Operations resampling_operations();
/// Losses, quantisation, shifts.
Operations loss_operations();
/// Attention, LinearAttention, RotaryEmbedding, CausalConvWithState.
Operations attention_operations();
/// MatMulInteger, QLinearMatMul, DynamicQuantizeLinear.
Operations quantised_operations();
/// QLinearAdd, QGemm, DynamicQuantizeLSTM and others of com.microsoft.
Operations contributed_operations();
/// GridSample, AffineGrid, Col2Im, CenterCropPad.
Operations sampling_operations();
/// Windows, DFT, STFT, MelWeightMatrix.
Operations signal_operations();
/// Adagrad, Adam, Momentum.
Operations training_operations();
/// GRU, LSTM, RNN.
Operations recurrent_operations();
/// If, Loop, Scan.
Operations control_operations();

/// The row for an operation; null: there is none. `versions`, if given, receives whether another version is there.
const Operation* find_operation(std::string_view domain, std::string_view name, std::int64_t version,
                                bool* other_version = nullptr);
/// All families.
std::span<const Operations> all_operations();

}  // namespace ferrite::onnx::detail
