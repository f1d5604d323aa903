#pragma once
/// Slots: places from which an audio thread plays streams, while other threads put new ones there.
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "ferrite/nn/stream/stream.h"

namespace ferrite::nn {

/// Options of a slot; all lengths are in steps.
struct StreamSlotOptions {
  std::int64_t crossfade = 1024;  ///< steps in which one stream fades into the next; 0: at once
  std::int64_t lead = 0;          ///< steps that a new stream runs unheard before that, so that its states settle
  double rate = 0;                ///< steps per second that the slot is given, in Hz; 0: that of every stream
};

/// Plays a stream on an audio thread, while other threads replace it: they load a model, make its stream and put it
/// here. The audio thread takes it at the start of a block, runs both for `lead` steps, and mixes them for n =
/// `crossfade` steps: y = a + w (b - a), with w = 1 / (n + 1), 2 / (n + 1), ..., n / (n + 1). From one step to the next
/// y thus changes by no more than a or b does, and |b - a| / (n + 1). Outside of this y has the bits of the stream
/// alone.
///
///   nn::StreamSlot slot(net.stream(), {.rate = 48000});
///   slot.steps(n, x, y);                                            // audio thread
///   io::NamModel amp = io::read_nam("amp.nam");                     // any other thread
///   slot.put(amp.layer->stream(), amp.sample_rate.value_or(0));
///
/// `steps` and `reset` allocate nothing, free nothing, take no lock and make no system call, except where the stream's
/// own steps do; they belong to one thread at a time. `put`, `collect` and `settled` may be called on any other threads
/// at any time, `latency` on all. No more than two streams run at once: while one fades into the next, further ones
/// wait, of which the last one counts.
///
/// A stream whose rate differs from the slot's runs at its own: the input is converted to that rate and the output
/// back, by windowed sines (Kaiser) with 64 terms at the lower rate, flat within 0.01 dB up to 0.42 of it. Then y comes
/// `latency` steps late, and such a stream runs unheard for twice as many steps more than `lead`. (A recurrent net that
/// is read with io::RtneuralOptions::rate_ratio runs at the slot's rate, without latency.)
class StreamSlot {
 public:
  /// Creates a slot that plays a stream, made for this rate in Hz; 0 where it is not known, which counts as the slot's.
  /// The slot's width, batch and result are those of this stream. Throws as `put`, and ValueError for a length that is
  /// negative or above 2^40 and a rate that is not a whole number.
  explicit StreamSlot(Stream first, const StreamSlotOptions& options = {}, double rate = 0);
  StreamSlot(const StreamSlot&) = delete;
  StreamSlot& operator=(const StreamSlot&) = delete;
  /// Frees all streams. No thread may be in a call.
  ~StreamSlot();

  /// Returns the batch, width and dtype of a step's input; `result` returns those of its output.
  StepRows input() const { return in_; }
  StepRows result() const { return out_; }

  /// Hands a stream over to the audio thread, in place of one that still waits, and frees what that thread has handed
  /// back. Its states are kept: run it on some input before to start it elsewhere than at its first states. Throws, and
  /// leaves everything as it was: ShapeError unless batch, width and width of the result are the slot's; DtypeError
  /// unless all are f32; PaceError for a stream with strides or a delay; ValueError for a stream that runs layers on
  /// tensors, for one that does not know its width before its first step, and for a rate that is not a whole number of
  /// Hz, that is more than 16 times larger or smaller than the slot's, or that has too little in common with it (44101
  /// and 96000 Hz).
  void put(Stream next, double rate = 0);
  /// Frees the streams that the audio thread has handed back, which `put` also does.
  void collect();
  /// Returns whether no stream waits or is being faded in: what was put last is all that is heard, unless it has
  /// thrown.
  bool settled() const;
  /// Returns by how many steps the output of the stream that is heard comes late, because its rate is not the slot's.
  std::int64_t latency() const { return latency_.load(std::memory_order_relaxed); }

  /// Runs n steps on the audio thread: x [n, B, D] -> y [n, B, N], which may be the same memory if D = N. The bits do
  /// not depend on how steps are divided into calls, except that a stream that was put is taken at the start of a call.
  /// Throws ShapeError when the sizes do not fit, and what the streams throw, after some of the steps have been made.
  /// If one of two streams throws, it is dropped, and the next call goes on with the other one alone.
  void steps(std::int64_t n, std::span<const float> x, std::span<float> y);
  /// Gives the states their first values, on the audio thread. A stream that is being faded in is heard alone.
  void reset();

 private:
  class Bridge;
  struct Voice;
  std::unique_ptr<Voice> voice_of(Stream stream, double rate) const;
  void take();
  void make_heard(std::unique_ptr<Voice> voice);
  void hand_back(std::unique_ptr<Voice> voice);
  void run(std::int64_t n, const float* x, float* y);

  StreamSlotOptions options_;
  StepRows in_, out_;
  std::int64_t x_values_, y_values_;  ///< of a step of all rows
  // Of the audio thread alone.
  std::unique_ptr<Voice> heard_, entering_;
  std::int64_t entered_ = 0;  ///< steps that the entering stream has made here
  std::int64_t lead_ = 0;     ///< of these, steps that it runs unheard
  std::unique_ptr<float[]> mixed_;
  // Between threads.
  std::atomic<Voice*> waiting_{nullptr}, handed_back_{nullptr};
  std::atomic<bool> fading_{false};
  std::atomic<std::int64_t> latency_{0};
};

}  // namespace ferrite::nn
