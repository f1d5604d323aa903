/// Decodes elements of a file to the dtypes that hold them.
#include "ferrite/exchange/onnx/constant.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <type_traits>

#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/storage_limit.h"

namespace ferrite::onnx::detail {
namespace {

/// Returns a tensor that `fill` writes. Unless it is small, its block of memory is exactly as large as its elements:
/// the pool's may be a quarter larger.
template <class T, class Fill>
Tensor filled(const Shape& shape, const Fill& fill) {
  constexpr std::size_t kLarge = 1 << 10;
  const auto n = static_cast<std::size_t>(shape.numel());
  const std::size_t bytes = n * sizeof(T), readable = ferrite::detail::readable_for(bytes);
  if (bytes < kLarge) return Tensor::build<T>(shape, fill);
  const std::shared_ptr<void> block(std::aligned_alloc(64, readable), std::free);
  if (!block) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(block.get());
  std::memset(first + bytes, 0, readable - bytes);
  fill(std::span<T>(::new (first) T[n], n));
  return Tensor::frozen({first, readable}, {shape, dtype_of<T>}, block);
}

template <class Stored, class Held>
Tensor built(const StoredElements::Source& source, const Shape& shape) {
  return filled<Held>(shape, [&](std::span<Held> out) {
    auto to = out.begin();
    source([&](std::string_view raw) {
      for (std::size_t at = 0; at < raw.size(); at += sizeof(Stored)) {
        Stored value;
        std::memcpy(&value, raw.data() + at, sizeof(Stored));
        *to++ = static_cast<Held>(value);
      }
    });
  });
}

Tensor unpacked(const StoredElements::Source& source, const Shape& shape, int bits, bool is_signed) {
  return filled<std::int32_t>(shape, [&](std::span<std::int32_t> out) {
    auto to = out.begin();
    source([&](std::string_view raw) {
      for (const char c : raw)
        for (int at = 0; at < 8 && to != out.end(); at += bits) {
          const auto byte = static_cast<unsigned>(static_cast<unsigned char>(c));
          const auto value = static_cast<std::int32_t>(byte >> at & ((1U << bits) - 1U));
          *to++ = is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
        }
    });
  });
}

}  // namespace

Tensor StoredElements::decoded() const {
  switch (type) {
    case ElementType::f32: return built<float, float>(source, shape);
    case ElementType::f64: return built<double, double>(source, shape);
    case ElementType::f16: return built<float16, float>(source, shape);
    case ElementType::bf16: return built<bfloat16, float>(source, shape);
    case ElementType::u8: return built<std::uint8_t, std::int32_t>(source, shape);
    case ElementType::i8: return built<std::int8_t, std::int32_t>(source, shape);
    case ElementType::u16: return built<std::uint16_t, std::int32_t>(source, shape);
    case ElementType::i16: return built<std::int16_t, std::int32_t>(source, shape);
    case ElementType::i32: return built<std::int32_t, std::int32_t>(source, shape);
    case ElementType::u32: return built<std::uint32_t, std::int64_t>(source, shape);
    case ElementType::u64:
    case ElementType::i64: return built<std::int64_t, std::int64_t>(source, shape);
    case ElementType::uint4: return unpacked(source, shape, 4, false);
    case ElementType::int4: return unpacked(source, shape, 4, true);
    case ElementType::uint2: return unpacked(source, shape, 2, false);
    case ElementType::int2: return unpacked(source, shape, 2, true);
    case ElementType::boolean: return built<std::uint8_t, bool>(source, shape);
    default: (void)dtype_for(type); throw OnnxError("onnx: elements of this type are not supported");
  }
}

Constant::Constant(StoredElements stored)
    : value_{.type = stored.type, .constant = true},
      stored_(std::make_unique<Stored>(std::move(stored))),
      elsewhere_(stored_->elements.elsewhere) {}

void Constant::keep() {
  if (!stored_ || !stored_->elements.elsewhere) return;
  const StoredElements& from = stored_->elements;
  const auto held = static_cast<std::size_t>(from.shape.numel() * size_of(dtype_for(from.type)));
  if (held <= from.bytes) {
    (void)value();
    return;
  }
  std::vector<char> kept;
  kept.reserve(from.bytes);
  from.source([&](std::string_view part) { kept.insert(kept.end(), part.begin(), part.end()); });
  stored_->elements.source = [kept = std::make_shared<const std::vector<char>>(std::move(kept))](const auto& give) {
    give({kept->data(), kept->size()});
  };
  stored_->elements.elsewhere = false;
}

void Constant::check() const {
  if (stored_ && stored_->elements.source) stored_->elements.source([](std::string_view) {});
}

namespace {

template <class T>
bool each_holds(const StoredElements::Source& source, const std::function<bool(double)>& holds) {
  bool all = true;
  source([&](std::string_view raw) {
    for (std::size_t at = 0; all && at + sizeof(T) <= raw.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, raw.data() + at, sizeof(T));
      all = holds(static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value)));
    }
  });
  return all;
}

}  // namespace

bool Constant::all_of(const std::function<bool(double)>& holds) const {
  if (!stored_ || !stored_->elements.source) {
    const auto numbers = cast(value().tensor, Dtype::f64).to_vector<double>();
    return std::ranges::all_of(numbers, holds);
  }
  const StoredElements::Source& source = stored_->elements.source;
  switch (type()) {
    case ElementType::f32: return each_holds<float>(source, holds);
    case ElementType::f64: return each_holds<double>(source, holds);
    case ElementType::f16: return each_holds<float16>(source, holds);
    default: return each_holds<bfloat16>(source, holds);
  }
}

const Value& Constant::value() const& {
  if (stored_)
    std::call_once(stored_->once, [this] {
      const ferrite::detail::NoStorageLimit unbounded;  // the limit for a running node does not apply to a constant
      value_.tensor = stored_->elements.decoded();
      stored_->elements.source = {};
    });
  return value_;
}

}  // namespace ferrite::onnx::detail
