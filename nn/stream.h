#pragma once
#include <memory>
#include <span>
#include <vector>

#include "ferrite/nn/carry.h"

namespace ferrite::nn {

/// A causal layer or network run step by step on data as it comes: audio, sensors, prices. It owns a copy of the
/// weights as they were when it was made, and its states, which begin as zeros; streams of one model do not touch
/// each other. Outputs and states have the bits that a call on the whole sequence gives.
///
///   nn::Stream stream = net.stream();
///   stream.step(features, result);  // std::span<const float>, std::span<float>
///
/// Dropout is off. `last_step` is the step itself. Not for use by several threads at once.
class Stream {
 public:
  /// B sequences side by side. Throws ValueError when the layer is not causal, and for a batch below 1.
  Stream(const Layer& model, std::int64_t batch);
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = default;

  std::int64_t batch() const { return batch_; }

  /// One step: x [B, D] -> y [B, N], both row-major. Throws ShapeError when the sizes do not fit, DtypeError when the
  /// model's weights are of another dtype.
  void step(std::span<const float> x, std::span<float> y);
  void step(std::span<const double> x, std::span<double> y);
  /// One token each for a model that begins with an embedding: [B] -> [B, N].
  void step(std::span<const std::int64_t> tokens, std::span<float> y);
  /// n steps, one after the other: x [n, B, D] -> y [n, B, N].
  void steps(std::int64_t n, std::span<const float> x, std::span<float> y);

  /// Begins anew from zero states.
  void reset() { carry_.reset(); }
  /// An independent stream with equal weights and states.
  Stream clone() const;
  /// The states, for a later `restore` in this stream, or in another of the same model and batch.
  std::vector<Tensor> save() const { return carry_.save(); }
  void restore(const std::vector<Tensor>& states) { carry_.restore(states); }
  /// Takes the present weights of the model; the states stay.
  void refresh();

 private:
  Stream() = default;
  template <class In, class Out>
  void advance(std::span<const In> x, std::span<Out> y);

  std::unique_ptr<Layer> layer_;  // the copy
  std::vector<Named<Parameter>> parameters_;
  std::vector<Named<Buffer>> buffers_;  // of the model
  Carry carry_;
  std::int64_t batch_ = 1;
};

}  // namespace ferrite::nn
