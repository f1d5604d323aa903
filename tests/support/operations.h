#pragma once
// Finds operations by name in the lists of all folders.
#include <stdexcept>
#include <string>

#include "ferrite/nn/operations.h"

namespace support {

inline const ferrite::Primitive& operation(std::string_view name) {
  for (const auto& list : {ferrite::primitives(), ferrite::nn::operations()})
    for (const ferrite::Primitive* p : list)
      if (p->name == name) return *p;
  throw std::invalid_argument("no operation " + std::string(name));
}

}  // namespace support
