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

/// How one layer of a stream runs.
struct LayerReport {
  std::string layer;     ///< its path, "encoder.0"
  std::string kind;      ///< "gru"
  std::string runs;      ///< "kernel", written for it; "program", planned and fused; "tensors", as any call
  std::int64_t at_once;  ///< steps
  std::int64_t bytes;    ///< of its states
  std::string why;       ///< why it takes one step at a time, or runs on tensors; else empty
};

/// How a stream runs, layer by layer, in order. Layers that do nothing in a stream, as dropout, are not listed; what
/// lies between layers, as the sum of a residual, is listed as the layer that it belongs to. An activation or a sum
/// that is computed with the product before it is listed as that.
struct StreamReport {
  std::vector<LayerReport> layers{};
  std::int64_t at_once = 1;  ///< steps that go through all layers together
  std::int64_t bytes = 0;    ///< of all states

  /// A table with a line for each layer.
  std::string str() const;
};
std::ostream& operator<<(std::ostream& out, const StreamReport& report);

/// A causal layer or network, or one that looks a few steps ahead, run step by step on data as it comes: audio,
/// sensors, prices. It owns a copy of the weights as they were when it was made, and its states;
/// streams of one model do not touch each other. Outputs and states have the bits that a call on the whole sequence
/// gives.
///
///   nn::Stream stream = net.stream();
///   stream.step(features, result);  // std::span<const float>, std::span<float>
///
/// A step allocates nothing, takes no lock and makes no system call; layers that look at values (`on_tensors` counts
/// them) run on tensors from the pool of the calling thread instead. Dropout is off. `last_step` is the step itself.
/// Not for use by several threads at once. For audio threads: docs/audio.md.
class Stream {
 public:
  /// B sequences side by side. Throws ValueError that names the layer and operation which look at other steps than
  /// those before, where the model cannot be streamed, and for a batch below 1.
  Stream(const Layer& model, std::int64_t batch);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  std::int64_t batch() const { return batch_; }
  /// What a step gives: so many values a row, in which dtype. Width 0: the model does not tell before its first step.
  StepRows result() const { return step_ ? out_ : StepRows{.batch = batch_, .width = 0}; }

  /// One step: x [B, D] -> y [B, N], both row-major. Throws ShapeError when the sizes do not fit, DtypeError when the
  /// model's weights are of another dtype, and PaceError for a model that does not give a step for each: see `feed`.
  void step(std::span<const float> x, std::span<float> y) { advance(x, y); }
  void step(std::span<const double> x, std::span<double> y) { advance(x, y); }
  /// One token each for a model that begins with an embedding: [B] -> [B, N].
  void step(std::span<const std::int64_t> tokens, std::span<float> y) { advance(tokens, y); }
  void step(std::span<const std::int64_t> tokens, std::span<double> y) { advance(tokens, y); }
  /// n steps: x [n, B, D] -> y [n, B, N], with the bits of n calls of `step` and in less time, as for the blocks of an
  /// audio host. Where one throws, those before it have been made.
  void steps(std::int64_t n, std::span<const float> x, std::span<float> y) { several(n, x, y); }
  void steps(std::int64_t n, std::span<const double> x, std::span<double> y) { several(n, x, y); }
  void steps(std::int64_t n, std::span<const std::int64_t> tokens, std::span<float> y) { several(n, tokens, y); }
  void steps(std::int64_t n, std::span<const std::int64_t> tokens, std::span<double> y) { several(n, tokens, y); }

  /// One step of a model that may give none, because of strides, or not yet, because of windows: whether there is one.
  /// Where there is none, and in rows that have none, y stays what it is. Throws as `step` does.
  ///
  ///   nn::Stream stream = dsl::sequence(1).causal_conv1d(8, 5, {.stride = 4}).gru(16).build(0).stream();
  ///   if (stream.feed(sample, features)) ...  // once in four samples
  bool feed(std::span<const float> x, std::span<float> y) { return fed(x, y); }
  bool feed(std::span<const double> x, std::span<double> y) { return fed(x, y); }
  bool feed(std::span<const std::int64_t> tokens, std::span<float> y) { return fed(tokens, y); }
  bool feed(std::span<const std::int64_t> tokens, std::span<double> y) { return fed(tokens, y); }
  /// Where the input ends: the next of the steps that a model which looks ahead (padding `same`) still owes, and
  /// whether there is one; always false for causal models. The steps of `feed` and then of `finish` are those of the
  /// whole sequence. The first call ends the sequence: until `reset()`, or `restore`, the stream takes no further
  /// inputs.
  ///
  ///   while (stream.finish(result)) ...
  ///
  /// Throws ShapeError when the size does not fit, DtypeError for another dtype.
  bool finish(std::span<float> y) { return finished(y); }
  bool finish(std::span<double> y) { return finished(y); }
  /// Whether the last `feed` or `finish` gave a step of this row: rows go in step until `reset(row)` has begun one of
  /// them anew. Throws ValueError for a row outside 0..batch - 1.
  bool gave(std::int64_t row) const;
  /// Output u comes with input delay() + u stride(), counted from 0: 1 and 0 for models with an output for each input.
  std::int64_t stride() const { return pace_.stride; }
  std::int64_t delay() const { return pace_.delay; }

  /// Begins anew.
  void reset();
  /// One of the sequences begins anew, the others go on. Allocates nothing where a step does not. Throws ValueError for
  /// a row outside 0..batch - 1, and when the inputs have ended.
  void reset(std::int64_t row);
  /// An independent stream with equal weights and states.
  Stream clone() const;
  /// The states, for a later `restore` in this stream, or in another of the same model and batch, layer by layer as
  /// `report` lists them: of a recurrent layer h, then of an LSTM c, [L, B, H]. Throws ValueError when the inputs have
  /// ended.
  std::vector<Tensor> save() const;
  /// Throws ShapeError or ValueError for states of another model or batch.
  void restore(const std::vector<Tensor>& states);
  /// Takes the present weights of the model; the states stay.
  void refresh();
  /// Layers that run on tensors, as any call.
  std::size_t on_tensors() const;
  /// How each layer runs, and why not better. Empty before the first step of a model that does not tell the width of
  /// its rows.
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
  /// Copies the rows that a step gave: whether there are any.
  template <class Out>
  bool give(Step::Rows rows, std::span<Out> y);
  template <class Out>
  void check_room(std::span<Out> y) const;
  void check_goes_on() const;
  std::vector<Tensor> states() const;
  template <class In, class Out>
  void several(std::int64_t n, std::span<const In> x, std::span<Out> y);
  /// Throws unless a step takes and gives such rows.
  template <class In, class Out>
  void check(std::span<const In> x, std::span<Out> y);
  /// A step in the memory between the layers.
  void run_once();
  /// All rows have had an input.
  void begin_rows() {
    if (all_begun_) return;
    std::fill(begun_.begin(), begun_.end(), std::uint8_t{1});
    all_begun_ = true;
  }
  /// Finds the rows that have had an input by the steps that states count; all, where none does.
  void find_begun();
  [[noreturn]] void throw_pace() const;
  void check_row(std::int64_t row) const;
  /// Makes the steps, now that the width of a row is known.
  void prepare(std::int64_t width);
  /// Throws ValueError where a model that does not tell its width cannot be streamed.
  void try_width(const Layer& model) const;

  /// A copy of the model, where its layers do not tell their width, and its own variables.
  std::unique_ptr<Layer> model_;
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;
  std::unique_ptr<Step> step_;
  std::unique_ptr<Room> room_;
  StepRows in_, out_;
  std::size_t x_values_ = kUnknown, y_values_ = kUnknown;  ///< of a step, where each gives one
  std::int64_t batch_ = 1;
  std::int64_t at_once_ = 1;  ///< steps that go through the layers together
  Pace pace_{};
  std::vector<std::uint8_t> all_, gave_;  ///< by row: 1, and whether the last step gave something
  std::vector<std::uint8_t> begun_;       ///< by row: whether it has had an input
  bool all_begun_ = false;
  std::int64_t finish_ = 0;  ///< calls of Step::finish that were made
  bool commits_ = false, skips_ = false, never_throws_ = false;
  bool any_float_ = false;  ///< the first step tells the dtype, too
};

}  // namespace ferrite::nn
