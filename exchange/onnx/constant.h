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

/// The elements of a tensor as a file stores them.
struct StoredElements {
  /// A function that passes the bytes in order, as many as the shape needs, to a function that takes some at a time, so
  /// that only the tensor holds all of them. Throws OnnxError for an element that is not valid in its type.
  using Source = std::function<void(const std::function<void(std::string_view)>&)>;

  ElementType type = ElementType::undefined;
  Shape shape{};
  std::size_t bytes = 0;
  Source source{};
  bool elsewhere = false;  ///< the source reads a file, which is there while the model is read

  /// Returns the elements as a tensor in the dtype that holds their type.
  Tensor decoded() const;
};

/// A constant of a model. Its elements stay as the file has them, perhaps narrower, until they are asked for: a large
/// model that was only read takes little more memory than its file.
class Constant {
 public:
  Constant() = default;
  /// `elsewhere` says that the value was made from a file that is only there while the model is read.
  Constant(Value value, bool elsewhere) : value_(std::move(value)), elsewhere_(elsewhere) {}
  explicit Constant(StoredElements stored);

  ElementType type() const { return value_.type; }
  /// Returns whether its bytes, or those that it was made of, lie outside of the model's messages.
  bool elsewhere() const { return elsewhere_; }
  /// Copies elements that are in a file into memory, in as few bytes as possible.
  void keep();
  /// Throws OnnxError for an element that is not valid in its type.
  void check() const;
  const Shape& shape() const { return stored_ ? stored_->elements.shape : value_.tensor.shape(); }
  /// Returns whether a predicate holds for every element, without making a tensor. For floats, before `value` is used.
  bool all_of(const std::function<bool(double)>& holds) const;
  /// Returns the tensor, which the first call makes. Several threads may call it.
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
  bool elsewhere_ = false;
};

}  // namespace ferrite::onnx::detail
