#pragma once
/// The error of an ONNX file that is damaged or holds what is not supported.
#include "ferrite/tensor/error.h"

namespace ferrite::onnx {

/// An ONNX file that is damaged, or a node of it that cannot be run. The message names the file, and the node with its
/// operation where there is one.
class OnnxError : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace ferrite::onnx
