/// Records pointwise operations: the functors of the kernels, compiled for the level `written`
/// (tensor/kernel/written.h).
#define FERRITE_WRITTEN
#define FERRITE_LEVEL written
#include "ferrite/tensor/kernel/written_functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_math.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::detail {
namespace {

/// The values of the function that is being recorded by this thread.
FERRITE_PER_THREAD constinit PerThread<std::vector<WrittenNode>*> recorded(nullptr);

bool same(const WrittenNode& a, const WrittenNode& b) {
  const auto lane = [](const WrittenNode& n) { return std::string_view(n.lane ? n.lane : ""); };
  return a.kind == b.kind && a.suffix == b.suffix && a.bits == b.bits && a.operands == b.operands &&
         std::string_view(a.name) == b.name && (a.lane != nullptr) == (b.lane != nullptr) && lane(a) == lane(b);
}

}  // namespace

std::int32_t record_written(const WrittenNode& node) {
  const auto at = std::ranges::find_if(*recorded(), [&](const WrittenNode& n) { return same(n, node); });
  const auto position = static_cast<std::int32_t>(at - recorded()->begin());
  if (at == recorded()->end()) recorded()->push_back(node);
  return position;
}

WrittenConstant written_constant(std::int32_t value) {
  const WrittenNode& n = (*recorded())[static_cast<std::size_t>(value)];
  return {std::string_view(n.name) == kWrittenConstant, n.bits};
}

namespace {

using ferrite::detail::record_written;
using ferrite::detail::Types;

template <class T>
constexpr WrittenKind kNumber = sizeof(T) == 4 ? WrittenKind::floats : WrittenKind::doubles;
template <class T>
constexpr WrittenKind kInteger = sizeof(T) == 4 ? WrittenKind::ints : WrittenKind::longs;

std::int32_t operand(WrittenFunction& f, WrittenKind kind) {
  const std::size_t position = f.operands.size();
  f.operands.push_back(record_written({kWrittenOperand, kind, kind, {}, position}));
  return f.operands.back();
}
template <class T>
written::Packet<T> packet(WrittenFunction& f) {
  return written::RawPacket<T>(operand(f, kNumber<T>));
}
/// Returns an operand that is a condition, and its integers.
template <class T>
written::RawBits<T> condition(WrittenFunction& f) {
  return written::RawBits<T>(operand(f, kInteger<T>));
}
template <class T>
written::Mask<T> mask_of(written::RawBits<T> x) {
  constexpr WrittenKind mask = sizeof(T) == 4 ? WrittenKind::float_mask : WrittenKind::double_mask;
  return {written::call_written<mask, kNumber<T>>("mask_of", x)};
}

template <class T>
std::int32_t result_of(written::Packet<T> y) {
  return y.raw.value;
}
template <class T>
std::int32_t result_of(written::Mask<T> y) {
  return written::call_written<kInteger<T>, kNumber<T>>("truth", y.raw).value;
}
template <WrittenKind kind>
std::int32_t result_of(written::Symbol<kind> y) {
  return y.value;
}

template <class F, class T, std::size_t... i>
std::int32_t recorded_result(WrittenFunction& f, std::index_sequence<i...>) {
  if constexpr (std::is_same_v<F, written::Where>) {
    const auto m = mask_of<T>(condition<T>(f));
    const auto a = packet<T>(f), b = packet<T>(f);
    return result_of(select(m, a, b));
  } else if constexpr (F::types == Types::boolean) {
    using namespace written;
    const auto a = condition<T>(f);
    if constexpr (F::arity == 1)
      return result_of(a ^
                       RawBits<T>(record_written(
                           {kWrittenConstant, kInteger<T>, kInteger<T>, {}, sizeof(T) == 4 ? 0xffffffffU : ~0ULL})));
    if constexpr (std::is_same_v<F, LogicalAnd>) return result_of(a & condition<T>(f));
    if constexpr (std::is_same_v<F, LogicalOr>) return result_of(a | condition<T>(f));
  } else {
    const std::array<written::Packet<T>, sizeof...(i)> x{((void)i, packet<T>(f))...};
    return result_of(F::f(x[i]...));
  }
}

template <class F, class T>
void record(WrittenFunction& f) {
  f.result = recorded_result<F, T>(f, std::make_index_sequence<F::arity>());
}
using Record = void (*)(WrittenFunction&);
struct Records {
  Record f32, f64;
};
template <class... F>
Records at_place(written::FunctorList<F...>, int place) {
  static constexpr Records list[] = {{record<F, float>, record<F, double>}...};
  return list[place];
}
template <class... List>
Records at_place(std::tuple<List...>, WrittenPlace where) {
  Records found{};
  int family = 0;
  ((family++ == where.family ? found = at_place(List{}, where.place) : Records{}), ...);
  return found;
}

}  // namespace

WrittenFunction written_function(const Primitive& op, Dtype dtype) {
  WrittenFunction f;
  const WrittenPlace where = written_place(op);
  if (where.family < 0) return f;
  const Records records = at_place(written::Families{}, where);
  recorded() = &f.values;
  (dtype == Dtype::f32 ? records.f32 : records.f64)(f);
  recorded() = nullptr;
  return f;
}

}  // namespace ferrite::detail
