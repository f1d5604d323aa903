#pragma once
/// The table of supported ONNX operations, made of families in separate files under exchange/onnx/operations/.
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "ferrite/exchange/onnx/call.h"

namespace ferrite::onnx::detail {

/// An operation of ONNX, or some of its versions where these differ so much that each has its own function. Most
/// functions serve all versions and ask `call.version()`.
struct Operation {
  std::string_view name;  ///< name in ONNX, "Gemm"
  /// Returns a value for each output that the node may have, undefined ones where it does not want them; fewer than it
  /// has is refused. A composition of Ferrite's operations: it runs eagerly, under a tape and during tracing.
  Values (*lower)(const Call& call) = nullptr;
  /// Bit i says that the numbers of input i have to be known while a program is traced, since they decide on shapes or
  /// the like. Initialisers that reach it through constants and extents alone are folded.
  std::uint32_t static_inputs = 0;
  /// The first and last versions of the domain that this row is for.
  std::int64_t since = 1;
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
  std::string_view domain{};  ///< domain; empty for ai.onnx
  bool draws = false;         ///< whether results differ between calls (random numbers), so that it is never folded
  bool quoted = false;        ///< whether it computes with the numbers of integers, so that no gradient passes
  /// Bit i says that input i is a running statistic, which never trains.
  std::uint32_t statistics = 0;
};
/// Rows of the table; each family of operations is a function that returns its rows.
using Operations = std::span<const Operation>;

/// Returns Identity, Constant, Shape, Add, Sub, Mul, Div, MatMul, Gemm, Relu, Sigmoid, Tanh, Reshape, Transpose and
/// Concat.
Operations core_operations();
/// Returns other arithmetic, comparisons, logic, functions, activations, casts.
Operations elementwise_operations();
/// Returns operations that move data or make values from shapes.
Operations shape_operations();
/// Returns reductions, softmax, sorting operations, einsum.
Operations reduction_operations();
/// Returns convolutions and normalisations.
Operations window_operations();
/// Returns pooling operations, local and global.
Operations pooling_operations();
/// Returns Scatter, GatherND, Compress, Unique, ReverseSequence.
Operations indexing_operations();
/// Returns BatchNormalization, LRN, Dropout, Det, SwiGLU.
Operations network_operations();
/// Returns Resize and Upsample.
Operations resampling_operations();
/// Returns losses, quantisation and shifts.
Operations loss_operations();
/// Returns Attention, LinearAttention, RotaryEmbedding, CausalConvWithState.
Operations attention_operations();
/// Returns MatMulInteger, QLinearMatMul, DynamicQuantizeLinear.
Operations quantised_operations();
/// Returns the rows of the importer's table for QLinearAdd, QGemm, DynamicQuantizeLSTM and others of com.microsoft.
Operations contributed_operations();
/// Returns GridSample, AffineGrid, Col2Im, CenterCropPad.
Operations sampling_operations();
/// Returns window functions, DFT, STFT, MelWeightMatrix.
Operations signal_operations();
/// Returns Adagrad, Adam, Momentum.
Operations training_operations();
/// Returns GRU, LSTM, RNN.
Operations recurrent_operations();
/// Returns If, Loop, Scan.
Operations control_operations();

/// Returns the row for a version of an operation, or null. `other_version`, if given, receives whether there is a row
/// for any version.
const Operation* find_operation(std::string_view domain, std::string_view name, std::int64_t version,
                                bool* other_version = nullptr);
/// Returns all families of operations.
std::span<const Operations> all_operations();

}  // namespace ferrite::onnx::detail
