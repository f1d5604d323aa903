/// Recurrences forward and backward: rows of a batch shared among threads, chunks of steps, and the sums that give the
/// weights' gradients.
#include "ferrite/nn/recurrent/detail/recurrence.h"

#include <algorithm>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/threads.h"

// ---- forward -------------------------------------------------------------------------------------------

namespace ferrite::nn::detail {

FERRITE_FLOAT_TABLES(RecurrenceKernels, recurrence_kernels, recurrence_in_use)

std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row) {
  constexpr std::int64_t kRows = 8;  // rows of a tile
  const std::int64_t sharers = thread_count();
  if (sharers == 1 || batch <= kRows || batch * work_of_a_row < ferrite::detail::kWorthSharing) return batch;
  const std::int64_t each = (batch + sharers - 1) / sharers;
  return (each + kRows - 1) / kRows * kRows;
}

template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out) {
  const RecurrenceKernels<T>& k = recurrence_in_use.of<T>();
  const std::int64_t rows = rows_of_a_chunk(r.B, r.T_ * r.columns() * (r.P + r.D));
  if (r.B == 0) return;
  ferrite::detail::parallel_for((r.B + rows - 1) / rows, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * rows, end = std::min(r.B, begin + rows);
    ferrite::detail::Room<T> memory(k.memory(r, out, end - begin));
    k.rows(kernels_of<T>(*r.cell), r, out, begin, end, memory.get());
  });
}
template void run_recurrence(const Recurrence<float>&, const RecurrenceOut<float>&);
template void run_recurrence(const Recurrence<double>&, const RecurrenceOut<double>&);

// ---- backward ------------------------------------------------------------------------------------------

using namespace ferrite::detail;

namespace {

/// Rows of the backward pass that wait to be summed: the operands of the weights' gradients, step after step.
template <class T>
struct Waiting {
  Waiting(const Recurrence<T>& r, std::int64_t most, bool projects)
      : places(r.cell->places * r.H),
        x_room(most * r.D),
        h_room(most * r.P),
        d_room(most * places),
        more_room(projects || r.cell->late_gates ? most * r.H : 0),
        dp_room(projects ? most * r.P : 0),
        x(x_room.get()),
        h(h_room.get()),
        d(d_room.get()),
        more(more_room.get()),
        dp(dp_room.get()) {}

  std::int64_t places;
  Room<T> x_room, h_room, d_room, more_room, dp_room;
  T* x;
  T* h;
  T* d;
  T* more;  ///< operands of late gates (r h), or of a projection (o tanh(c))
  T* dp;    ///< cotangents of projected outputs
};

/// Sums the weights' gradients over blocks of 256 waiting rows. Rows of the results are shared among threads.
template <class T>
class WeightGradients {
 public:
  WeightGradients(const Recurrence<T>& r, const RecurrenceGrad<T>& g, const Waiting<T>& rows)
      : rows_(rows), partial_(2 * r.columns() + r.cell->vectors * r.H) {
    const std::int64_t G = r.columns(), H = r.H, width = rows.places;
    const T* const di = rows.d + r.cell->input_place * H;
    GateBlock blocks[4];
    const int count = blocks_of(*r.cell, blocks);
    product(g.dw.weight_ih, G, r.D, G, rows.x, r.D, di, width);
    for (const GateBlock* b = blocks; g.dw.weight_hh && b != blocks + count; ++b)
      product(g.dw.weight_hh + b->gate * H, G, r.P, b->count * H, b->late ? rows.more : rows.h, b->late ? H : r.P,
              rows.d + b->place * H, width);
    product(g.dw.weight_hr, r.P, H, r.P, rows.more, H, rows.dp, r.P);
    sum(g.dw.bias_ih, G, di);
    for (const GateBlock* b = blocks; g.dw.bias_hh && b != blocks + count; ++b)
      sum(g.dw.bias_hh + b->gate * H, b->count * H, rows.d + b->place * H);
    sum(g.dw.weight_ch, r.cell->vectors * H, rows.d + r.cell->vector_place * H);
    count_tasks();
  }

  /// Adds the first n rows, in blocks of 256 of which the last one may be shorter.
  void add(std::int64_t n) {
    const auto task = [&](std::int64_t k) {
      for (std::int64_t begin = 0; begin < n; begin += kBlockK)
        run(k, begin, std::min(kBlockK, n - begin), first_ && begin == 0);
    };
    if (n * work_ < kWorthSharing) {
      for (std::int64_t k = 0; k < tasks_; ++k) task(k);
    } else {
      parallel_for(tasks_, task);
    }
    if (n > 0) first_ = false;
  }

 private:
  /// One gradient: C [M, N] (+)= A^T B over rows; without A, C [N] (+)= the sum of the rows of B.
  struct Sum {
    T* c;
    std::int64_t c_row, M, N;
    const T* a;
    std::int64_t a_row;
    const T* b;
    std::int64_t b_row;
    std::int64_t partial = 0;      ///< offset of the sum of a block of rows, without A
    std::int64_t rows_a_task = 1;  ///< rows of C per task
    std::int64_t first_task = 0;
  };

  void product(T* c, std::int64_t c_row, std::int64_t M, std::int64_t N, const T* a, std::int64_t a_row, const T* b,
               std::int64_t b_row) {
    if (c) sums_.push_back({c, c_row, M, N, a, a_row, b, b_row});
  }
  void sum(T* c, std::int64_t N, const T* b) {
    if (c) sums_.push_back({c, N, 1, N, nullptr, 0, b, rows_.places});
  }
  /// Cuts the work so that there are several tasks for each thread, none too thin to be worth its packing.
  void count_tasks() {
    std::int64_t partial = 0;
    const std::int64_t pieces = thread_count() == 1 ? 1 : 2 * thread_count();
    for (Sum& s : sums_) {
      s.partial = partial;
      if (!s.a) partial += s.N;
      work_ += s.M * s.N;
      s.rows_a_task = std::max<std::int64_t>(32, ((s.M + pieces - 1) / pieces + 15) / 16 * 16);
      s.first_task = tasks_;
      tasks_ += (s.M + s.rows_a_task - 1) / s.rows_a_task;
    }
  }

  void run(std::int64_t task, std::int64_t begin, std::int64_t n, bool first) {
    std::size_t k = sums_.size() - 1;
    while (sums_[k].first_task > task) --k;
    const Sum& s = sums_[k];
    const std::int64_t m = (task - s.first_task) * s.rows_a_task;
    const std::int64_t M = std::min(s.rows_a_task, s.M - m);
    const T* const b = s.b + begin * s.b_row;
    if (s.a)
      return gemm<T>(M, s.N, n, {s.a + begin * s.a_row + m, 1, s.a_row}, {b, s.b_row, 1}, s.c + m * s.c_row, s.c_row,
                     !first);
    T* const sum = first ? s.c : partial_.get() + s.partial;
    const RecurrenceKernels<T>& kernels = recurrence_in_use.of<T>();
    kernels.sum_rows(b, s.b_row, n, s.N, sum);
    if (!first) kernels.add(s.c, sum, s.N);
  }

  const Waiting<T>& rows_;
  Room<T> partial_;
  InlineVector<Sum, 8> sums_;
  std::int64_t tasks_ = 0;
  std::int64_t work_ = 0;  ///< number of elements of all results
  bool first_ = true;
};

/// The states before each step of a row, as the forward pass had them.
template <class T>
struct Before {
  const Recurrence<T>& r;
  const RecurrenceGrad<T>& g;
  const T* zeros;

  const T* h(std::int64_t n, std::int64_t b) const {
    if (r.resets_at(n, b)) return zeros;
    const std::int64_t t = n > 0 ? r.time(n - 1) : 0;
    return n > 0 && r.valid(t, b) ? g.y.at(t, b) : r.h0 + b * r.P;
  }
  const T* c(std::int64_t n, std::int64_t b) const {
    if (r.resets_at(n, b)) return zeros;
    const std::int64_t t = n > 0 ? r.time(n - 1) : 0;
    if (n == 0 || !r.valid(t, b)) return r.c0 + b * r.H;
    return g.saved + ((t * r.B + b) * r.cell->saved + r.cell->saved_c) * r.H;
  }
};

/// The backward pass: some steps at a time for all rows, then the sums over the rows that have gathered.
template <class T>
class BackwardPass {
 public:
  BackwardPass(const Recurrence<T>& r, const RecurrenceGrad<T>& g)
      : r_(r),
        g_(g),
        projects_(r.w.weight_hr.data != nullptr),
        has_products_(projects_ || r.cell->late_gates),
        steps_(std::clamp<std::int64_t>((thread_count() == 1 ? 1 : 4) * kBlockK / r.B, 1, r.T_)),
        P_(padded<T>(r.P)),
        H_(padded<T>(r.H)),
        rows_(r, kBlockK - 1 + steps_ * r.B, projects_),
        sums_(r, g, rows_),
        room_(r.B * (P_ + (has_products_ ? H_ : 0)) + std::max(H_, P_)),
        dx_(g.dx ? steps_ * r.B * r.D : 0),
        dh_(room_.get()),
        dwhole_(dh_ + r.B * P_),
        zeros_(room_.get() + r.B * (P_ + (has_products_ ? H_ : 0))),
        before_{r, g, zeros_},
        chunk_(rows_of_a_chunk(r.B, steps_ * r.columns() * r.P)) {
    std::fill_n(zeros_, std::max(H_, P_), T(0));
  }

  void run() {
    for (std::int64_t b = 0; b < r_.B; ++b) std::copy_n(g_.dh + b * r_.P, r_.P, dh_ + b * P_);
    for (std::int64_t last = r_.T_; last > 0; last -= steps_)
      some_steps(std::max<std::int64_t>(0, last - steps_), last);
    sums_.add(waiting_);
    for (std::int64_t b = 0; b < r_.B; ++b) std::copy_n(dh_ + b * P_, r_.P, g_.dh + b * r_.P);
  }

 private:
  /// Runs the steps last - 1 down to first.
  void some_steps(std::int64_t first, std::int64_t last) {
    const auto chunk = [&](std::int64_t k) {
      const std::int64_t begin = k * chunk_;
      const std::int64_t end = std::min(r_.B, begin + chunk_);
      for (std::int64_t n = last - 1; n >= first; --n) step(n, waiting_ + (last - 1 - n) * r_.B, begin, end);
    };
    parallel_for((r_.B + chunk_ - 1) / chunk_, chunk);
    if (g_.dx) give_dx(first, last);
    waiting_ += (last - first) * r_.B;
    const std::int64_t whole = waiting_ / kBlockK * kBlockK;
    sums_.add(whole);
    keep_from(whole);
  }

  /// Runs one step of some rows; `at` is the waiting position of row 0.
  void step(std::int64_t n, std::int64_t at, std::int64_t begin, std::int64_t end) {
    const std::int64_t t = r_.time(n);
    if (g_.dy) {
      for (std::int64_t b = begin; b < end; ++b)
        if (r_.valid(t, b)) k_.add(dh_ + b * P_, g_.dy.at(t, b), r_.P);
    }
    if (projects_) through_projection(t, at, begin, end);
    for (std::int64_t b = begin; b < end; ++b) one_row(n, t, at + b, b);
    if (r_.cell->late_gates) through_late_gates(t, at, begin, end);
    if (n == 0 && !g_.wants_state) return;
    T* const d = rows_.d + (at + begin) * rows_.places;
    k_.product_back(r_.w.weight_hh.early, end - begin, d, rows_.places, dh_ + begin * P_, P_, true);
    for (std::int64_t b = begin; r_.resets && b < end; ++b) {
      if (!r_.resets_at(n, b)) continue;
      std::fill_n(dh_ + b * P_, P_, T(0));
      if (g_.dc) std::fill_n(g_.dc + b * r_.H, r_.H, T(0));
    }
  }

  void one_row(std::int64_t n, std::int64_t t, std::int64_t at, std::int64_t b) {
    T* const d = rows_.d + at * rows_.places;
    T* const h = rows_.h + at * r_.P;
    std::copy_n(before_.h(n, b), r_.P, h);
    if (!r_.valid(t, b)) {
      std::fill_n(d, rows_.places, T(0));
      std::fill_n(rows_.x + at * r_.D, r_.D, T(0));  // the padding may hold NaN
      if (projects_) std::fill_n(rows_.more + at * r_.H, r_.H, T(0));
      return;
    }
    std::copy_n(r_.x.at(t, b), r_.D, rows_.x + at * r_.D);
    T* const dh = dh_ + b * P_;
    cell_.row_back({.saved = saved_at(t, b),
                    .vectors = r_.w.weight_ch,
                    .y = g_.y.at(t, b),
                    .before = h,
                    .c_before = g_.dc ? before_.c(n, b) : nullptr,
                    .dwhole = projects_ ? dwhole_ + b * H_ : dh,
                    .dh = dh,
                    .dc = g_.dc ? g_.dc + b * r_.H : nullptr,
                    .d = d,
                    .whole = projects_ ? rows_.more + at * r_.H : nullptr,
                    .H = r_.H});
    if (!r_.cell->passes_h) std::fill_n(dh, P_, T(0));  // the whole cotangent passes through the gates
  }

  /// Computes the cotangents of o tanh(c) from those of its projection.
  void through_projection(std::int64_t t, std::int64_t at, std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      T* const dp = rows_.dp + (at + b) * r_.P;
      if (r_.valid(t, b)) {
        std::copy_n(dh_ + b * P_, r_.P, dp);
      } else {
        std::fill_n(dp, r_.P, T(0));
      }
    }
    k_.product_back(r_.w.weight_hr, end - begin, rows_.dp + (at + begin) * r_.P, r_.P, dwhole_ + begin * H_, H_, false);
  }

  /// Passes cotangents through the products of late gates to the earlier gates and to h.
  void through_late_gates(std::int64_t t, std::int64_t at, std::int64_t begin, std::int64_t end) {
    T* const d = rows_.d + (at + begin) * rows_.places;
    k_.product_back(r_.w.weight_hh.late, end - begin, d + r_.cell->early_gates() * r_.H, rows_.places,
                    dwhole_ + begin * H_, H_, false);
    for (std::int64_t b = begin; b < end; ++b) {
      T* const operand = rows_.more + (at + b) * r_.H;
      if (!r_.valid(t, b)) {
        std::fill_n(operand, r_.H, T(0));
        continue;
      }
      cell_.late_back({.product = dwhole_ + b * H_,
                       .saved = saved_at(t, b),
                       .before = rows_.h + (at + b) * r_.P,
                       .d = d + (b - begin) * rows_.places,
                       .operand = operand,
                       .dh = dh_ + b * P_,
                       .H = r_.H});
    }
  }

  const T* saved_at(std::int64_t t, std::int64_t b) const { return g_.saved + (t * r_.B + b) * r_.cell->saved * r_.H; }

  void give_dx(std::int64_t first, std::int64_t last) {
    const std::int64_t n = (last - first) * r_.B;
    const T* const d = rows_.d + waiting_ * rows_.places + r_.cell->input_place * r_.H;
    gemm<T>(n, r_.D, r_.columns(), {d, rows_.places, 1}, {r_.w.weight_ih.data, 1, r_.columns()}, dx_.get(), r_.D);
    for (std::int64_t k = last - 1; k >= first; --k)
      for (std::int64_t b = 0; b < r_.B; ++b)
        std::copy_n(dx_.get() + ((last - 1 - k) * r_.B + b) * r_.D, r_.D, g_.dx.at(r_.time(k), b));
  }

  /// Drops the rows before `begin`, which have been summed.
  void keep_from(std::int64_t begin) {
    if (begin == 0) return;
    const std::int64_t n = waiting_ - begin;
    const auto move = [&](T* rows, std::int64_t width) { std::copy_n(rows + begin * width, n * width, rows); };
    move(rows_.x, r_.D);
    move(rows_.h, r_.P);
    move(rows_.d, rows_.places);
    if (has_products_) move(rows_.more, r_.H);
    if (projects_) move(rows_.dp, r_.P);
    waiting_ = n;
  }

  const Recurrence<T>& r_;
  const RecurrenceGrad<T>& g_;
  const RecurrenceKernels<T>& k_ = recurrence_in_use.of<T>();
  const CellKernels<T>& cell_ = kernels_of<T>(*r_.cell);
  bool projects_;
  bool has_products_;  ///< whether late gates or a projection have a product besides that with h
  std::int64_t steps_, P_, H_;
  Waiting<T> rows_;
  WeightGradients<T> sums_;
  Room<T> room_, dx_;
  T* dh_;
  T* dwhole_;  ///< cotangents of the operands of these products
  T* zeros_;
  Before<T> before_;
  std::int64_t chunk_;
  std::int64_t waiting_ = 0;
};

}  // namespace

template <class T>
void run_recurrence_back(const Recurrence<T>& r, const RecurrenceGrad<T>& g) {
  BackwardPass<T>(r, g).run();
}

template void run_recurrence_back<float>(const Recurrence<float>&, const RecurrenceGrad<float>&);
template void run_recurrence_back<double>(const Recurrence<double>&, const RecurrenceGrad<double>&);

}  // namespace ferrite::nn::detail
