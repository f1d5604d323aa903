#pragma once
/// 64-bit digests of tensors and texts (FNV-1a).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "ferrite/tensor/ops.h"

namespace digests {

class Digest {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) state_ = (state_ ^ p[i]) * 0x100000001B3U;
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  /// Adds dtype, shape and bits. All NaNs count as one: the compiler decides which of two NaNs a sum returns, and eager
  /// and fused code differ in it (support::identical also takes them for equal).
  void add(const ferrite::Tensor& t) {
    add(t.spec().str());
    ferrite::visit_dtype(t.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (T v : t.to_vector<T>()) {
        if constexpr (std::is_floating_point_v<T>)
          if (std::isnan(v)) v = std::numeric_limits<T>::quiet_NaN();
        add(&v, sizeof v);
      }
    });
  }
  std::string str() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
    return text;
  }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325U;
};

inline std::string digest_of(std::string_view text) {
  Digest d;
  d.add(text);
  return d.str();
}
inline std::string digest_of(const ferrite::Tensors& list) {
  Digest d;
  for (const ferrite::Tensor& t : list)
    if (t.defined())
      d.add(t);
    else
      d.add("undefined");
  return d.str();
}

}  // namespace digests
