#pragma once
/// Pictures as PNG files of 8 bits a channel.
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train::detail {

struct Picture {
  std::int64_t height = 0, width = 0, channels = 0;
  std::string png;
};

/// Of f32 [H, W] or [C, H, W] in 0..1. Throws DtypeError, ShapeError, ValueError.
Picture encode_picture(const Tensor& pixels);

}  // namespace ferrite::train::detail
