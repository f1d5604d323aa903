#pragma once
/// ONNX models, step by step.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/program_stream.h"

namespace ferrite::onnx {

/// How a model over time is read as a step.
struct StreamOptions {
  /// The name of the dimension that is time, as the file has it in the shapes of its inputs: "S". Empty: a call of the
  /// model is a step, and its inputs and outputs have no axis of time.
  std::string time{};
  /// Extents of other dimensions that have names: {{"batch", 1}}.
  std::map<std::string, std::int64_t> extents{};
  /// Shapes of inputs in one step, where the file does not say them; an axis of time has extent 1.
  std::map<std::string, Shape> steps{};
  /// Axes of time of inputs, where the file does not name them.
  std::map<std::string, int> time_axes{};
  /// Pairs (input, output) of the model that are a state: the step takes what the step before gave, at first zeros.
  std::vector<std::pair<std::string, std::string>> states{};
  /// Compares two sequences with the whole model, bit by bit, when the stream is made.
  bool verify = true;
};

/// A causal model run step by step, with states that are found by analysis (exchange::ProgramStream) and those that the
/// model has as inputs and outputs. A step allocates nothing and has the bits of the whole.
///
///   const onnx::Model encoder = onnx::read("enc.onnx");
///   onnx::Stream s(encoder, {.time = "S"});
///   std::ranges::copy(erb, s.input("feat_erb").begin());
///   std::ranges::copy(spectrum, s.input("feat_spec").begin());
///   s.step();
///   use(s.output("emb"));
class Stream {
 public:
  /// Throws ValueError that names the node that looks ahead, sums over time, strides or is not known to be causal; for
  /// names that the model does not have, and for an input whose step has an extent that neither file nor options say.
  Stream(const Model& model, const StreamOptions& options);

  /// What the next step reads, by the input's name, row-major. Throws ValueError for a name that is none of the inputs
  /// or a state's, DtypeError for another type.
  template <class T = float>
  std::span<T> input(std::string_view name) {
    return program_.input<T>(place(inputs_, name, "input"));
  }
  /// What the last step gave.
  template <class T = float>
  std::span<const T> output(std::string_view name) const {
    return program_.output<T>(place(outputs_, name, "output"));
  }
  const Spec& input_spec(std::string_view name) const { return program_.input_spec(place(inputs_, name, "input")); }
  const Spec& output_spec(std::string_view name) const { return program_.output_spec(place(outputs_, name, "output")); }

  void step() { program_.step(); }
  /// Begins a new sequence.
  void reset() { program_.reset(); }
  /// An independent stream with equal weights and states.
  Stream clone() const { return Stream(inputs_, outputs_, program_.clone()); }
  /// The states, in the order of `report()`, for a later `restore` in this stream or another one of the model.
  std::vector<Tensor> save() const { return program_.save(); }
  /// Throws ValueError for another number of states, ShapeError for other types; nothing has changed then.
  void restore(std::span<const Tensor> states) { program_.restore(states); }
  /// Takes the present values of the model's parameters; the states stay.
  void refresh() { program_.refresh(); }
  /// The states in words.
  std::string report() const { return program_.report(); }
  std::int64_t state_bytes() const { return program_.state_bytes(); }

 private:
  Stream(std::vector<std::string> inputs, std::vector<std::string> outputs, exchange::ProgramStream program)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), program_(std::move(program)) {}
  static std::size_t place(const std::vector<std::string>& names, std::string_view name, const char* what);

  std::vector<std::string> inputs_, outputs_;
  exchange::ProgramStream program_;
};

}  // namespace ferrite::onnx
