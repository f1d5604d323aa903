/// Writes pickles of protocol 2 as CPython and PyTorch do.
#include "ferrite/io/torch/pickle_writer.h"

#include <bit>
#include <utility>

#include "ferrite/io/torch/pickle_globals.h"

namespace ferrite::io::detail {

void PickleWriter::tensor(const Window& window) {
  const Tensor& t = window.tensor;
  const Range& range = storages_.ranges()[window.storage];
  global("torch._utils", "_rebuild_tensor_v2");
  out_ += "((";
  text("storage");
  global("torch", storage_class_of(written_as(range.dtype)));
  text(std::to_string(window.storage));
  text("cpu");
  integer(range.bytes / size_of(range.dtype));
  out_ += "tQ";
  integer(storages_.offset(window));
  integers(t.shape());
  integers(t.strides());
  boolean(false);
  ordered_dictionary();
  out_ += "tR";
}

void PickleWriter::ordered_dictionary() {
  global("collections", "OrderedDict");
  out_ += ")R";
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xff);
}

void PickleWriter::text(std::string_view text) {
  out_ += 'X';
  little_endian(text.size(), 4);
  out_ += text;
}

void PickleWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value < 256) {
    out_ += 'K';
    little_endian(bits, 1);
  } else if (value < 65536) {
    out_ += 'M';
    little_endian(bits, 2);
  } else if (value < (std::int64_t{1} << 31)) {
    out_ += 'J';
    little_endian(bits, 4);
  } else {
    out_ += "\x8a\x08";
    little_endian(bits, 8);
  }
}

void PickleWriter::real(double value) {
  out_ += 'G';
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) out_ += static_cast<char>((bits >> (8 * i)) & 0xff);  // the one big-endian opcode
}

void PickleWriter::integers(const Shape& values) {
  mark();
  for (const std::int64_t value : values) integer(value);
  tuple();
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace ferrite::io::detail
