// Stacks of recurrent layers on the memory of PyTorch's tensors: packing, running, and their gradients.
#include "torch_layers.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/storage.h"
#include "ferrite/tensor/threads.h"
#include "memory.h"

namespace ferrite::python {
namespace {

using ferrite::detail::GateMatrix;
using ferrite::detail::Room;

/// The weights of one direction of one layer in PyTorch's layout, or their gradients.
template <class P>
struct Matrices {
  P ih, hh, b_ih{}, b_hh{}, hr{};
  Matrices(const Sizes& s, const std::vector<P>& all, std::int64_t k) {
    const P* at = all.data() + k * s.weights_each();
    ih = *at++, hh = *at++;
    if (s.bias) b_ih = *at++, b_hh = *at++;
    if (s.P != s.H) hr = *at;
  }
};

template <class T>
std::int64_t lanes() {
  return ferrite::detail::products_in_use.of<T>().lanes;
}

/// The matrix w [G * units, K] as tiles of products read its transpose: a packed copy.
template <class T>
class Gates {
 public:
  Gates(const T* w, std::int64_t K, std::int64_t gates, std::int64_t units)
      : room_(ferrite::detail::gate_pack_size<T>(K, gates, units)) {
    const std::int64_t W = lanes<T>();
    for (std::int64_t g = 0; g < gates; ++g)
      ferrite::detail::pack_transposed<T>(w + g * units * K, K, K, units, room_.get() + g * K * W, gates * K);
    matrix_ = {room_.get(), K, units, W, gates * K * W, K * W};
  }
  const GateMatrix<T>& matrix() const { return matrix_; }

 private:
  Room<T> room_;
  GateMatrix<T> matrix_;
};

/// The rows of w [K, units] as one gate, in the order of a cell's places: what the way back multiplies by.
template <class T>
class RowsAsGate {
 public:
  RowsAsGate(std::int64_t K, std::int64_t units)
      : room_(ferrite::detail::gate_pack_size<T>(K, 1, units)), K_(K), units_(units) {}
  void rows(const T* w, std::int64_t n, std::int64_t at) {
    const std::int64_t W = lanes<T>();
    for (std::int64_t j = 0; j < units_; j += W)
      ferrite::detail::pack_gates<T>(w + j, units_, n, 1, std::min(W, units_ - j), 0, room_.get() + j * K_ + at * W);
  }
  GateMatrix<T> matrix() { return ferrite::detail::packed_gates<T>(room_.get(), K_, 1, units_); }

 private:
  Room<T> room_;
  std::int64_t K_, units_;
};

/// Copies blocks of N elements to rows that are `row` apart.
template <std::size_t N, class T>
void scatter(const T* block, std::int64_t count, T* to, std::int64_t row) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * row, block + i * static_cast<std::int64_t>(N), N * sizeof(T));
}

/// Writes the transpose of from [rows, columns] to `to` [columns, rows], in bands of rows of the result that stay in
/// the second cache.
template <class T>
void transpose_to(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  const std::int64_t W = lanes<T>();
  if (rows == W) return ferrite::detail::pack_transposed<T>(from, columns, columns, rows, to, columns);
  constexpr std::int64_t kBand = 32;
  alignas(64) T block[kBand * 16];
  for (std::int64_t k = 0; k < columns; k += kBand) {
    const std::int64_t m = std::min(kBand, columns - k);
    for (std::int64_t j = 0; j < rows; j += W) {
      const std::int64_t n = std::min(W, rows - j);
      ferrite::detail::pack_transposed<T>(from + j * columns + k, columns, m, n, block, m);
      T* const at = to + k * rows + j;
      if (n == W && W == 16) {
        scatter<16>(block, m, at, rows);
      } else if (n == W && W == 8) {
        scatter<8>(block, m, at, rows);
      } else if (n == W && W == 4) {
        scatter<4>(block, m, at, rows);
      } else {
        for (std::int64_t i = 0; i < m; ++i) std::copy_n(block + i * W, n, at + i * rows);
      }
    }
  }
}

/// A copy of rows [T, B, n] that packed sequences hold without padding, with zeros after their ends.
template <class T>
void unpack(const T* from, std::int64_t from_row, const std::int64_t* batch_sizes, const Sizes& s, std::int64_t n,
            T* to) {
  for (std::int64_t t = 0; t < s.T; ++t, to += s.B * n) {
    for (std::int64_t b = 0; b < batch_sizes[t]; ++b, from += from_row) std::copy_n(from, n, to + b * n);
    std::fill(to + batch_sizes[t] * n, to + s.B * n, T(0));
  }
}
template <class T>
void pack(const T* from, const std::int64_t* batch_sizes, const Sizes& s, std::int64_t n, T* to) {
  for (std::int64_t t = 0; t < s.T; ++t, from += s.B * n) to = std::copy_n(from, batch_sizes[t] * n, to);
}

/// The operands of a call in memory that kernels may read: copies where the given memory ends too early.
template <class T>
class Readable {
 public:
  Readable(const Sizes& s, const Operands<T>& o) : x(o.x), h0(o.h0), c0(o.c0) {
    if (o.batch_sizes) {
      x_.emplace(s.T * s.B * s.D);
      unpack(o.x.data, o.x.row, o.batch_sizes, s, s.D, x_->get());
      lengths_.resize(static_cast<std::size_t>(s.B));
      for (std::int64_t t = 0; t < s.T; ++t) std::fill_n(lengths_.begin(), o.batch_sizes[t], t + 1);
    } else if (!stays_on_page(o.x.data, static_cast<std::size_t>(o.x_bytes))) {
      x_.emplace(s.T * s.B * s.D);
      for (std::int64_t t = 0; t < s.T; ++t)
        for (std::int64_t b = 0; b < s.B; ++b) std::copy_n(o.x.at(t, b), s.D, x_->get() + (t * s.B + b) * s.D);
    }
    if (x_) x = {x_->get(), s.B * s.D, s.D};
    const std::int64_t nh = h0 ? 0 : s.B * s.P, nc = !s.cell->has_memory ? 0 : c0 ? s.count() * s.B * s.H : s.B * s.H;
    if (nh + nc == 0) return;
    states_.emplace(nh + nc);
    T* const room = states_->get();
    if (nh) h0 = room, std::fill_n(room, nh, T(0)), h_step = 0;
    if (nc && !c0) std::fill_n(room + nh, nc, T(0)), c_step = 0;
    if (nc && c0) std::copy_n(c0, nc, room + nh);  // read in whole packets
    if (nc) c0 = room + nh;
  }
  const T* h(const Sizes& s, std::int64_t k) const { return h0 + h_step * k * s.B * s.P; }
  const T* c(const Sizes& s, std::int64_t k) const { return c0 ? c0 + c_step * k * s.B * s.H : nullptr; }
  const std::int64_t* lengths() const { return lengths_.empty() ? nullptr : lengths_.data(); }

  Rows<const T*> x;

 private:
  const T* h0;
  const T* c0;
  std::int64_t h_step = 1, c_step = 1;  ///< 0: the same zeros for all layers
  std::optional<Room<T>> x_{}, states_{};
  std::vector<std::int64_t> lengths_{};
};

/// Returns the recurrence of a call, without the weights and first states of a layer.
template <class T>
nn::detail::Recurrence<T> recurrence_of(const Sizes& s, const Readable<T>& in) {
  return {.cell = s.cell,
          .T_ = s.T,
          .B = s.B,
          .D = s.D,
          .H = s.H,
          .P = s.P,
          .reverse = false,
          .x = in.x,
          .w = {},
          .h0 = nullptr,
          .c0 = nullptr,
          .lengths = in.lengths(),
          .resets = {}};
}

}  // namespace

template <class T>
void run_forward(const Sizes& s, const Operands<T>& o, T* y, T* h, T* c, T* saved) {
  const Readable<T> in(s, o);
  const Saved parts(s);
  const std::int64_t rows = s.T * s.B, G = s.columns();
  std::optional<Room<T>> between;  // outputs of layers where nothing is saved
  const bool apart = o.batch_sizes != nullptr;
  if (!saved && (s.layers > 1 || apart)) between.emplace(2 * parts.output);
  Room<T> biases(2 * G);
  nn::detail::Recurrence<T> r = recurrence_of(s, in);
  T* out = y;
  for (std::int64_t l = 0; l < s.layers; ++l) {
    r.D = s.features_into(l);
    T* const of_layer = saved ? saved + l * parts.layer : nullptr;
    out = saved ? of_layer : l + 1 < s.layers || apart ? between->get() + l % 2 * parts.output : y;
    for (std::int64_t d = 0; d < s.directions; ++d) {
      const std::int64_t k = l * s.directions + d;
      const Matrices<const T*> w(s, o.weights, k);
      const Gates<T> ih(w.ih, r.D, s.cell->gates, s.H), hh(w.hh, s.P, s.cell->gates, s.H);
      std::optional<Gates<T>> hr;
      if (w.hr) hr.emplace(w.hr, s.H, 1, s.P);
      if (s.bias) std::copy_n(w.b_ih, G, biases.get()), std::copy_n(w.b_hh, G, biases.get() + G);
      r.w = {.weight_ih = ih.matrix(),
             .weight_hh = {.early = hh.matrix(), .late = {}},
             .bias_ih = s.bias ? biases.get() : nullptr,
             .bias_hh = s.bias ? biases.get() + G : nullptr,
             .weight_hr = hr ? hr->matrix() : GateMatrix<T>{}};
      r.reverse = d == 1;
      r.h0 = in.h(s, k), r.c0 = in.c(s, k);
      nn::detail::run_recurrence<T>(
          r, {.y = {out + d * s.P, s.B * s.width(), s.width()},
              .h = h + k * s.B * s.P,
              .c = c ? c + k * s.B * s.H : nullptr,
              .saved = saved && s.cell->saved > 0 ? of_layer + parts.output + d * parts.direction : nullptr});
    }
    r.x = {out, s.B * s.width(), s.width()};
  }
  if (apart) return pack(out, o.batch_sizes, s, s.width(), y);
  if (out != y) std::copy_n(out, rows * s.width(), y);
}

template <class T>
void run_backward(const Sizes& s, const Operands<T>& o, const T* saved, const Gradients<T>& g) {
  const Readable<T> in(s, o);
  const Saved parts(s);
  const std::int64_t G = s.columns(), rows = s.T * s.B, each = s.weights_each();
  const bool apart = o.batch_sizes != nullptr;
  nn::detail::Recurrence<T> r = recurrence_of(s, in);
  // Layers below the lowest one whose gradients are wanted are left out.
  std::int64_t lowest = 0;
  if (!g.dx && !g.dh0 && !g.dc0)
    while (std::all_of(g.weights.begin() + lowest * s.directions * each,
                       g.weights.begin() + (lowest + 1) * s.directions * each, [](T* p) { return p == nullptr; }))
      ++lowest;
  std::optional<Room<T>> dy_room, dx_room, dx_other;
  Rows<const T*> dy = g.dy;
  if (apart && dy) {
    dy_room.emplace(rows * s.width());
    unpack(dy.data, dy.row, o.batch_sizes, s, s.width(), dy_room->get());
    dy = {dy_room->get(), s.B * s.width(), s.width()};
  }
  Room<T> states(s.B * (s.P + s.H));
  for (std::int64_t l = s.layers - 1; l >= lowest; --l) {
    const std::int64_t D = r.D = s.features_into(l);
    const T* const below = saved + (l - 1) * parts.layer;
    r.x = l == 0 ? in.x : Rows<const T*>{below, s.B * s.width(), s.width()};
    const T* const y = saved + l * parts.layer;
    const bool to_x = l > lowest || (l == 0 && g.dx);
    const bool in_place = l == 0 && !apart;
    if (to_x && !in_place) dx_room.emplace(rows * D);
    if (to_x && s.directions == 2) dx_other.emplace(rows * D);
    const auto rows_of = [&](T* p) -> Rows<T*> {
      return in_place && g.batch_first ? Rows<T*>{p, D, s.T * D} : Rows<T*>{p, s.B * D, D};
    };
    T* const dx = !to_x ? nullptr : in_place ? g.dx : dx_room->get();
    for (std::int64_t d = 0; d < s.directions; ++d) {
      const std::int64_t k = l * s.directions + d;
      const Matrices<const T*> w(s, o.weights, k);
      const Matrices<T*> dw(s, g.weights, k);
      const bool wants_state = g.dh0 || g.dc0;
      std::optional<RowsAsGate<T>> hh, hr;
      if (s.T > 1 || wants_state) {
        hh.emplace(G, s.P);
        nn::detail::GateBlock blocks[4];
        const int n = nn::detail::blocks_of(*s.cell, blocks);
        for (const nn::detail::GateBlock* b = blocks; b != blocks + n; ++b)
          hh->rows(w.hh + b->gate * s.H * s.P, b->count * s.H, b->place * s.H);
      }
      if (w.hr) hr.emplace(s.P, s.H), hr->rows(w.hr, s.P, 0);
      std::optional<Room<T>> ih, dih, dhh, dhr;
      if (dx) ih.emplace(D * G), transpose_to(w.ih, G, D, ih->get());
      if (dw.ih) dih.emplace(D * G);
      if (dw.hh) dhh.emplace(s.P * G);
      if (dw.hr) dhr.emplace(s.H * s.P);
      r.w = {.weight_ih = ih ? ferrite::detail::plain_gates<T>(ih->get(), G, D, s.H, s.H) : GateMatrix<T>{},
             .weight_hh = {.early = hh ? hh->matrix() : GateMatrix<T>{}, .late = {}},
             .weight_hr = hr ? hr->matrix() : GateMatrix<T>{}};
      r.reverse = d == 1;
      r.h0 = in.h(s, k), r.c0 = in.c(s, k);
      T* const dh = g.dh0 ? g.dh0 + k * s.B * s.P : states.get();
      T* const dc = !s.cell->has_memory ? nullptr : g.dc0 ? g.dc0 + k * s.B * s.H : states.get() + s.B * s.P;
      const auto begin = [&](T* to, const T* from, std::int64_t n) {
        if (!to) return;
        if (from)
          std::copy_n(from + k * n, n, to);
        else
          std::fill_n(to, n, T(0));
      };
      begin(dh, g.dhn, s.B * s.P);
      begin(dc, g.dcn, s.B * s.H);
      const auto room = [](std::optional<Room<T>>& m) { return m ? m->get() : nullptr; };
      nn::detail::run_recurrence_back<T>(
          r, {.y = {y + d * s.P, s.B * s.width(), s.width()},
              .saved = s.cell->saved > 0 ? y + parts.output + d * parts.direction : nullptr,
              .dy = dy ? Rows<const T*>{dy.data + d * s.P, dy.step, dy.row} : Rows<const T*>{},
              .wants_state = wants_state,
              .dh = dh,
              .dc = dc,
              .dx = dx ? rows_of(d == 0 ? dx : dx_other->get()) : Rows<T*>{},
              .dw = {room(dih), room(dhh), dw.b_ih, dw.b_hh, room(dhr), nullptr}});
      if (dih) transpose_to(dih->get(), D, G, dw.ih);
      if (dhh) transpose_to(dhh->get(), s.P, G, dw.hh);
      if (dhr) transpose_to(dhr->get(), s.H, s.P, dw.hr);
      if (dx && d == 1)
        for (std::int64_t i = 0; i < rows * D; ++i) dx[i] += dx_other->get()[i];
    }
    if (!to_x) continue;
    if (l == 0 && apart) return pack(dx, o.batch_sizes, s, D, g.dx);
    if (l == 0) return;
    dy_room.swap(dx_room);
    dy = {dy_room->get(), s.B * D, D};
  }
}

template void run_forward<float>(const Sizes&, const Operands<float>&, float*, float*, float*, float*);
template void run_forward<double>(const Sizes&, const Operands<double>&, double*, double*, double*, double*);
template void run_backward<float>(const Sizes&, const Operands<float>&, const float*, const Gradients<float>&);
template void run_backward<double>(const Sizes&, const Operands<double>&, const double*, const Gradients<double>&);

}  // namespace ferrite::python
