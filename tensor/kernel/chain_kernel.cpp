/// The code of chains of cheap operations: one function for each link and number of packets, called by the one before.
#include <utility>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <std::size_t>
using Raw = RawPacket<float>;

/// The code for blocks of a number of packets: each link receives the values in registers and calls the next one last.
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
      const Raw<0> x = set_raw(*link->at);
      next(link)(link + 1, element, row, ((void)I, x)...);
    } else {
      const float* const from = place(link, element, row);
      next(link)(link + 1, element, row, load_raw(from + I * kLanes<float>)...);
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
      const Raw<0> other = set_raw(*link->at);
      next(link)(link + 1, element, row, joined<Op, At>(values, other)...);
    } else {
      const float* const from = place(link, element, row);
      next(link)(link + 1, element, row, joined<Op, At>(values, load_raw(from + I * kLanes<float>))...);
    }
  }

  /// Loads a packet of an operand for each value, or one for all.
  template <bool Repeated, std::size_t K>
  static Packet<float> packet(const float* from) {
    if constexpr (Repeated) return Packet<float>(*from);
    return Packet<float>::load(from + K * kLanes<float>);
  }
  template <class Op, std::size_t At, bool Repeated, bool Repeated2>
  static void with_product(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    const float* const a = Repeated ? link->at : place(link, element, row);
    const float* const b = Repeated2 ? link->at2 : link->at2 + element + row * link->skip2;
    next(link)(link + 1, element, row,
               joined<Op, At>(values, Mul::f(packet<Repeated, I>(a), packet<Repeated2, I>(b)).raw)...);
  }

  static void end(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    float* const to = const_cast<float*>(place(link, element, row));  // the address that is written
    (store_raw(to + I * kLanes<float>, values), ...);
  }
  static void end_in_memory(const Link* link, std::int64_t element, std::int64_t row, Raw<I>... values) {
    float* const to = const_cast<float*>(place(link, element, row));
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Raw<0>) != 0) return end(link, element, row, values...);
    (stream_raw(to + I * kLanes<float>, values), ...);
  }
};

using Eight = Links<std::make_index_sequence<8>>;
using Four = Links<std::make_index_sequence<4>>;
using Two = Links<std::make_index_sequence<2>>;
using One = Links<std::make_index_sequence<1>>;

struct LinkCode : LinkKernel {
  constexpr LinkCode(Eight::Code e, Four::Code f, Two::Code t, One::Code o) : eight(e), four(f), two(t), one(o) {}
  Eight::Code eight;
  Four::Code four;
  Two::Code two;
  One::Code one;
};

template <std::size_t... I>
typename Links<std::index_sequence<I...>>::Code Links<std::index_sequence<I...>>::next(const Link* link) {
  const LinkCode& k = static_cast<const LinkCode&>(*link[1].kernel);
  if constexpr (sizeof...(I) == 8) return k.eight;
  if constexpr (sizeof...(I) == 4) return k.four;
  if constexpr (sizeof...(I) == 2) return k.two;
  if constexpr (sizeof...(I) == 1) return k.one;
}

template <class Op>
constexpr LinkCode alone = {Eight::alone<Op>, Four::alone<Op>, Two::alone<Op>, One::alone<Op>};
template <class Op, std::size_t At, bool Repeated>
constexpr LinkCode with = {Eight::with<Op, At, Repeated>, Four::with<Op, At, Repeated>, Two::with<Op, At, Repeated>,
                           One::with<Op, At, Repeated>};
template <class Op, std::size_t At, bool R, bool R2>
constexpr LinkCode with_product = {Eight::with_product<Op, At, R, R2>, Four::with_product<Op, At, R, R2>,
                                   Two::with_product<Op, At, R, R2>, One::with_product<Op, At, R, R2>};
constexpr LinkCode kEnd = {Eight::end, Four::end, Two::end, One::end};
constexpr LinkCode kEndInMemory = {Eight::end_in_memory, Four::end_in_memory, Two::end_in_memory, One::end_in_memory};
/// A chain begins without values: the first link only determines the address.
constexpr LinkKernel kFromRun{}, kFromRepeated{};

template <bool Repeated>
void run(const Link* links, const ChainRows& rows) {
  constexpr std::int64_t W = kLanes<float>;
  for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    std::int64_t at = row * rows.columns;
    const std::int64_t end = at + rows.columns;
    if (!rows.far)
      for (; at + 8 * W <= end; at += 8 * W) Eight::begin<Repeated>(links, at, row);
    for (; at + 4 * W <= end; at += 4 * W) Four::begin<Repeated>(links, at, row);
    for (; at + 2 * W <= end; at += 2 * W) Two::begin<Repeated>(links, at, row);
    for (; at < end; at += W) One::begin<Repeated>(links, at, row);
  }
}

void run_chain(const Link* links, const ChainRows& rows) {
  if (links->kernel == &kFromRepeated) return run<true>(links, rows);
  run<false>(links, rows);
}

/// The code of the cheap operations, in their order.
template <class... Op>
struct Table {
  static constexpr ChainKernels chains(const ChainKernels& products) {
    ChainKernels k = products;
    std::size_t i = 0;
    (through<Op>(k.through[i++]), ...);
    return k;
  }
  static constexpr ChainKernels products() {
    ChainKernels k = {.from = {&kFromRun, &kFromRepeated},
                      .through = {},
                      .product = {},
                      .to = {&kEnd, &kEndInMemory},
                      .run = run_chain};
    std::size_t i = 0;
    (product<Op>(k.product[i++]), ...);
    return k;
  }

 private:
  template <class O>
  static constexpr void through(const LinkKernel* (&to)[2][2]) {
    if constexpr (O::arity == 1) {
      to[0][0] = to[0][1] = to[1][0] = to[1][1] = &alone<O>;
    } else {
      to[0][0] = &with<O, 0, false>, to[0][1] = &with<O, 0, true>;
      to[1][0] = &with<O, 1, false>, to[1][1] = &with<O, 1, true>;
    }
  }
  template <class O>
  static constexpr void product(const LinkKernel* (&to)[2][2][2]) {
    to[0][0][0] = &with_product<O, 0, false, false>, to[0][0][1] = &with_product<O, 0, false, true>;
    to[0][1][0] = &with_product<O, 0, true, false>, to[0][1][1] = &with_product<O, 0, true, true>;
    to[1][0][0] = &with_product<O, 1, false, false>, to[1][0][1] = &with_product<O, 1, false, true>;
    to[1][1][0] = &with_product<O, 1, true, false>, to[1][1][1] = &with_product<O, 1, true, true>;
  }
};

}  // namespace

constinit const ChainKernels chain_kernels =
    Table<Add, Sub, Mul, Neg, Square, Relu>::chains(Table<Add, Sub, Mul>::products());

}  // namespace ferrite::detail::FERRITE_LEVEL
