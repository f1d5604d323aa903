#pragma once
/// The error of an ONNX file that is damaged or not supported.
#include "ferrite/tensor/error.h"

namespace ferrite::onnx {

/// The error for an ONNX file that is damaged, or with a node that cannot be run. The message names the file and, where
/// there is one, the node with its operation.
class OnnxError : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace ferrite::onnx
