/// The steps of recurrences on the way back: rows through the gates of a cell, and products with transposed weights.
#include "ferrite/nn/recurrent/detail/recurrence_parts.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// Calls f(first element, number of elements) for every packet of a row; the last one may be part of a packet.
template <class T, class F>
inline void each_packet(std::int64_t H, F&& f) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t j = 0;
  for (; j + W <= H; j += W) f(j, W);
  if (j < H) f(j, H - j);
}

template <class T>
[[gnu::always_inline]] inline Packet<T> value(const RowBack<T>& s, std::int64_t k, std::int64_t j) {
  return Packet<T>::load(s.saved + k * s.H + j);
}
template <class T>
[[gnu::always_inline]] inline void give(const RowBack<T>& s, std::int64_t place, std::int64_t j, Packet<T> v,
                                        std::int64_t n) {
  put(s.d + place * s.H + j, v, n);
}

template <class T>
void gru_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P r = value(s, 0, j), z = value(s, 1, j), candidate = value(s, 2, j), q = value(s, 3, j);
    const P dh = P::load(s.dh + j);
    const P dn = dh * (one - z) * (one - candidate * candidate);
    const P dz = dh * (P::load(s.before + j) - candidate) * z * (one - z);
    const P dr = dn * q * r * (one - r);
    give(s, 0, j, dn * r, n);
    give(s, 1, j, dr, n);
    give(s, 2, j, dz, n);
    give(s, 3, j, dn, n);
    put(s.dh + j, dh * z, n);
  });
}

/// All but r, which waits for the product with W_hn.
template <class T>
void gru_reset_before_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P z = value(s, 1, j), candidate = value(s, 2, j);
    const P dh = P::load(s.dh + j);
    give(s, 1, j, dh * (P::load(s.before + j) - candidate) * z * (one - z), n);
    give(s, 2, j, dh * (one - z) * (one - candidate * candidate), n);
    put(s.dh + j, dh * z, n);
  });
}

template <class T>
void lstm_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P i = value(s, 0, j), f = value(s, 1, j), g = value(s, 2, j), o = value(s, 3, j);
    const P tc = tanh(value(s, 4, j));
    const P dh = P::load(s.dwhole + j);
    const P dc = P::load(s.dc + j) + dh * o * (one - tc * tc);
    give(s, 0, j, dc * g * i * (one - i), n);
    give(s, 1, j, dc * P::load(s.c_before + j) * f * (one - f), n);
    give(s, 2, j, dc * i * (one - g * g), n);
    give(s, 3, j, dh * tc * o * (one - o), n);
    put(s.dc + j, dc * f, n);
    if (s.whole) put(s.whole + j, o * tc, n);
  });
}

template <class T, bool kRelu>
void rnn_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P y = P::load(s.y + j);
    const P dh = P::load(s.dh + j);
    const P slope = kRelu ? select(y > P(T(0)), P(T(1)), P(T(0))) : P(T(1)) - y * y;
    give(s, 0, j, dh * slope, n);
  });
}

}  // namespace

template <class T>
void row_back(CellType cell, const RowBack<T>& s) {
  switch (cell) {
    case CellType::gru: return gru_row_back(s);
    case CellType::gru_reset_before: return gru_reset_before_row_back(s);
    case CellType::lstm: return lstm_row_back(s);
    case CellType::rnn_tanh: return rnn_row_back<T, false>(s);
    case CellType::rnn_relu: return rnn_row_back<T, true>(s);
  }
}

namespace {

/// Stores the sums of a row as whole packets, or adds them.
template <class T>
struct StoreBack {
  T* to;
  std::int64_t to_row;
  bool add;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t, const Packet<T>* sums) const {
    T* const at = to + row * to_row + j;
    (add ? Packet<T>::load(at) + sums[0] : sums[0]).store(at);
  }
};

}  // namespace

template <class T>
void product_back(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to, std::int64_t to_row,
                  bool add) {
  each_unit<T, 1>(w, rows, a, a_row, StoreBack<T>{to, to_row, add});
}

template <class T>
void reset_back(const ResetBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P product = P::load(s.product + j), r = P::load(s.r + j), h = P::load(s.h + j);
    put(s.dr + j, product * h * r * (one - r), n);
    put(s.rh + j, r * h, n);
    (P::load(s.dh + j) + product * r).store(s.dh + j);
  });
}

template void row_back(CellType, const RowBack<float>&);
template void row_back(CellType, const RowBack<double>&);
template void product_back(const GateMatrix<float>&, std::int64_t, const float*, std::int64_t, float*, std::int64_t,
                           bool);
template void product_back(const GateMatrix<double>&, std::int64_t, const double*, std::int64_t, double*, std::int64_t,
                           bool);
template void reset_back(const ResetBack<float>&);
template void reset_back(const ResetBack<double>&);

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
