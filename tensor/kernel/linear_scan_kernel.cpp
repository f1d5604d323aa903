/// Linear recurrences of rows of channels, and their gradients: packets across channels, step by step.
#include "ferrite/tensor/kernel/linear_scan.h"

#include <algorithm>
#include <utility>

#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr std::int64_t kBlock = 256;  ///< steps that form one chain in the gradient of an a that is the same for all
constexpr unsigned kStrip = 8;        ///< packets whose h stay in registers
constexpr unsigned kGradientStrip = 4;

// ---- complex numbers, two lanes each -------------------------------------------------------------------

template <class T, std::size_t... I>
Packet<T> swapped(Packet<T> x, std::index_sequence<I...>) {
  return RawPacket<T>(__builtin_shufflevector(x.raw, x.raw, (static_cast<int>(I) ^ 1)...));
}
template <class T, std::size_t... I>
Packet<T> parts(Packet<T> x, std::index_sequence<I...>, std::index_sequence<0>) {
  return RawPacket<T>(__builtin_shufflevector(x.raw, x.raw, (static_cast<int>(I) & ~1)...));
}
template <class T, std::size_t... I>
Packet<T> parts(Packet<T> x, std::index_sequence<I...>, std::index_sequence<1>) {
  return RawPacket<T>(__builtin_shufflevector(x.raw, x.raw, (static_cast<int>(I) | 1)...));
}
template <class T>
using AllLanes = std::make_index_sequence<static_cast<std::size_t>(kLanes<T>)>;
/// Returns i x; with `Conjugate` -i x.
template <class T, bool Conjugate>
Packet<T> turned(Packet<T> x) {
  alignas(64) static constexpr T signs[17] = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
  const Packet<T> swap = swapped(x, AllLanes<T>{});
  return swap * Packet<T>::load(signs + (Conjugate ? 0 : 1));
}

/// Returns a h + c, or conj(a) h + c.
template <bool Complex, bool Conjugate, class T>
[[gnu::always_inline]] inline Packet<T> multiply_add(Packet<T> a, Packet<T> h, Packet<T> c) {
  if constexpr (Complex) {
    const Packet<T> re = parts(a, AllLanes<T>{}, std::index_sequence<0>{});
    const Packet<T> im = parts(a, AllLanes<T>{}, std::index_sequence<1>{});
    return fma(re, h, fma(im, turned<T, Conjugate>(h), c));
  } else {
    return fma(a, h, c);
  }
}
/// Returns x conj(h).
template <bool Complex, class T>
[[gnu::always_inline]] inline Packet<T> times_conjugate(Packet<T> x, Packet<T> h) {
  if constexpr (Complex) {
    const Packet<T> re = parts(h, AllLanes<T>{}, std::index_sequence<0>{});
    const Packet<T> im = parts(h, AllLanes<T>{}, std::index_sequence<1>{});
    return fma(re, x, im * turned<T, true>(x));
  } else {
    return x * h;
  }
}

// ---- packets of channels -------------------------------------------------------------------------------

/// Packets of channels. The last of several begins so that it ends with the last channel: the part that it shares with
/// the one before is computed twice, to the same bits. A single one may have fewer lanes.
template <class T>
struct WholePackets {
  static constexpr std::int64_t W = kLanes<T>;
  std::int64_t channels, first;  ///< first: the first packet of a strip
  std::int64_t at(std::int64_t p) const { return std::min((first + p) * W, channels - W); }
  Packet<T> load(const T* from, std::int64_t p) const { return Packet<T>::load(from + at(p)); }
  void store(T* to, std::int64_t p, Packet<T> v) const { v.store(to + at(p)); }
};
template <class T>
struct PartOfPacket {
  LanesWithin<T> lanes;
  Packet<T> load(const T* from, std::int64_t) const { return lanes.load(from); }
  void store(T* to, std::int64_t, Packet<T> v) const { lanes.store(to, v); }
};

/// Steps in the order in which they are computed.
template <class T>
struct Steps {
  const LinearScanRow<T>& row;
  std::int64_t at(std::int64_t s) const { return (row.reverse ? row.steps - 1 - s : s) * row.width; }
  const T* a(std::int64_t s) const { return row.a + (row.same_a ? 0 : at(s)); }
  /// Returns whether h counts as 0 before step s.
  bool fresh(std::int64_t s) const {
    if (!row.resets) return false;
    return row.reverse ? s > 0 && row.resets[row.steps - s] : row.resets[s];
  }
};

/// Returns the k-th packet to process, in the order in which the steps lie in memory, since caches prefetch only in one
/// direction.
template <bool Down>
constexpr std::int64_t packet_at(std::int64_t k, std::int64_t packets) {
  return Down ? packets - 1 - k : k;
}

// ---- the recurrence --------------------------------------------------------------------------------------

/// Scans P packets of channels, whose h stay in registers.
template <bool Complex, bool Down, unsigned P, class T, class Lanes>
void scan_strip(const LinearScanRow<T>& row, const Lanes& lanes, const T* b, T* out) {
  const Steps<T> steps{row};
  Packet<T> h[P];
#pragma GCC unroll 8
  for (unsigned p = 0; p < P; ++p) h[p] = row.h0 ? lanes.load(row.h0, p) : Packet<T>(T(0));
  for (std::int64_t s = 0; s < row.steps; ++s) {
    const std::int64_t at = steps.at(s);
    const T* a = steps.a(s);
    const bool fresh = steps.fresh(s);
#pragma GCC unroll 8
    for (unsigned k = 0; k < P; ++k) {
      const unsigned p = Down ? P - 1 - k : k;
      if (fresh) h[p] = T(0);
      h[p] = multiply_add<Complex, false>(lanes.load(a, p), h[p], lanes.load(b + at, p));
      lanes.store(out + at, p, h[p]);
    }
  }
}

/// Scans any number of packets: h is read again from the step before, which is near.
template <bool Complex, bool Down, class T>
void scan_wide(const LinearScanRow<T>& row, const WholePackets<T>& lanes, std::int64_t packets, const T* b, T* out) {
  const Steps<T> steps{row};
  const T* before = row.h0;
  for (std::int64_t s = 0; s < row.steps; ++s) {
    const std::int64_t at = steps.at(s);
    const T *a = steps.a(s), *now = b + at;
    T* to = out + at;
    if (before && !steps.fresh(s)) {
      for (std::int64_t k = 0; k < packets; ++k) {
        const std::int64_t p = packet_at<Down>(k, packets);
        lanes.store(to, p, multiply_add<Complex, false>(lanes.load(a, p), lanes.load(before, p), lanes.load(now, p)));
      }
    } else {
      for (std::int64_t p = 0; p < packets; ++p)
        lanes.store(to, p, multiply_add<Complex, false>(lanes.load(a, p), Packet<T>(T(0)), lanes.load(now, p)));
    }
    before = to;
  }
}

// ---- the gradient ----------------------------------------------------------------------------------------

template <class T>
struct GradientOperands {
  const T *h, *dh;
  T *da, *db, *dh0;
};

template <bool Complex, bool Down, unsigned P, class T, class Lanes>
void gradient_strip(const LinearScanRow<T>& row, const Lanes& lanes, const GradientOperands<T>& o) {
  const Steps<T> steps{row};
  const bool sums = row.same_a && o.da;
  Packet<T> db[P], part[P], total[P];
#pragma GCC unroll 4
  for (unsigned p = 0; p < P; ++p) db[p] = part[p] = total[p] = T(0);
  std::int64_t in_block = 0;
  bool arrives = false;  // whether a later step reads h of this one
  for (std::int64_t s = row.steps - 1; s >= 0; --s) {
    const std::int64_t at = steps.at(s);
    const T* a = s + 1 < row.steps ? steps.a(s + 1) : nullptr;
    const bool fresh = steps.fresh(s);
    const T* before = fresh ? nullptr : s == 0 ? row.h0 : o.h + steps.at(s - 1);
#pragma GCC unroll 4
    for (unsigned k = 0; k < P; ++k) {
      const unsigned p = Down ? P - 1 - k : k;
      const Packet<T> dh = lanes.load(o.dh + at, p);
      db[p] = arrives ? multiply_add<Complex, true>(lanes.load(a, p), db[p], dh) : dh;
      lanes.store(o.db + at, p, db[p]);
      if (!o.da) continue;
      const Packet<T> da = before ? times_conjugate<Complex>(db[p], lanes.load(before, p)) : Packet<T>(T(0));
      if (sums) {
        part[p] = part[p] + da;
      } else {
        lanes.store(o.da + at, p, da);
      }
    }
    arrives = !fresh;
    if (!sums || ++in_block < kBlock) continue;
    in_block = 0;
#pragma GCC unroll 4
    for (unsigned p = 0; p < P; ++p) {
      total[p] = total[p] + part[p];
      part[p] = T(0);
    }
  }
#pragma GCC unroll 4
  for (unsigned p = 0; p < P; ++p) {
    if (sums) lanes.store(o.da, p, total[p] + part[p]);
    const Packet<T> zero = T(0);
    if (o.dh0)
      lanes.store(o.dh0, p, arrives ? multiply_add<Complex, true>(lanes.load(steps.a(0), p), db[p], zero) : zero);
  }
}

/// Computes the gradient for any number of packets, with an a for every step.
template <bool Complex, bool Down, class T>
void gradient_wide(const LinearScanRow<T>& row, const WholePackets<T>& lanes, std::int64_t packets,
                   const GradientOperands<T>& o) {
  const Steps<T> steps{row};
  const T* later = nullptr;
  for (std::int64_t s = row.steps - 1; s >= 0; --s) {
    const std::int64_t at = steps.at(s);
    const T *a = s + 1 < row.steps ? steps.a(s + 1) : nullptr, *dh = o.dh + at;
    T* db = o.db + at;
    const bool fresh = steps.fresh(s);
    const T* before = fresh ? nullptr : s == 0 ? row.h0 : o.h + steps.at(s - 1);
    for (std::int64_t k = 0; k < packets; ++k) {
      const std::int64_t p = packet_at<Down>(k, packets);
      Packet<T> now = lanes.load(dh, p);
      if (later) now = multiply_add<Complex, true>(lanes.load(a, p), lanes.load(later, p), now);
      lanes.store(db, p, now);
      if (o.da)
        lanes.store(o.da + at, p, before ? times_conjugate<Complex>(now, lanes.load(before, p)) : Packet<T>(T(0)));
    }
    later = fresh ? nullptr : db;
  }
  const Packet<T> zero = T(0);
  for (std::int64_t p = 0; p < packets && o.dh0; ++p)
    lanes.store(o.dh0, p,
                later ? multiply_add<Complex, true>(lanes.load(steps.a(0), p), lanes.load(later, p), zero) : zero);
}

// ---- strips ----------------------------------------------------------------------------------------------

/// Calls f.operator()<P>(...) for P = n.
template <unsigned Most, class F>
void with_packets(std::int64_t n, const F& f) {
  [&]<unsigned... P>(std::integer_sequence<unsigned, P...>) {
    ((n == P + 1 ? f.template operator()<P + 1>() : void()), ...);
  }
  (std::make_integer_sequence<unsigned, Most>{});
}

/// Calls f.operator()<P>(lanes of P packets) for all channels, in strips.
template <unsigned Most, class T, class F>
void in_strips(std::int64_t channels, const F& f) {
  constexpr std::int64_t W = kLanes<T>;
  if (channels < W) return f.template operator()<1>(PartOfPacket<T>{LanesWithin<T>(0, channels)});
  const std::int64_t packets = (channels + W - 1) / W;
  for (std::int64_t first = 0; first < packets; first += Most)
    with_packets<Most>(std::min<std::int64_t>(Most, packets - first), [&]<unsigned P>() {
      f.template operator()<P>(WholePackets<T>{channels, first});
    });
}

template <bool Complex, class T>
void scan_of(const LinearScanRow<T>& row, const T* b, T* h) {
  constexpr std::int64_t W = kLanes<T>;
  const std::int64_t packets = (row.channels + W - 1) / W;
  const WholePackets<T> all{row.channels, 0};
  if (packets > kStrip)
    return row.reverse ? scan_wide<Complex, true>(row, all, packets, b, h)
                       : scan_wide<Complex, false>(row, all, packets, b, h);
  in_strips<kStrip, T>(row.channels, [&]<unsigned P>(const auto& lanes) {
    row.reverse ? scan_strip<Complex, true, P>(row, lanes, b, h) : scan_strip<Complex, false, P>(row, lanes, b, h);
  });
}
template <class T>
void scan(const LinearScanRow<T>& row, const T* b, T* h) {
  row.complex ? scan_of<true>(row, b, h) : scan_of<false>(row, b, h);
}

template <bool Complex, class T>
void gradient_of(const LinearScanRow<T>& row, const GradientOperands<T>& o) {
  constexpr std::int64_t W = kLanes<T>;
  const std::int64_t packets = (row.channels + W - 1) / W;
  const WholePackets<T> all{row.channels, 0};
  if (packets > kGradientStrip && !row.same_a)
    return row.reverse ? gradient_wide<Complex, false>(row, all, packets, o)
                       : gradient_wide<Complex, true>(row, all, packets, o);
  in_strips<kGradientStrip, T>(row.channels, [&]<unsigned P>(const auto& lanes) {
    row.reverse ? gradient_strip<Complex, false, P>(row, lanes, o) : gradient_strip<Complex, true, P>(row, lanes, o);
  });
}
template <class T>
void gradient(const LinearScanRow<T>& row, const T* h, const T* dh, T* da, T* db, T* dh0) {
  const GradientOperands<T> o{h, dh, da, db, dh0};
  row.complex ? gradient_of<true>(row, o) : gradient_of<false>(row, o);
}

template <class T>
constexpr LinearScanKernels<T> kernels_of() {
  return {.scan = scan<T>, .gradient = gradient<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(LinearScanKernels, linear_scan_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
