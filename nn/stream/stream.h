#pragma once
/// Streams: networks that run one time step at a time.
#include <algorithm>
#include <iosfwd>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::nn {

/// A report of how one layer of a stream runs.
struct LayerReport {
  std::string layer;     ///< path of the layer, "encoder.0"
  std::string kind;      ///< kind of the layer, "gru"
  std::string runs;      ///< "kernel", written for the layer; "program", planned and fused; "tensors", like any call
  std::int64_t at_once;  ///< maximum number of steps that the layer computes in one go, in calls of `steps`
  std::int64_t bytes;    ///< size of the layer's states, in bytes
  std::string why;       ///< why the layer takes one step at a time, or runs on tensors; else empty
};

/// A report of how a stream runs, layer by layer, in order. Layers that do nothing in a stream, such as dropout, are
/// not listed. Operations between layers, such as the sum of a residual, are listed under the layer that contains them.
/// An activation or a sum that is computed with the product before it is a part of that product.
struct StreamReport {
  std::vector<LayerReport> layers{};
  std::int64_t at_once = 1;  ///< number of steps that go through all layers together, in calls of `steps`
  std::int64_t bytes = 0;    ///< size of all states, in bytes

  /// Returns the report as a text table with a line for each layer.
  std::string str() const;
};
std::ostream& operator<<(std::ostream& out, const StreamReport& report);

/// Runs a causal layer or network, or one that looks a few steps ahead, step by step on data as it comes: audio,
/// sensors, prices. A stream owns its states and a copy of the weights as they were when it was made, so streams of one
/// model are independent. Outputs and states are bit for bit those of a call on the whole sequence.
///
///   nn::Stream stream = net.stream();
///   stream.step(features, result);  // std::span<const float>, std::span<float>
///
/// A step allocates nothing, takes no lock and makes no system call, except in layers that look at values (`on_tensors`
/// counts them), which run on tensors from the pool of the calling thread. Dropout is off. A `last_step` layer passes
/// each step on. Several threads must not use a stream at once. See docs/audio.md for audio threads.
class Stream {
 public:
  /// Creates a stream of `batch` sequences. Throws ValueError for a model that cannot be streamed, naming the layer and
  /// the operation that need other steps than those before, and for a batch below 1.
  Stream(const Layer& model, std::int64_t batch);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  std::int64_t batch() const { return batch_; }
  /// Returns the batch, width and dtype of a step's input; width 0 if it is not known before the first step.
  StepRows input() const { return in_; }
  /// Returns the batch, width and dtype of a step's result; width 0 if it is not known before the first step.
  StepRows result() const { return step_ ? out_ : StepRows{.batch = batch_, .width = 0}; }

  /// Runs one step: x [B, D] -> y [B, N], both row-major. Throws ShapeError when the sizes do not fit, DtypeError when
  /// the model's weights have another dtype, and PaceError for a model that does not give one output per input (use
  /// `feed`).
  void step(std::span<const float> x, std::span<float> y) { advance(x, y); }
  void step(std::span<const double> x, std::span<double> y) { advance(x, y); }
  /// Runs one step of a model that begins with an embedding, with one token per row: [B] -> [B, N].
  void step(std::span<const std::int64_t> tokens, std::span<float> y) { advance(tokens, y); }
  void step(std::span<const std::int64_t> tokens, std::span<double> y) { advance(tokens, y); }
  /// Runs n steps, x [n, B, D] -> y [n, B, N], with the bits of n calls of `step` and in less time, for example for the
  /// blocks of an audio host. If one throws, those before it have been made.
  void steps(std::int64_t n, std::span<const float> x, std::span<float> y) { several(n, x, y); }
  void steps(std::int64_t n, std::span<const double> x, std::span<double> y) { several(n, x, y); }
  void steps(std::int64_t n, std::span<const std::int64_t> tokens, std::span<float> y) { several(n, tokens, y); }
  void steps(std::int64_t n, std::span<const std::int64_t> tokens, std::span<double> y) { several(n, tokens, y); }

  /// Feeds one step to a model that may give no output for it, because of strides, or none yet, because of windows.
  /// Returns whether there is an output. Rows of y without an output stay as they are. Throws as `step` does.
  ///
  ///   nn::Stream stream = dsl::sequence(1).causal_conv1d(8, 5, {.stride = 4}).gru(16).build(0).stream();
  ///   if (stream.feed(sample, features)) ...  // once in four samples
  bool feed(std::span<const float> x, std::span<float> y) { return fed(x, y); }
  bool feed(std::span<const double> x, std::span<double> y) { return fed(x, y); }
  bool feed(std::span<const std::int64_t> tokens, std::span<float> y) { return fed(tokens, y); }
  bool feed(std::span<const std::int64_t> tokens, std::span<double> y) { return fed(tokens, y); }
  /// Writes the next output that a model which looks ahead (padding `same`) gives after the last input, and returns
  /// whether there is one; always false for causal models. The outputs of `feed` and then of `finish` are those of the
  /// whole sequence. The first call ends the sequence of a model that looks ahead: it takes no further inputs until
  /// `reset()` or `restore`.
  ///
  ///   while (stream.finish(result)) ...
  ///
  /// Throws ShapeError when the size does not fit, DtypeError for another dtype.
  bool finish(std::span<float> y) { return finished(y); }
  bool finish(std::span<double> y) { return finished(y); }
  /// Returns whether the last `feed` or `finish` gave an output for this row. All rows give outputs at the same steps
  /// until `reset(row)` restarts one of them. Throws ValueError for a row outside 0..batch - 1.
  bool gave(std::int64_t row) const;
  /// Returns the number of input steps from one output to the next: output u comes with input delay() + u stride(),
  /// counted from 0. Models with an output for each input have stride 1 and delay 0.
  std::int64_t stride() const { return pace_.stride; }
  /// Returns the number, counted from 0, of the input step that gives the first output.
  std::int64_t delay() const { return pace_.delay; }

  /// Gives the states of all rows their first values (StepState::initial, else zeros): the next input is the first of a
  /// new sequence, also after `finish`.
  void reset();
  /// Starts the sequence of one row over; the others continue. Allocates nothing if a step does not. Throws ValueError
  /// for a row outside 0..batch - 1, and after `finish` has ended the sequences.
  void reset(std::int64_t row);
  /// Returns an independent stream with equal weights and states.
  Stream clone() const;
  /// Returns copies of the states, for a later `restore` in this stream or in another of the same model and batch,
  /// layer by layer as `report` lists them: h [L, B, H] of a recurrent layer, for an LSTM followed by c. Throws
  /// ValueError after `finish` has ended the sequence.
  std::vector<Tensor> save() const;
  /// Restores states that `save` returned. Throws ShapeError or ValueError for states of another model or batch.
  void restore(const std::vector<Tensor>& states);
  /// Copies the present weights of the model, for example after training; the states of the stream stay.
  void refresh();
  /// Returns the number of layers that run as in an ordinary call, on tensors, and so may allocate (StreamReport).
  std::size_t on_tensors() const;
  /// Returns how each layer runs, and why not faster. The report is empty before the first step of a model that does
  /// not know the width of its rows.
  ///
  ///   std::cout << net.stream().report();
  StreamReport report() const;

 private:
  struct Room;
  static constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  Stream();
  template <class In, class Out>
  void advance(std::span<const In> x, std::span<Out> y);
  template <class In, class Out>
  bool fed(std::span<const In> x, std::span<Out> y);
  template <class Out>
  bool finished(std::span<Out> y);
  /// Copies the rows that a step gave and returns whether there are any.
  template <class Out>
  bool give(Step::Rows rows, std::span<Out> y);
  template <class Out>
  void check_room(std::span<Out> y) const;
  void check_goes_on() const;
  std::vector<Tensor> states() const;
  template <class In, class Out>
  void several(std::int64_t n, std::span<const In> x, std::span<Out> y);
  /// Throws unless x and y fit the input and the result of a step.
  template <class In, class Out>
  void check(std::span<const In> x, std::span<Out> y);
  /// Runs a step on the rows in `room_`.
  void run_once();
  /// Notes that all rows have had an input.
  void begin_rows() {
    if (all_begun_) return;
    std::fill(begun_.begin(), begun_.end(), std::uint8_t{1});
    all_begun_ = true;
  }
  /// Finds the rows that have had an input from the states that count steps; all rows if there is no such state.
  void find_begun();
  [[noreturn]] void throw_pace() const;
  void check_row(std::int64_t row) const;
  /// Makes the steps, now that the width of a row is known.
  void prepare(std::int64_t width);
  /// Throws ValueError if a model that does not know its width cannot be streamed.
  void try_width(const Layer& model) const;

  /// A copy of a model whose layers do not know their width; `parameters_` and `buffers_` are the model's own.
  std::unique_ptr<Layer> model_;
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;
  std::unique_ptr<Step> step_;
  std::unique_ptr<Room> room_;
  StepRows in_, out_;
  std::size_t x_values_ = kUnknown, y_values_ = kUnknown;  ///< values of a step, if each input gives one output
  std::int64_t batch_ = 1;
  std::int64_t at_once_ = 1;  ///< number of steps that go through the layers together
  Pace pace_{};
  std::vector<std::uint8_t> all_, gave_;  ///< by row: 1, and whether the last step gave an output
  std::vector<std::uint8_t> begun_;       ///< by row: whether it has had an input
  bool all_begun_ = false;
  std::int64_t finish_ = 0;  ///< number of calls of Step::finish so far
  bool commits_ = false, skips_ = false, never_throws_ = false;
  bool any_float_ = false;  ///< whether the first step also decides the dtype
};

}  // namespace ferrite::nn
