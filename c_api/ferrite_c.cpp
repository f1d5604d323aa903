/// The C interface: every function calls the library, and turns exceptions into a status and a text.
#include "ferrite_c.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/nn/stream/stream_slot.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/net_file.h"

using namespace ferrite;

struct ferrite_model {
  train::NetFile file;
};

struct ferrite_stream {
  nn::Stream stream;
};

struct ferrite_slot {
  nn::StreamSlot slot;
  bool flush;
};

namespace {

thread_local std::array<char, 1024> last_error{};

ferrite_status fail(ferrite_status status, const char* text) noexcept {
  const std::size_t room = last_error.size() - 1;
  const std::size_t size = std::strlen(text);
  std::size_t n = std::min(size, room);
  while (n < size && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) --n;  // cut between characters
  std::memcpy(last_error.data(), text, n);
  last_error[n] = 0;
  return status;
}

/// Runs f and returns the status of its exception, if it throws.
template <class F>
ferrite_status guarded(F&& f) noexcept {
  try {
    f();
    return FERRITE_OK;
  } catch (const IoError& e) {
    return fail(FERRITE_ERROR_IO, e.what());
  } catch (const ShapeError& e) {
    return fail(FERRITE_ERROR_SHAPE, e.what());
  } catch (const DtypeError& e) {
    return fail(FERRITE_ERROR_DTYPE, e.what());
  } catch (const nn::PaceError& e) {
    return fail(FERRITE_ERROR_PACE, e.what());
  } catch (const nn::CapacityError& e) {
    return fail(FERRITE_ERROR_CAPACITY, e.what());
  } catch (const ValueError& e) {
    return fail(FERRITE_ERROR_VALUE, e.what());
  } catch (const MemoryError& e) {
    return fail(FERRITE_ERROR_MEMORY, e.what());
  } catch (const std::bad_alloc&) {
    return fail(FERRITE_ERROR_MEMORY, "there is not enough memory");
  } catch (const std::length_error&) {
    return fail(FERRITE_ERROR_MEMORY, "there is not enough memory");
  } catch (const std::exception& e) {
    return fail(FERRITE_ERROR_OTHER, e.what());
  } catch (...) {
    return fail(FERRITE_ERROR_OTHER, "an error of unknown kind");
  }
}

void check(const void* pointer, const char* name) {
  if (!pointer) throw ValueError(std::string(name) + " is null");
}

/// Returns a struct of the caller as this version of the library knows it; members beyond the caller's keep their
/// values.
template <class T>
T known_part(const T& given, T result, const char* name) {
  if (given.size < sizeof(std::size_t)) throw ValueError(std::string(name) + ".size is not set");
  std::memcpy(&result, &given, std::min(given.size, sizeof(T)));
  return result;
}

/// Returns n times `each`. Throws ShapeError if n is negative or memory cannot hold that number of floats.
std::size_t times(std::int64_t n, std::size_t each, const char* name) {
  const auto count = static_cast<std::size_t>(n);
  if (n < 0 || (each > 0 && count > std::numeric_limits<std::size_t>::max() / sizeof(float) / each))
    throw ShapeError("the number of " + std::string(name) + " is negative or too large: " + std::to_string(n));
  return count * each;
}

/// Returns the values of n steps.
template <class T>
std::span<T> values(T* v, std::int64_t n, const nn::StepRows& step, const char* name) {
  const std::size_t count = times(n, static_cast<std::size_t>(step.batch * step.width), "steps");
  if (count > 0) check(v, name);
  return {v, count};
}

/// Returns what a net described in words takes, if it is one.
const dsl::Input* input_of(const nn::Layer& net) {
  const auto* const network = dynamic_cast<const dsl::Network*>(&net);
  return network ? &network->input() : nullptr;
}

/// Returns the number of values that a step takes; 0 for nets that do not take values in steps.
std::int64_t width_of(const nn::Layer& net) {
  const dsl::Input* const input = input_of(net);
  if (!input) return net.step_input().width;
  return input->kind == dsl::InputKind::sequence || input->kind == dsl::InputKind::features ? input->size : 0;
}

void check_takes_values(const nn::Layer& net) {
  if (width_of(net) == 0)
    throw ValueError("the net takes tokens, pictures or any number of values; see ferrite_description");
}

/// Makes a stream whose steps are planned, so that the first one allocates nothing.
nn::Stream stream_of(const nn::Layer& net, std::int64_t batch) {
  check_takes_values(net);
  nn::Stream stream = net.stream(batch);
  if (stream.input().width == 0) {  // the first step makes the plan
    const std::vector<float> x(static_cast<std::size_t>(batch * width_of(net)));
    std::vector<float> y(x.size());
    (void)stream.feed(x, y);  // layers of any width keep the first one
    stream.reset();
  }
  if (stream.input().dtype != Dtype::f32 || stream.result().dtype != Dtype::f32)
    throw DtypeError("the net does not take and give f32");
  return stream;
}

/// Returns whether a net runs step by step on values, as far as its layers say.
bool streams(const nn::Layer& net) {
  const dsl::Input* const input = input_of(net);
  return net.streams() && width_of(net) > 0 && !(input && input->kind == dsl::InputKind::features);
}

ferrite_status load(const auto& read, ferrite_model** model) {
  return guarded([&] {
    check(model, "model");
    *model = new ferrite_model{read()};
  });
}

}  // namespace

extern "C" {

const char* ferrite_version() { return FERRITE_VERSION; }

const char* ferrite_instruction_set() {
  const char* name = "";
  (void)guarded([&] { name = instruction_set().data(); });
  return name;
}

const char* ferrite_error() { return last_error.data(); }

ferrite_status ferrite_load(const char* path, ferrite_model** model) {
  return load(
      [&] {
        check(path, "path");
        return train::read_net(std::filesystem::path(reinterpret_cast<const char8_t*>(path)));
      },
      model);
}

ferrite_status ferrite_load_bytes(const void* bytes, size_t size, ferrite_model** model) {
  return load(
      [&] {
        check(bytes, "bytes");
        return train::parse_net({static_cast<const std::byte*>(bytes), size});
      },
      model);
}

void ferrite_free(ferrite_model* model) { delete model; }

ferrite_status ferrite_describe(const ferrite_model* model, ferrite_description* description) {
  return guarded([&] {
    check(model, "model");
    check(description, "description");
    ferrite_description d = known_part(*description, ferrite_description{}, "description");
    const nn::Layer& net = *model->file.net;
    d.inputs = width_of(net);
    d.outputs = 0;
    d.parameters = net.parameter_count();
    d.rate = model->file.rate.value_or(0);
    d.streams = streams(net) ? 1 : 0;
    d.stride = d.delay = 0;
    if (d.streams) {
      const nn::Stream stream = stream_of(net, 1);
      d.outputs = stream.result().width, d.stride = stream.stride(), d.delay = stream.delay();
    }
    std::memcpy(description, &d, std::min(description->size, sizeof d));
  });
}

size_t ferrite_summary(const ferrite_model* model, char* text, size_t room) {
  std::size_t size = 0;
  (void)guarded([&] {
    check(model, "model");
    if (room > 0) check(text, "text");
    const std::string all = model->file.net->summary();
    size = all.size();
    if (room == 0) return;
    const std::size_t n = std::min(size, room - 1);
    std::memcpy(text, all.data(), n);
    text[n] = 0;
  });
  return size;
}

ferrite_status ferrite_run(const ferrite_model* model, int64_t batch, int64_t steps, const float* x, float* y,
                           size_t room, size_t* values) {
  return guarded([&] {
    check(model, "model");
    check(values, "values");
    const nn::Layer& net = *model->file.net;
    check_takes_values(net);
    const std::int64_t width = width_of(net);
    (void)times(batch, static_cast<std::size_t>(width), "sequences");
    const std::span<const float> in = ::values(x, steps, {.batch = batch, .width = width}, "x");
    const dsl::Input* const input = input_of(net);
    const bool rows = input && input->kind == dsl::InputKind::features;
    const Tensor result =
        contiguous(net(Tensor::from(in, rows ? Shape{batch * steps, width} : Shape{batch, steps, width})));
    if (result.dtype() != Dtype::f32) throw DtypeError("the net does not give f32");
    *values = static_cast<std::size_t>(result.numel());
    if (!y) return;
    if (room < *values)
      throw ShapeError("the result has " + std::to_string(*values) + " values " + result.shape().str() +
                       ", there is room for " + std::to_string(room));
    std::copy_n(result.data<float>(), *values, y);
  });
}

ferrite_status ferrite_stream_new(const ferrite_model* model, int64_t batch, ferrite_stream** stream) {
  return guarded([&] {
    check(model, "model");
    check(stream, "stream");
    *stream = new ferrite_stream{stream_of(*model->file.net, batch)};
  });
}

ferrite_status ferrite_stream_clone(const ferrite_stream* stream, ferrite_stream** copy) {
  return guarded([&] {
    check(stream, "stream");
    check(copy, "copy");
    *copy = new ferrite_stream{stream->stream.clone()};
  });
}

void ferrite_stream_free(ferrite_stream* stream) { delete stream; }

ferrite_status ferrite_stream_step(ferrite_stream* stream, const float* x, float* y) {
  return guarded([&] {
    check(stream, "stream");
    stream->stream.step(values(x, 1, stream->stream.input(), "x"), values(y, 1, stream->stream.result(), "y"));
  });
}

ferrite_status ferrite_stream_steps(ferrite_stream* stream, int64_t n, const float* x, float* y) {
  return guarded([&] {
    check(stream, "stream");
    stream->stream.steps(n, values(x, n, stream->stream.input(), "x"), values(y, n, stream->stream.result(), "y"));
  });
}

ferrite_status ferrite_stream_feed(ferrite_stream* stream, const float* x, float* y, int32_t* gave) {
  return guarded([&] {
    check(stream, "stream");
    check(gave, "gave");
    *gave = stream->stream.feed(values(x, 1, stream->stream.input(), "x"), values(y, 1, stream->stream.result(), "y"))
                ? 1
                : 0;
  });
}

ferrite_status ferrite_stream_finish(ferrite_stream* stream, float* y, int32_t* gave) {
  return guarded([&] {
    check(stream, "stream");
    check(gave, "gave");
    *gave = stream->stream.finish(values(y, 1, stream->stream.result(), "y")) ? 1 : 0;
  });
}

ferrite_status ferrite_stream_reset(ferrite_stream* stream) {
  return guarded([&] {
    check(stream, "stream");
    stream->stream.reset();
  });
}

ferrite_status ferrite_slot_new(const ferrite_model* model, int64_t batch, const ferrite_slot_options* options,
                                ferrite_slot** slot) {
  return guarded([&] {
    check(model, "model");
    check(slot, "slot");
    ferrite_slot_options o{sizeof(ferrite_slot_options), 1024, 0, 0, 1};
    if (options) o = known_part(*options, o, "options");
    const nn::StreamSlotOptions own{.crossfade = o.crossfade, .lead = o.lead, .rate = o.rate};
    *slot = new ferrite_slot{nn::StreamSlot(stream_of(*model->file.net, batch), own, model->file.rate.value_or(0)),
                             o.flush != 0};
  });
}

void ferrite_slot_free(ferrite_slot* slot) { delete slot; }

ferrite_status ferrite_slot_steps(ferrite_slot* slot, int64_t n, const float* x, float* y) {
  return guarded([&] {
    check(slot, "slot");
    const std::span<const float> in = values(x, n, slot->slot.input(), "x");
    const std::span<float> out = values(y, n, slot->slot.result(), "y");
    if (!slot->flush) return slot->slot.steps(n, in, out);
    const FlushDenormals guard;
    slot->slot.steps(n, in, out);
  });
}

ferrite_status ferrite_slot_reset(ferrite_slot* slot) {
  return guarded([&] {
    check(slot, "slot");
    slot->slot.reset();
  });
}

ferrite_status ferrite_slot_swap(ferrite_slot* slot, const ferrite_model* model) {
  return guarded([&] {
    check(slot, "slot");
    check(model, "model");
    slot->slot.put(stream_of(*model->file.net, slot->slot.input().batch), model->file.rate.value_or(0));
  });
}

int32_t ferrite_slot_settled(const ferrite_slot* slot) { return slot && slot->slot.settled() ? 1 : 0; }

int64_t ferrite_slot_latency(const ferrite_slot* slot) { return slot ? slot->slot.latency() : 0; }

}  // extern "C"
