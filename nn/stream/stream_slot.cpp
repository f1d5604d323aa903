/// Slots: streams are handed over through two atomic pointers, one for each direction.
#include "ferrite/nn/stream/stream_slot.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ferrite/nn/detail/rate_conversion.h"
#include "ferrite/tensor/error.h"

namespace ferrite::nn {

namespace {

/// Maximum number of steps that are made at once.
constexpr std::int64_t kPiece = 64;
/// Longest lead and longest crossfade.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

/// Returns a rate in whole Hz.
std::int64_t whole_rate(double rate) {
  if (!(rate >= 0 && rate <= 1e9) || std::floor(rate) != rate)
    throw ValueError("stream slot: a rate must be a whole number of Hz, or 0 where it is not known, got " +
                     std::to_string(rate));
  return static_cast<std::int64_t>(rate);
}

}  // namespace

/// Conversions to the rate of a stream and back.
class StreamSlot::Bridge {
 public:
  Bridge(std::int64_t slot, std::int64_t own, std::int64_t in, std::int64_t out)
      : in_(in),
        out_(out),
        most_((kPiece * own + slot - 1) / slot + 1),
        there_(slot, own, in, kPiece),
        back_(own, slot, out, most_ + detail::RateConversion::kMostRatio),
        x_(std::make_unique<float[]>(static_cast<std::size_t>(most_ * in))),
        y_(std::make_unique<float[]>(static_cast<std::size_t>(most_ * out))),
        latency_(there_.wait() + (back_.wait() * slot + own - 1) / own) {
    reset();
  }

  std::int64_t latency() const { return latency_; }

  /// Runs n steps of the slot, at most kPiece.
  void run(Stream& stream, std::int64_t n, const float* x, float* y) {
    std::int64_t own = 0;
    for (std::int64_t t = 0; t < n; ++t)
      for (there_.push(x + t * in_); there_.ready(); ++own) there_.pull(x_.get() + own * in_);
    stream.steps(own, {x_.get(), static_cast<std::size_t>(own * in_)},
                 std::span<float>(y_.get(), static_cast<std::size_t>(own * out_)));
    for (std::int64_t u = 0; u < own; ++u) back_.push(y_.get() + u * out_);
    for (std::int64_t t = 0; t < n; ++t) {
      if (early_ > 0) {
        --early_;
        std::fill_n(y + t * out_, out_, 0.0F);
      } else {
        back_.pull(y + t * out_);
      }
    }
  }
  void reset() {
    there_.reset();
    back_.reset();
    early_ = latency_;
  }

 private:
  std::int64_t in_, out_, most_;  ///< values of a step, and the largest number of the stream's steps in kPiece
  detail::RateConversion there_, back_;
  std::unique_ptr<float[]> x_, y_;
  std::int64_t latency_, early_ = 0;  ///< early_: steps until the first result is due
};

/// A stream as it is played.
struct StreamSlot::Voice {
  explicit Voice(Stream s) : stream(std::move(s)) {}

  Stream stream;
  std::unique_ptr<Bridge> bridge{};  ///< if the stream's rate is not the slot's
  Voice* next = nullptr;             ///< of those handed back

  std::int64_t latency() const { return bridge ? bridge->latency() : 0; }
  void run(std::int64_t n, std::span<const float> x, std::span<float> y) {
    if (bridge) {
      try {
        bridge->run(stream, n, x.data(), y.data());
      } catch (...) {
        bridge->reset();  // its two sides have not moved by the same time
        throw;
      }
    } else {
      stream.steps(n, x, y);
    }
  }
  void reset() {
    stream.reset();
    if (bridge) bridge->reset();
  }
};

StreamSlot::StreamSlot(Stream first, const StreamSlotOptions& options, double rate)
    : options_(options),
      in_(first.input()),
      out_(first.result()),
      x_values_(in_.batch * in_.width),
      y_values_(out_.batch * out_.width) {
  const auto possible = [](std::int64_t steps) { return steps >= 0 && steps <= kMostSteps; };
  if (!possible(options.crossfade) || !possible(options.lead))
    throw ValueError("stream slot: crossfade and lead must not be negative, nor more than 2^40 steps, got " +
                     std::to_string(options.crossfade) + " and " + std::to_string(options.lead));
  (void)whole_rate(options.rate);
  mixed_ = std::make_unique<float[]>(static_cast<std::size_t>(kPiece * y_values_));
  make_heard(voice_of(std::move(first), rate));
}

StreamSlot::~StreamSlot() {
  delete waiting_.load();
  collect();
}

std::unique_ptr<StreamSlot::Voice> StreamSlot::voice_of(Stream stream, double rate) const {
  const StepRows x = stream.input(), y = stream.result();
  if (x.width == 0) throw ValueError("stream slot: the stream does not know its width yet; run a step, then reset()");
  if (x.dtype != Dtype::f32 || y.dtype != Dtype::f32)
    throw DtypeError("stream slot: a stream must take and give f32, this one takes " + std::string(name_of(x.dtype)) +
                     " and gives " + std::string(name_of(y.dtype)));
  if (stream.stride() != 1 || stream.delay() != 0)
    throw PaceError("stream slot: a stream must give one step for each, with no delay; this one has a stride of " +
                    std::to_string(stream.stride()) + " and a delay of " + std::to_string(stream.delay()));
  const Shape in{x.batch, x.width}, out{y.batch, y.width}, slot_in{in_.batch, in_.width},
      slot_out{out_.batch, out_.width};
  if (in != slot_in || out != slot_out)
    throw ShapeError("stream slot: a step of the slot is " + slot_in.str() + " -> " + slot_out.str() +
                     ", one of this stream " + in.str() + " -> " + out.str());
  if (stream.on_tensors() > 0)
    throw ValueError("stream slot: " + std::to_string(stream.on_tensors()) +
                     " layers of the stream run on tensors and may allocate; report() names them");
  const std::int64_t own = whole_rate(rate), here = whole_rate(options_.rate);
  auto voice = std::make_unique<Voice>(std::move(stream));
  if (own == 0 || here == 0 || own == here) return voice;
  if (!detail::RateConversion::possible(here, own) || !detail::RateConversion::possible(own, here))
    throw ValueError("stream slot: no conversion between the slot's " + std::to_string(here) + " Hz and the stream's " +
                     std::to_string(own) + " Hz: the rates are too different, or have too little in common");
  voice->bridge = std::make_unique<Bridge>(here, own, x_values_, y_values_);
  return voice;
}

void StreamSlot::put(Stream next, double rate) {
  Voice* const voice = voice_of(std::move(next), rate).release();
  delete waiting_.exchange(voice, std::memory_order_acq_rel);
  collect();
}

void StreamSlot::collect() {
  Voice* voice = handed_back_.exchange(nullptr, std::memory_order_acquire);
  while (voice) delete std::exchange(voice, voice->next);
}

bool StreamSlot::settled() const {
  // In this order: the audio thread begins to fade before it takes what waits, and another may have come meanwhile.
  const auto waits = [&] { return waiting_.load(std::memory_order_acquire) != nullptr; };
  return !waits() && !fading_.load(std::memory_order_acquire) && !waits();
}

/// Takes the stream that waits, if one does.
void StreamSlot::take() {
  if (!waiting_.load(std::memory_order_relaxed)) return;
  fading_.store(true, std::memory_order_relaxed);
  entering_.reset(waiting_.exchange(nullptr, std::memory_order_acq_rel));
  entered_ = 0;
  lead_ = options_.lead + 2 * entering_->latency();  // in which the conversion back leaves its zeros behind
}

void StreamSlot::make_heard(std::unique_ptr<Voice> voice) {
  if (heard_) hand_back(std::move(heard_));
  heard_ = std::move(voice);
  latency_.store(heard_->latency(), std::memory_order_relaxed);
  fading_.store(false, std::memory_order_release);
}

void StreamSlot::hand_back(std::unique_ptr<Voice> voice) {
  Voice* const v = voice.release();
  v->next = handed_back_.load(std::memory_order_relaxed);
  while (!handed_back_.compare_exchange_weak(v->next, v, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

/// Runs n steps, at most kPiece, all before or all after the end of the lead and of the crossfade.
void StreamSlot::run(std::int64_t n, const float* x, float* y) {
  const auto values = static_cast<std::size_t>(n * y_values_);
  const std::span<const float> in(x, static_cast<std::size_t>(n * x_values_));
  if (!entering_) return heard_->run(n, in, {y, values});
  try {
    entering_->run(n, in, {mixed_.get(), values});
  } catch (...) {
    hand_back(std::move(entering_));
    fading_.store(false, std::memory_order_release);
    throw;
  }
  try {
    heard_->run(n, in, {y, values});
  } catch (...) {
    make_heard(std::move(entering_));
    throw;
  }
  const float parts = static_cast<float>(options_.crossfade + 1);
  for (std::int64_t t = 0; t < n && entered_ >= lead_; ++t) {
    const float w = static_cast<float>(entered_ - lead_ + t + 1) / parts;
    for (std::int64_t i = t * y_values_; i < (t + 1) * y_values_; ++i)
      y[i] += w * (mixed_[static_cast<std::size_t>(i)] - y[i]);
  }
  entered_ += n;
}

void StreamSlot::steps(std::int64_t n, std::span<const float> x, std::span<float> y) {
  if (n < 0 || static_cast<std::int64_t>(x.size()) != n * x_values_ ||
      static_cast<std::int64_t>(y.size()) != n * y_values_)
    throw ShapeError("stream slot: " + std::to_string(n) + " steps take " + std::to_string(n * x_values_) +
                     " values and give " + std::to_string(n * y_values_) + ", got " + std::to_string(x.size()) +
                     " and " + std::to_string(y.size()));
  if (!entering_) take();
  const float* from = x.data();
  float* to = y.data();
  while (n > 0) {
    std::int64_t now = std::min(n, kPiece);
    if (entering_) {
      const std::int64_t end = lead_ + options_.crossfade;
      if (entered_ >= end) {
        make_heard(std::move(entering_));
        continue;
      }
      now = std::min(now, (entered_ < lead_ ? lead_ : end) - entered_);
    } else if (!heard_->bridge) {
      now = n;
    }
    run(now, from, to);
    from += now * x_values_, to += now * y_values_, n -= now;
  }
  if (entering_ && entered_ >= lead_ + options_.crossfade) make_heard(std::move(entering_));
}

void StreamSlot::reset() {
  if (entering_) make_heard(std::move(entering_));
  heard_->reset();
}

}  // namespace ferrite::nn
