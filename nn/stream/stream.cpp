/// Streams: the steps of a model with their own states and weights, and reports of how each layer runs.
#include "ferrite/nn/stream/stream.h"

#include <algorithm>
#include <cstring>
#include <ostream>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/summary.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {

/// Copies of the caller's rows, around which whole packets may be read and written.
struct Stream::Room {
  Room(std::int64_t in, std::int64_t out) : x((in + 7) / 8), y((out + 7) / 8, detail::StepMemory<double>::Unset()) {}
  detail::StepMemory<double> x, y;
};

namespace {

/// Copies n values; a single one without a call of memcpy.
template <class T>
[[gnu::always_inline]] inline void copy(const T* from, std::size_t n, void* to) {
  if (n == 1) {
    std::memcpy(to, from, sizeof(T));
  } else {
    std::memcpy(to, from, n * sizeof(T));
  }
}

}  // namespace

Stream Layer::stream(std::int64_t batch) const { return Stream(*this, batch); }

Stream::Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Stream::Stream(const Layer& model, std::int64_t batch) : batch_(batch), pace_(model.pace()) {
  (void)model.named_parameters();  // throws if the model was moved from
  if (batch < 1) throw ValueError("stream: the batch must be positive, got " + std::to_string(batch));
  all_.assign(static_cast<std::size_t>(batch), 1);
  gave_.assign(static_cast<std::size_t>(batch), 0);
  begun_ = gave_;
  const NewFrame frame;
  const StepInput input = model.step_input();
  in_ = {batch, input.width, input.dtype};
  if (input.width > 0) {
    step_ = detail::step_of(model, in_);
    prepare(input.width);
  } else {
    model_ = detail::copy_in_place_of(model);
    parameters_ = model.named_parameters();
    buffers_ = model.named_buffers();
    any_float_ = input.keeps_width && parameters_.empty();
    if (!model.streams()) try_width(model);
  }
}

/// Tries a width of 4: whether a model streams does not depend on the width if it takes any number of values.
void Stream::try_width(const Layer& model) const {
  try {
    (void)detail::step_of(model, {batch_, 4, in_.dtype});
  } catch (const ShapeError&) {  // it takes other widths
  }
}

void Stream::prepare(std::int64_t width) {
  in_.width = width;
  if (!step_) step_ = detail::step_of(*model_, in_);
  commits_ = step_->commits();
  never_throws_ = step_->never_throws();
  skips_ = step_->skips();
  pace_ = step_->pace();
  out_ = step_->result();
  const std::int64_t x = batch_ * width * size_of(in_.dtype), y = out_.batch * out_.width * size_of(out_.dtype);
  at_once_ = std::min(step_->most_at_once(), detail::steps_at_once(std::max(x, y)));
  room_ = std::make_unique<Room>(at_once_ * x, at_once_ * y);
  if (!pace_.even()) return;
  x_values_ = static_cast<std::size_t>(batch_ * width);
  y_values_ = static_cast<std::size_t>(out_.batch * out_.width);
}

template <class In, class Out>
void Stream::check(std::span<const In> x, std::span<Out> y) {
  const auto n = static_cast<std::int64_t>(x.size());
  if (!step_ && any_float_ && is_float(dtype_of<In>)) in_.dtype = dtype_of<In>;
  if (in_.dtype != dtype_of<In>)
    throw DtypeError("stream: the model takes " + std::string(name_of(in_.dtype)) + ", got " +
                     std::string(name_of(dtype_of<In>)));
  if (!step_ && !model_) throw Error("stream: was moved from");
  if (!step_ && n > 0 && n % batch_ == 0) prepare(n / batch_);
  if (n != batch_ * in_.width || !step_)
    throw ShapeError("stream: a step takes " +
                     (step_ ? Shape{batch_, in_.width}.str() : "a multiple of " + std::to_string(batch_)) +
                     " values, got " + std::to_string(n));
  check_goes_on();
  check_room(y);
}

template <class Out>
void Stream::check_room(std::span<Out> y) const {
  if (out_.dtype != dtype_of<Out>)
    throw DtypeError("stream: the model gives " + std::string(name_of(out_.dtype)) + ", there is room for " +
                     std::string(name_of(dtype_of<Out>)));
  if (out_.batch * out_.width != static_cast<std::int64_t>(y.size()))
    throw ShapeError("stream: a step gives " + std::to_string(out_.batch * out_.width) + " values, there is room for " +
                     std::to_string(y.size()));
}

void Stream::check_goes_on() const {
  if (finish_ > 0) throw ValueError("stream: the inputs have ended with finish(); call reset() to start over");
}

[[gnu::always_inline]] inline void Stream::run_once() {
  const void* const x = room_->x.get();
  if (never_throws_ && !ferrite::detail::profiling()) [[likely]]
    return step_->advance(&x, room_->y.get());
  detail::run_step(*step_, &x, room_->y.get());
  if (commits_) step_->commit();
}

template <class In, class Out>
void Stream::advance(std::span<const In> x, std::span<Out> y) {
  const bool as_before = step_ && x.size() == x_values_ && y.size() == y_values_ && in_.dtype == dtype_of<In> &&
                         out_.dtype == dtype_of<Out> && finish_ == 0;
  if (!as_before) [[unlikely]] {
    check(x, y);
    if (!pace_.even()) throw_pace();
  }
  copy(x.data(), x.size(), room_->x.get());
  run_once();
  copy(reinterpret_cast<const Out*>(room_->y.get()), y.size(), y.data());
  begin_rows();
}

template void Stream::advance(std::span<const float>, std::span<float>);
template void Stream::advance(std::span<const double>, std::span<double>);
template void Stream::advance(std::span<const std::int64_t>, std::span<float>);
template void Stream::advance(std::span<const std::int64_t>, std::span<double>);

void Stream::throw_pace() const {
  throw PaceError("stream: the model gives one step for " + std::to_string(pace_.stride) + ", the first one " +
                  std::to_string(pace_.delay) + " later; call feed, which says whether there is one");
}

template <class In, class Out>
bool Stream::fed(std::span<const In> x, std::span<Out> y) {
  check(x, y);
  std::memcpy(room_->x.get(), x.data(), x.size_bytes());
  Step::Rows gave = all_.data();
  if (skips_) {
    const void* const from = room_->x.get();
    gave = detail::run_rows_of(*step_, &gave, &from, room_->y.get());
    step_->commit_rows(all_.data());
  } else {
    run_once();
  }
  begin_rows();
  return give(gave, y);
}

template <class Out>
bool Stream::give(Step::Rows rows, std::span<Out> y) {
  const std::size_t N = y.size() / gave_.size();
  bool any = false;
  for (std::size_t b = 0; b < gave_.size(); ++b) {
    gave_[b] = rows && rows[b];
    if (!gave_[b]) continue;
    any = true;
    std::memcpy(y.data() + b * N, reinterpret_cast<const Out*>(room_->y.get()) + b * N, N * sizeof(Out));
  }
  return any;
}

template bool Stream::fed(std::span<const float>, std::span<float>);
template bool Stream::fed(std::span<const double>, std::span<double>);
template bool Stream::fed(std::span<const std::int64_t>, std::span<float>);
template bool Stream::fed(std::span<const std::int64_t>, std::span<double>);

template <class Out>
bool Stream::finished(std::span<Out> y) {
  if (!step_ && !model_) throw Error("stream: was moved from");
  if (step_) check_room(y);
  std::fill(gave_.begin(), gave_.end(), std::uint8_t{0});
  if (!step_) return false;  // there was no input
  while (finish_ < step_->finishing()) {
    const Step::Rows rows = detail::finish_rows_of(*step_, begun_.data(), finish_, room_->y.get());
    step_->commit_rows(all_.data());
    ++finish_;
    if (give(rows, y)) return true;
  }
  return false;
}

template bool Stream::finished(std::span<float>);
template bool Stream::finished(std::span<double>);

bool Stream::gave(std::int64_t row) const {
  check_row(row);
  return gave_[static_cast<std::size_t>(row)];
}

template <class In, class Out>
void Stream::several(std::int64_t n, std::span<const In> x, std::span<Out> y) {
  const auto fits = [&](std::size_t values) {
    return n == 0 ? values == 0 : values % static_cast<std::size_t>(n) == 0;
  };
  if (n < 0 || !fits(x.size()) || !fits(y.size()))
    throw ShapeError("stream: " + std::to_string(x.size()) + " and " + std::to_string(y.size()) +
                     " values cannot be cut into " + std::to_string(n) + " steps");
  if (n == 0) return;
  const std::size_t in = x.size() / static_cast<std::size_t>(n), out = y.size() / static_cast<std::size_t>(n);
  check(x.first(in), y.first(out));
  if (!pace_.even()) throw_pace();
  while (n > 0) {
    auto now = static_cast<std::size_t>(std::min(n, at_once_));
    const void* const from = room_->x.get();
    if (now > 1) {
      std::memcpy(room_->x.get(), x.data(), now * in * sizeof(In));
      now = static_cast<std::size_t>(std::max<std::int64_t>(1, step_->sure(static_cast<std::int64_t>(now), &from)));
    }
    if (now == 1) {
      advance(x.first(in), y.first(out));
    } else {
      detail::run_steps(*step_, static_cast<std::int64_t>(now), &from, room_->y.get());
      std::memcpy(y.data(), room_->y.get(), now * out * sizeof(Out));
      begin_rows();
    }
    x = x.subspan(now * in);
    y = y.subspan(now * out);
    n -= static_cast<std::int64_t>(now);
  }
}

template void Stream::several(std::int64_t, std::span<const float>, std::span<float>);
template void Stream::several(std::int64_t, std::span<const double>, std::span<double>);
template void Stream::several(std::int64_t, std::span<const std::int64_t>, std::span<float>);
template void Stream::several(std::int64_t, std::span<const std::int64_t>, std::span<double>);

Stream Stream::clone() const {
  Stream copy;
  const NewFrame frame;
  copy.batch_ = batch_;
  copy.in_ = in_;
  copy.any_float_ = any_float_;
  copy.pace_ = pace_, copy.all_ = all_, copy.gave_ = gave_, copy.finish_ = finish_;
  copy.begun_ = begun_, copy.all_begun_ = all_begun_;
  copy.parameters_ = parameters_;
  copy.buffers_ = buffers_;
  if (model_) copy.model_ = detail::copy_in_place_of(*model_);
  if (!step_) return copy;
  // A step holds the variables of the model that it was made of; the copy's step must hold those of the copy's model.
  copy.step_ = model_ ? detail::step_of(*copy.model_, in_) : step_->clone();
  if (model_) detail::restore_states(*copy.step_, states());
  copy.prepare(in_.width);
  return copy;
}

// Neither touches a variable of the thread, which may be the first to exist there and take memory.
void Stream::reset() {
  if (step_) detail::begin_states(*step_);
  std::fill(begun_.begin(), begun_.end(), std::uint8_t{0});
  all_begun_ = false;
  finish_ = 0;
}

void Stream::check_row(std::int64_t row) const {
  if (row < 0 || row >= batch_)
    throw ValueError("stream: row " + std::to_string(row) + " lies outside 0.." + std::to_string(batch_ - 1));
}

void Stream::reset(std::int64_t row) {
  check_row(row);
  check_goes_on();
  if (step_) detail::begin_states(*step_, row);
  begun_[static_cast<std::size_t>(row)] = 0;
  all_begun_ = false;
}

std::vector<Tensor> Stream::save() const {
  check_goes_on();
  return states();
}

std::vector<Tensor> Stream::states() const {
  const NewFrame frame;
  return step_ ? detail::saved_states(*step_) : std::vector<Tensor>();
}

void Stream::restore(const std::vector<Tensor>& states) {
  if (!step_ && states.empty()) return;
  if (!step_)
    throw ValueError(
        "stream: how many values a row has is not known before the first step, and so no state; let the layer declare "
        "`step_input`");
  const NewFrame frame;
  detail::restore_states(*step_, states);
  find_begun();
  finish_ = 0;
}

void Stream::find_begun() {
  bool any = false;
  std::fill(begun_.begin(), begun_.end(), std::uint8_t{0});
  detail::each_state(*step_, [&](const StateMemory& s) {
    if (s.name != "steps" || s.spec != Spec{{batch_}, Dtype::i64}) return;
    any = true;
    const auto* const steps = reinterpret_cast<const std::int64_t*>(s.first);
    for (std::size_t b = 0; b < begun_.size(); ++b) begun_[b] |= steps[b] > 0 ? 1 : 0;
  });
  if (!any) std::fill(begun_.begin(), begun_.end(), std::uint8_t{1});
  all_begun_ = false;
}

void Stream::refresh() {
  const NewFrame frame;
  if (model_) {
    detail::take_values(parameters_, model_->named_parameters());
    detail::take_values(buffers_, model_->named_buffers());
  }
  if (!step_) return;
  bool programs = false;  // these may refuse the new weights after other steps have taken them
  step_->each([&programs](const Step& s) { programs = programs || s.runs() == Step::Runs::program; });
  if (!programs) return step_->refresh();
  std::unique_ptr<Step> refreshed = step_->clone();
  refreshed->refresh();
  step_ = std::move(refreshed);
}

std::size_t Stream::on_tensors() const {
  std::size_t n = 0;
  if (step_) step_->each([&n](const Step& s) { n += s.runs() == Step::Runs::on_tensors ? 1U : 0U; });
  return n;
}

// ---- reports -------------------------------------------------------------------------------------------

namespace {

std::string words(Step::Runs runs) {
  switch (runs) {
    case Step::Runs::program: return "program";
    case Step::Runs::on_tensors: return "tensors";
    default: return "kernel";
  }
}

std::string why_single(const Step& step) {
  if (step.runs() == Step::Runs::on_tensors) return step.why();
  if (step.skips()) return "it does not give a step for each";
  if (step.most_at_once() == 1 && !step.never_throws()) return "a step of it may fail";
  return {};
}

}  // namespace

StreamReport Stream::report() const {
  StreamReport report{.at_once = at_once_};
  if (!step_) return report;
  step_->each([&report](Step& step) {
    std::int64_t bytes = 0;
    step.states([&bytes](const StateMemory& s) { bytes += detail::bytes_of(s.spec); });
    report.layers.push_back({.layer = std::string(step.scope().path()),
                             .kind = std::string(step.kind()),
                             .runs = words(step.runs()),
                             .at_once = std::min(step.most_at_once(), report.at_once),
                             .bytes = bytes,
                             .why = why_single(step)});
    report.bytes += bytes;
  });
  return report;
}

std::string StreamReport::str() const {
  std::vector<Cells> rows = {{"layer", "kind", "runs as", "why", "steps at once", "bytes of states"}};
  for (const LayerReport& l : layers)
    rows.push_back({l.layer, l.kind, l.runs, l.why, std::to_string(l.at_once), grouped(l.bytes)});
  rows.push_back({"", "", "", "", std::to_string(at_once), grouped(bytes)});
  return text_table(rows, 4);
}

std::ostream& operator<<(std::ostream& out, const StreamReport& report) { return out << report.str(); }

}  // namespace ferrite::nn
