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

/// Elements as a file stores them.
struct StoredElements {
  /// Gives the bytes, as many as the shape needs, in their order to a function that takes some at a time: nothing but
  /// the tensor holds all of them. Throws OnnxError where an element is none of its type's.
  using Source = std::function<void(const std::function<void(std::string_view)>&)>;

  ElementType type = ElementType::undefined;
  Shape shape{};
  std::size_t bytes = 0;
  Source source{};
  bool elsewhere = false;  ///< the source reads a file, which is there while the model is read

  /// The elements in the dtype that holds them.
  Tensor decoded() const;
};

/// Elements stay as the file has them, where they may be narrower, until they are asked for: a large model that was
/// only read takes little more memory than its file.
class Constant {
 public:
  Constant() = default;
  /// `elsewhere`: it was made of what is in a file while the model is read.
  Constant(Value value, bool elsewhere) : value_(std::move(value)), elsewhere_(elsewhere) {}
  explicit Constant(StoredElements stored);

  ElementType type() const { return value_.type; }
  /// Whether its bytes, or those that it was made of, are not among the model's messages.
  bool elsewhere() const { return elsewhere_; }
  /// Takes what is in a file into memory, in as few bytes as it can be.
  void keep();
  /// Throws OnnxError where an element is none of its type's.
  void check() const;
  const Shape& shape() const { return stored_ ? stored_->elements.shape : value_.tensor.shape(); }
  /// Whether something holds of every element. For floats, before `value` was asked for; no tensor is made.
  bool all_of(const std::function<bool(double)>& holds) const;
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
  bool elsewhere_ = false;
};

}  // namespace ferrite::onnx::detail
