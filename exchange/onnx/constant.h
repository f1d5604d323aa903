#pragma once
/// Constants of a model: tensors that its file holds.
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/exchange/onnx/value.h"

namespace ferrite::onnx::detail {

/// Elements as a file stores them, checked.
struct StoredElements {
  /// Gives the bytes, as many as the shape needs, in their order to a function that takes some at a time: nothing but
  /// the tensor holds all of them.
  using Source = std::function<void(const std::function<void(std::string_view)>&)>;

  ElementType type = ElementType::undefined;
  Shape shape{};
  std::size_t bytes = 0;
  Source source{};
  bool elsewhere = false;  ///< the source reads a file, which is there while the model is read

  /// The elements in the dtype that holds them.
  Tensor decoded() const;
};

/// Elements that are wider in memory than in the file stay as they are there until they are asked for, so that a large
/// model that was only read takes little more memory than its file.
class Constant {
 public:
  Constant() = default;
  explicit Constant(Value value) : value_(std::move(value)) {}
  explicit Constant(StoredElements stored);

  ElementType type() const { return value_.type; }
  bool defined() const { return stored_ != nullptr || value_.defined(); }
  /// Takes what is in a file into memory, as it is stored.
  void keep();
  /// The tensor. Several threads may ask.
  const Value& value() const&;
  Value value() && { return std::as_const(*this).value(); }

 private:
  struct Stored {
    explicit Stored(StoredElements e) : elements(std::move(e)) {}
    StoredElements elements;
    std::once_flag once{};
  };
  mutable Value value_{};
  std::unique_ptr<Stored> stored_{};
};

}  // namespace ferrite::onnx::detail
