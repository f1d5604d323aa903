#pragma once
/// Writing pickles of protocol 2 as torch.save does, and finding the tensors of a file that share a storage.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io::detail {

/// A range of memory that becomes one storage.
struct Range {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  Dtype dtype = Dtype::f32;
};

/// A tensor as it is written: a window on a storage.
struct Window {
  std::string_view name;
  Tensor tensor;
  std::size_t storage = 0;
};

/// Decides which tensors share a storage.
class Storages {
 public:
  /// Throws IoError for a name that occurs twice, holds a NUL or is not UTF-8, and for undefined tensors.
  Storages(std::span<const NamedTensor> tensors, std::string_view where);

  /// Returns the windows, in the order of the tensors.
  const std::vector<Window>& windows() const { return windows_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  /// Returns the number of elements in front of a window in its storage.
  std::int64_t offset(const Window& window) const;

 private:
  void place(const std::vector<std::size_t>& group);

  std::vector<Window> windows_;
  std::vector<Range> ranges_;
};

/// Returns the bytes of a PyTorch archive: a pickle and the storages that it names. Throws IoError, which begins with
/// `where`, for a pickle above 100 MB.
std::vector<std::byte> torch_archive(std::string_view pickle, const Storages& storages, std::string_view where);

/// Writes a pickle value by value. Containers are filled as the opcodes require: a dictionary, then `mark`, its keys
/// and values in turn, then `set_items`.
class PickleWriter {
 public:
  explicit PickleWriter(const Storages& storages) : storages_(storages) {}

  void ordered_dictionary();
  void dictionary() { out_ += '}'; }
  void list() { out_ += ']'; }
  void mark() { out_ += '('; }
  void set_items() { out_ += 'u'; }
  void append_items() { out_ += 'e'; }
  /// Ends a tuple that began with `mark`.
  void tuple() { out_ += 't'; }

  void none() { out_ += 'N'; }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  /// Writes an integer of at least 0 in the shortest form.
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view text);
  /// Writes a tensor as _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks).
  void tensor(const Window& window);

  /// Ends the pickle and returns its bytes. The writer must not be used afterwards.
  std::string finish();

 private:
  void global(std::string_view module, std::string_view name);
  void little_endian(std::uint64_t value, int bytes);
  void integers(const Shape& values);

  const Storages& storages_;
  std::string out_ = "\x80\x02";
};

}  // namespace ferrite::io::detail
