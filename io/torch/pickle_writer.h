#pragma once
/// Writes pickles of protocol 2 as torch.save does.
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/io/torch/storages.h"

namespace ferrite::io::detail {

/// Writes a pickle value by value. Containers are begun and filled as the opcodes have it: a dictionary, then `mark`,
/// its keys and values one after the other, then `set_items`.
class PickleWriter {
 public:
  explicit PickleWriter(const Storages& storages) : storages_(storages) {}

  void ordered_dictionary();
  void dictionary() { out_ += '}'; }
  void list() { out_ += ']'; }
  void mark() { out_ += '('; }
  void set_items() { out_ += 'u'; }
  void append_items() { out_ += 'e'; }
  /// Ends what began with `mark`.
  void tuple() { out_ += 't'; }

  void none() { out_ += 'N'; }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  /// At least 0, in the shortest form.
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view text);
  /// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)
  void tensor(const Window& window);

  /// The pickle; the writer is done.
  std::string finish();

 private:
  void global(std::string_view module, std::string_view name);
  void little_endian(std::uint64_t value, int bytes);
  void integers(const Shape& values);

  const Storages& storages_;
  std::string out_ = "\x80\x02";
};

}  // namespace ferrite::io::detail
