#pragma once
/// Running ONNX models step by step.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/program_stream.h"

namespace ferrite::onnx {

/// Options of a Stream: which axes and inputs of a model over whole sequences are time and states.
struct StreamOptions {
  /// Name of the time dimension in the shapes of the file's inputs: "S". If empty, a call of the model is a step, and
  /// its inputs and outputs have no time axis.
  std::string time{};
  /// Extents of other dimensions that have names: {{"batch", 1}}.
  std::map<std::string, std::int64_t> extents{};
  /// Shapes of inputs in one step, where the file does not give them; a time axis has extent 1.
  std::map<std::string, Shape> steps{};
  /// Time axes of inputs, where the file does not name them.
  std::map<std::string, int> time_axes{};
  /// Pairs (input, output) of the model that are a state: each step takes as that input the output of the step before,
  /// the first one zeros.
  std::vector<std::pair<std::string, std::string>> states{};
  /// Compares two sequences of the stream with the whole model, bit by bit, when the stream is made; throws
  /// Error where they differ.
  bool verify = true;
};

/// A causal model run step by step, with states that are found by analysis (exchange::ProgramStream) and those that the
/// model has as inputs and outputs. A step allocates nothing and gives bit for bit what the whole model gives.
///
///   const onnx::Model encoder = onnx::read("enc.onnx");
///   onnx::Stream s(encoder, {.time = "S"});
///   std::ranges::copy(erb, s.input("feat_erb").begin());
///   std::ranges::copy(spectrum, s.input("feat_spec").begin());
///   s.step();
///   use(s.output("emb"));
class Stream {
 public:
  /// Makes a stream of a model. Throws ValueError that names the node that looks ahead, sums over time, strides or is
  /// not known to be causal; for names that the model does not have, and for an input whose step has an extent that
  /// neither the file nor the options give.
  Stream(const Model& model, const StreamOptions& options);

  /// Returns the row-major elements of an input, for the caller to fill before the next step. Throws ValueError for a
  /// name that is not an input or is a state, DtypeError for another type.
  template <class T = float>
  std::span<T> input(std::string_view name) {
    return program_.input<T>(place(inputs_, name, "input"));
  }
  /// Returns the row-major elements of an output of the last step, valid until the next one. Throws ValueError for an
  /// unknown name, DtypeError for another type.
  template <class T = float>
  std::span<const T> output(std::string_view name) const {
    return program_.output<T>(place(outputs_, name, "output"));
  }
  /// Returns the shape and dtype of an input for one step; a time axis has extent 1.
  const Spec& input_spec(std::string_view name) const { return program_.input_spec(place(inputs_, name, "input")); }
  /// Returns the shape and dtype of an output of one step; a time axis has extent 1.
  const Spec& output_spec(std::string_view name) const { return program_.output_spec(place(outputs_, name, "output")); }

  /// Runs one step. It allocates nothing, takes no lock and makes no system call; if it throws, no state has changed.
  void step() { program_.step(); }
  /// Starts a new sequence: the states get their initial values.
  void reset() { program_.reset(); }
  /// Returns an independent stream with equal weights and states.
  Stream clone() const { return Stream(inputs_, outputs_, program_.clone()); }
  /// Returns the states, in the order of `report()`, for `restore` in this stream or another one of the model.
  std::vector<Tensor> save() const { return program_.save(); }
  /// Restores saved states. Throws ValueError for another number of states, ShapeError for other types, without change.
  void restore(std::span<const Tensor> states) { program_.restore(states); }
  /// Copies the present values of the model's parameters into the stream; the states stay.
  void refresh() { program_.refresh(); }
  /// Returns a text with a line for each state: the operation that it belongs to, what it holds ("2 frames of its
  /// window") and its type; or the input that gets an output of the step before, and its type.
  std::string report() const { return program_.report(); }
  /// Returns the size of all states, in bytes.
  std::int64_t state_bytes() const { return program_.state_bytes(); }

 private:
  Stream(std::vector<std::string> inputs, std::vector<std::string> outputs, exchange::ProgramStream program)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), program_(std::move(program)) {}
  static std::size_t place(const std::vector<std::string>& names, std::string_view name, const char* what);

  std::vector<std::string> inputs_, outputs_;
  exchange::ProgramStream program_;
};

/// Writes a step of a model as C (exchange/freeze.h), with the states of its stream; `options.inputs` and `outputs` are
/// the model's names. Throws what Stream throws, and ExportError for an operation without a form in C.
exchange::FrozenNet freeze(const Model& model, const StreamOptions& stream, exchange::FreezeOptions options = {});

}  // namespace ferrite::onnx
