#include "ferrite/tensor/kernel/chain.h"

#include <array>

#include "ferrite/tensor/ops/detail/cheap.h"

namespace ferrite::detail {
namespace {

template <std::size_t>
using Raw = RawPacket<float>;

/// The code for blocks of so many packets: each link takes the values in registers, and calls the next one last.
template <class Block>
struct Links;
template <std::size_t... I>
struct Links<std::index_sequence<I...>> {
  using Code = void (*)(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values);

  static const float* place(const Link* link, std::int64_t element, std::int64_t row) {
    return link->at + element + row * link->skip;
  }
  static Code next(const Link* link);

  template <bool Repeated>
  static void begin(const Link* link, std::int64_t element, std::int64_t row) {
    if constexpr (Repeated) {
      const Raw<0> x = ei::ploadu<Raw<0>>(link->at);
      next(link)(link + 1, element, row, ((void)I, x)...);
    } else {
      const float* const from = place(link, element, row);
      next(link)(link + 1, element, row, ei::ploadu<Raw<I>>(from + I * kLanes<float>)...);
    }
  }

  template <class Op>
  static void alone(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    next(link)(link + 1, element, row, Op::f(Packet<float>(values)).raw...);
  }

  template <class Op, std::size_t At>
  static Raw<0> joined(Raw<0> value, Raw<0> other) {
    if constexpr (At == 0) return Op::f(Packet<float>(value), Packet<float>(other)).raw;
    return Op::f(Packet<float>(other), Packet<float>(value)).raw;
  }
  template <class Op, std::size_t At, bool Repeated>
  static void with(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    if constexpr (Repeated) {
      const Raw<0> other = ei::ploadu<Raw<0>>(link->at);
      next(link)(link + 1, element, row, joined<Op, At>(values, other)...);
    } else {
      const float* const from = place(link, element, row);
      next(link)(link + 1, element, row, joined<Op, At>(values, ei::ploadu<Raw<I>>(from + I * kLanes<float>))...);
    }
  }

  /// A packet of an operand for each value, or one for all.
  template <bool Repeated, std::size_t K>
  static Packet<float> packet(const float* from) {
    return Packet<float>::load(Repeated ? from : from + K * kLanes<float>);
  }
  template <class Op, std::size_t At, bool Repeated, bool Repeated2>
  static void with_product(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    const float* const a = Repeated ? link->at : place(link, element, row);
    const float* const b = Repeated2 ? link->at2 : link->at2 + element + row * link->skip2;
    next(link)(link + 1, element, row,
               joined<Op, At>(values, Mul::f(packet<Repeated, I>(a), packet<Repeated2, I>(b)).raw)...);
  }

  static void end(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    float* const to = const_cast<float*>(place(link, element, row));  // the one that is written
    (ei::pstoreu(to + I * kLanes<float>, values), ...);
  }
};

using Eight = Links<std::make_index_sequence<8>>;
using Four = Links<std::make_index_sequence<4>>;
using Two = Links<std::make_index_sequence<2>>;
using One = Links<std::make_index_sequence<1>>;

}  // namespace

struct LinkKernel {
  Eight::Code eight = nullptr;
  Four::Code four = nullptr;
  Two::Code two = nullptr;
  One::Code one = nullptr;
};

namespace {

template <std::size_t... I>
typename Links<std::index_sequence<I...>>::Code Links<std::index_sequence<I...>>::next(const Link* link) {
  const LinkKernel& k = *link[1].kernel;
  if constexpr (sizeof...(I) == 8) return k.eight;
  if constexpr (sizeof...(I) == 4) return k.four;
  if constexpr (sizeof...(I) == 2) return k.two;
  if constexpr (sizeof...(I) == 1) return k.one;
}

template <class Op>
constexpr LinkKernel alone = {Eight::alone<Op>, Four::alone<Op>, Two::alone<Op>, One::alone<Op>};
template <class Op, std::size_t At, bool Repeated>
constexpr LinkKernel with = {Eight::with<Op, At, Repeated>, Four::with<Op, At, Repeated>, Two::with<Op, At, Repeated>,
                             One::with<Op, At, Repeated>};
template <class Op, std::size_t At, bool R, bool R2>
constexpr LinkKernel with_product = {Eight::with_product<Op, At, R, R2>, Four::with_product<Op, At, R, R2>,
                                     Two::with_product<Op, At, R, R2>, One::with_product<Op, At, R, R2>};
constexpr LinkKernel kEnd = {Eight::end, Four::end, Two::end, One::end};
/// Chains begin without values: which of the two stands in the first link says its address only.
constexpr LinkKernel kFromRun{}, kFromRepeated{};

template <class Op>
const LinkKernel* link_of(std::size_t at, bool repeated) {
  if constexpr (Op::arity == 1) {
    return &alone<Op>;
  } else {
    if (at == 0) return repeated ? &with<Op, 0, true> : &with<Op, 0, false>;
    return repeated ? &with<Op, 1, true> : &with<Op, 1, false>;
  }
}

template <class... Op>
const LinkKernel* find_link(const Primitive& op, std::size_t at, bool repeated) {
  const LinkKernel* found = nullptr;
  ((found = &op == &pointwise<Op> ? link_of<Op>(at, repeated) : found), ...);
  return found;
}

template <class Op, std::size_t At>
const LinkKernel* product_at(bool repeated, bool repeated2) {
  if (repeated2) return repeated ? &with_product<Op, At, true, true> : &with_product<Op, At, false, true>;
  return repeated ? &with_product<Op, At, true, false> : &with_product<Op, At, false, false>;
}

template <class... Op>
const LinkKernel* find_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2) {
  const LinkKernel* found = nullptr;
  ((found = &op != &pointwise<Op> ? found
            : at == 0             ? product_at<Op, 0>(repeated, repeated2)
                                  : product_at<Op, 1>(repeated, repeated2)),
   ...);
  return found;
}

template <bool Repeated>
void run(const Link* links, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t W = kLanes<float>;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = row * columns;
    const std::int64_t end = at + columns;
    for (; at + 8 * W <= end; at += 8 * W) Eight::begin<Repeated>(links, at, row);
    for (; at + 4 * W <= end; at += 4 * W) Four::begin<Repeated>(links, at, row);
    for (; at + 2 * W <= end; at += 2 * W) Two::begin<Repeated>(links, at, row);
    for (; at < end; at += W) One::begin<Repeated>(links, at, row);
  }
}

}  // namespace

const LinkKernel* link_from(bool repeated) { return repeated ? &kFromRepeated : &kFromRun; }
const LinkKernel* link_through(const Primitive& op, std::size_t at, bool repeated) {
  return find_link<Add, Sub, Mul, Neg, Square, Relu>(op, at, repeated);
}
const LinkKernel* link_through_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2) {
  return find_product<Add, Sub, Mul>(op, at, repeated, repeated2);
}
const LinkKernel* link_to() { return &kEnd; }

void run_chain(const Link* links, std::int64_t rows, std::int64_t columns) {
  if (links->kernel == &kFromRepeated) return run<true>(links, rows, columns);
  run<false>(links, rows, columns);
}

}  // namespace ferrite::detail
