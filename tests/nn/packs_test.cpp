// Copies of weights in the order of the kernels live exactly as long as the elements stay the same.
#include <functional>
#include <numeric>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/pack_weights.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {51, stream, 0}, -1, 1, dtype);
}
Tensor input() { return draw({4, 9, 5}, 1); }

/// Computes the definition, which reads the weights where they are.
Tensor unrolled(const nn::Gru& gru) {
  nn::Gru other(gru.input_size(), gru.hidden_size(), {.form = nn::Form::unrolled},
                {0, {}, gru.parameters()[0].dtype()});
  nn::copy_values(gru, other);
  return other(cast(input(), gru.parameters()[0].dtype()));
}

bool packed(const Parameter& p) { return p.peek().impl()->storage->packs.load() != nullptr; }

/// Returns the number of elements in the columns of some gates that a kernel would find in another place.
template <class T>
std::int64_t misplaced(const detail::GateMatrix<T>& m, const Tensor& given, std::int64_t first, std::int64_t gates) {
  const Tensor w = contiguous(given);
  const std::int64_t lanes = detail::products_in_use.of<T>().lanes;
  std::int64_t wrong = m.K != w.shape()[0];
  for (std::int64_t k = 0; k < w.shape()[0]; ++k)
    for (std::int64_t g = 0; g < gates; ++g)
      for (std::int64_t u = 0; u < m.units; ++u) {
        const T found = m.data[k * m.k_step + u / lanes * m.u_step + g * m.g_step + u % lanes];
        wrong += found != w.data<T>()[k * w.shape()[1] + (first + g) * m.units + u];
      }
  return wrong;
}
template <class T>
std::int64_t misplaced(const T* at, const Tensor& given) {
  if (!given.defined()) return at != nullptr;
  return at ? std::inner_product(at, at + given.numel(), given.data<T>(), std::int64_t{0}, std::plus<>(),
                                 std::not_equal_to<>())
            : -1;
}

/// Returns all weights of a cell, packed or as they are stored.
template <class T>
void check_placed(const nn::detail::GatedCell& cell, std::int64_t H, bool copied) {
  const std::int64_t P = cell.projects ? 4 : H, G = cell.gates, early = cell.early_gates();
  const auto some = [](const Shape& s, std::uint64_t stream) { return draw(s, stream, dtype_of<T>); };
  const RecurrentWeights<Tensor> w{.weight_ih = transpose(some({G * H, 3}, 31)),
                                   .weight_hh = some({P, G * H}, 32),
                                   .bias_ih = some({G * H}, 33),
                                   .bias_hh = some({G * H}, 34),
                                   .weight_hr = cell.projects ? some({H, P}, 35) : Tensor(),
                                   .weight_ch = cell.vectors ? some({cell.vectors * H}, 36) : Tensor()};
  const auto rows = w.map([](const Tensor& t) { return detail::RowMajor(t); });
  const RecurrentWeights<bool> packs{copied, copied, copied, copied, copied, copied};
  std::int64_t counted = 0, taken = 0;
  (void)nn::detail::pack_weights<T>(cell, rows, packs,
                                    [&](const Tensor&, const auto&, std::int64_t n, const auto&) -> const T* {
                                      counted += n;
                                      return nullptr;
                                    });
  detail::Room<T> room(counted);
  const auto k = nn::detail::pack_weights<T>(
      cell, rows, packs, [&](const Tensor&, const auto&, std::int64_t n, const auto& fill) -> const T* {
        T* const at = room.get() + taken;
        taken += n;
        fill(at);
        return at;
      });
  BOOST_TEST(taken == counted);
  BOOST_TEST((counted > 0) == copied);
  BOOST_TEST(misplaced(k.weight_ih, w.weight_ih, 0, G) == 0);
  BOOST_TEST(misplaced(k.weight_hh.early, w.weight_hh, 0, early) == 0);
  BOOST_TEST((k.weight_hh.late.data != nullptr) == (cell.late_gates > 0));
  if (cell.late_gates) BOOST_TEST(misplaced(k.weight_hh.late, w.weight_hh, early, cell.late_gates) == 0);
  BOOST_TEST((k.weight_hr.data != nullptr) == cell.projects);
  if (cell.projects) BOOST_TEST(misplaced(k.weight_hr, w.weight_hr, 0, 1) == 0);
  BOOST_TEST(misplaced(k.bias_ih, w.bias_ih) == 0);
  BOOST_TEST(misplaced(k.bias_hh, w.bias_hh) == 0);
  BOOST_TEST(misplaced(k.weight_ch, w.weight_ch) == 0);
}

/// Returns a network that has packed its weights.
nn::Gru warm() {
  nn::Gru gru(5, 12, {.seed = 1});
  (void)gru(input());
  BOOST_TEST(packed(gru.weights().weight_hh));
  BOOST_TEST(!packed(gru.weights().weight_ih));  // few rows: the general product reads it where it is
  (void)gru(input());
  BOOST_TEST(packed(gru.weights().weight_ih));
  return gru;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(packs)

BOOST_AUTO_TEST_CASE(made_once_for_one_content) {
  const nn::Gru gru = warm();
  const auto* const first = gru.weights().weight_hh.peek().impl()->storage->packs.load();
  for (int i = 0; i < 3; ++i) (void)gru(input());
  BOOST_TEST(gru.weights().weight_hh.peek().impl()->storage->packs.load() == first);
  BOOST_TEST(first->packs.load() == nullptr);
}

BOOST_AUTO_TEST_CASE(not_for_a_single_short_use) {
  const nn::Gru gru(5, 12, {.seed = 1});
  const Tensor step = slice(input(), 1, 0, 1);
  const Tensor y = gru(step);
  BOOST_TEST(!packed(gru.weights().weight_hh));
  BOOST_TEST(identical(gru(step), y));  // the second use makes the copy
  BOOST_TEST(packed(gru.weights().weight_hh));
  BOOST_TEST(identical(gru(step), y));
}

BOOST_AUTO_TEST_CASE(new_after_an_optimisers_step) {
  const nn::Gru gru = warm();
  nn::Adam adam(gru.parameters(), {.learning_rate = 0.1});
  for (int i = 0; i < 5; ++i) {
    {
      Tape tape;
      const Tensor loss = sum(square(gru(input())));
      adam.step(tape.grad(loss, gru.parameters()));
    }
    BOOST_TEST(identical(gru(input()), unrolled(gru)), "after step " << i);
  }
}

BOOST_AUTO_TEST_CASE(new_after_loading) {
  const nn::Gru gru = warm();
  const nn::Gru other(5, 12, {.seed = 2});
  const Tensor before = gru(input());
  nn::copy_values(other, gru);
  BOOST_TEST(identical(gru(input()), other(input())));
  BOOST_TEST(!identical(gru(input()), before));
}

BOOST_AUTO_TEST_CASE(of_one_dtype_and_window) {
  const nn::Gru gru = warm();
  const nn::Gru wide(5, 12, {0, {}, Dtype::f64});
  for (std::size_t i = 0; i < 4; ++i) wide.parameters()[i].assign(cast(gru.parameters()[i].peek(), Dtype::f64));
  BOOST_TEST(identical(wide(cast(input(), Dtype::f64)), unrolled(wide)));
  // Two views of one storage.
  const Tensor both = draw({2, 5, 36}, 3);
  const Tensor w_hh = draw({12, 36}, 4), h0 = zeros({4, 12});
  const auto run = [&](const Tensor& w_ih) {
    return gru_sequence(input(), {w_ih, w_hh}, h0, {.batch_first = true})[0];
  };
  for (const std::int64_t k : {0, 1, 0})
    BOOST_TEST(identical(run(select(both, 0, k)), run(contiguous(select(both, 0, k)) + 0)), "window " << k);
}

BOOST_AUTO_TEST_CASE(shared_parameters_share_them) {
  const nn::Gru gru = warm();
  const RecurrentWeights<Tensor> w = nn::values_of(gru.weights());
  const auto* const first = w.weight_hh.impl()->storage->packs.load();
  (void)gru_sequence(input(), w, zeros({4, 12}), {.batch_first = true});
  BOOST_TEST(w.weight_hh.impl()->storage->packs.load() == first);
}

/// Few rows are multiplied by a transposed matrix, as in a gradient or with weights [out, in]: the second use makes the
/// copy.
BOOST_AUTO_TEST_CASE(of_a_transposed_matrix_that_few_rows_meet_again) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t rows : {1, 3, 8}) {
      const Tensor w = draw({75, 130}, 21, dtype), x = draw({rows, 130}, 22, dtype);
      const auto* const storage = w.impl()->storage;
      const Tensor first = matmul(x, transpose(w));
      BOOST_TEST(storage->packs.load() == nullptr);
      BOOST_TEST(identical(matmul(x, transpose(w)), first));
      const auto* const pack = storage->packs.load();
      BOOST_TEST(pack != nullptr);
      BOOST_TEST(identical(matmul(x, transpose(w)), first));
      BOOST_TEST(storage->packs.load() == pack);
    }
}

/// A matrix that changes between its uses, or is multiplied by many rows, or is small, has no copy.
BOOST_AUTO_TEST_CASE(not_of_a_matrix_that_changes_or_meets_many_rows) {
  Tensor w = draw({75, 130}, 23);
  const Tensor more = draw({75, 130}, 24), x = draw({2, 130}, 25), many = draw({9, 130}, 26);
  for (int i = 0; i < 3; ++i) {
    const Tensor wanted = matmul(many, transpose(w));
    BOOST_TEST(identical(matmul(slice(many, 0, 0, 2), transpose(w)), slice(wanted, 0, 0, 2)), "content " << i);
    BOOST_TEST(w.impl()->storage->packs.load() == nullptr);
    detail::accumulate(w, more);
  }
  const Tensor small = draw({20, 30}, 27), row = draw({1, 30}, 28);
  for (int i = 0; i < 3; ++i) (void)matmul(row, transpose(small));
  BOOST_TEST(small.impl()->storage->packs.load() == nullptr);
  // New contents drop the copy of the old ones.
  for (int i = 0; i < 3; ++i) (void)matmul(x, transpose(w));
  BOOST_TEST(w.impl()->storage->packs.load() != nullptr);
  detail::accumulate(w, more);
  BOOST_TEST(identical(matmul(x, transpose(w)), matmul(x, contiguous(transpose(w)))));
}

/// The buffer of a gradient is overwritten in place: a pack of it must be dropped.
BOOST_AUTO_TEST_CASE(gone_when_a_buffer_is_rewritten) {
  Tensor w = draw({12, 36}, 5);
  const Tensor more = draw({12, 36}, 6);
  const Tensor x = draw({4, 9, 5}, 1), w_ih = draw({5, 36}, 7), h0 = zeros({4, 12});
  const auto run = [&] { return gru_sequence(x, {w_ih, w}, h0, {.batch_first = true})[0]; };
  const Tensor before = run();
  const auto* const storage = w.impl()->storage;
  BOOST_TEST(storage->packs.load() != nullptr);
  const Tensor wanted = w + more;
  detail::accumulate(w, more);
  BOOST_REQUIRE(w.impl()->storage == storage);  // in place
  BOOST_TEST(storage->packs.load() == nullptr);
  BOOST_TEST(identical(w, wanted));
  const Tensor after = run();
  w = wanted;
  BOOST_TEST(identical(after, run()));
  BOOST_TEST(!identical(after, before));
}

/// The pool reuses a block for another tensor.
BOOST_AUTO_TEST_CASE(gone_when_a_block_is_used_again) {
  const Tensor x = draw({4, 9, 5}, 1), w_ih = draw({5, 36}, 7), h0 = zeros({4, 12});
  const auto run = [&](const Tensor& w) { return gru_sequence(x, {w_ih, w}, h0, {.batch_first = true})[0]; };
  for (std::uint64_t k = 0; k < 20; ++k) {
    const Tensor fresh = draw({12, 36}, 100 + k);
    const Tensor copy = contiguous(transpose(contiguous(transpose(fresh))));
    BOOST_TEST(identical(run(fresh), run(copy)));
  }
}

/// Elements are also written without a kernel, and the memory of the copies is reused.
BOOST_AUTO_TEST_CASE(gone_when_a_block_is_filled_from_values) {
  const Tensor x = draw({4, 9, 5}, 1), w_ih = draw({5, 36}, 7), h0 = zeros({4, 12});
  const auto run = [&](const Tensor& w) { return gru_sequence(x, {w_ih, w}, h0, {.batch_first = true})[0]; };
  std::uint64_t misses = 0;
  for (std::uint64_t k = 0; k < 20; ++k) {
    const Tensor values = draw({12, 36}, 200 + 2 * k);
    const std::vector<float> list = values.to_vector<float>();
    const Tensor wanted = run(values);
    for (int i = 0; i < 2; ++i) BOOST_TEST(identical(run(Tensor::from(list, {12, 36})), wanted), "from, " << k);
    const auto fill = [&](std::span<float> to) { std::copy(list.begin(), list.end(), to.begin()); };
    BOOST_TEST(identical(run(Tensor::build<float>({12, 36}, fill)), wanted), "build, " << k);
    if (k == 5) misses = pool_counts().misses;
  }
  BOOST_TEST((support::kSanitized || pool_counts().misses == misses));
}

BOOST_AUTO_TEST_CASE(two_threads_make_them_at_once) {
  for (int round = 0; round < 20; ++round) {
    const nn::Gru gru(5, 33, {.seed = static_cast<std::uint64_t>(round)});
    Tensors results(4);
    {
      std::vector<std::jthread> threads;
      for (Tensor& y : results) threads.emplace_back([&gru, &y] { y = gru(input()); });
    }
    const Tensor wanted = unrolled(gru);
    for (const Tensor& y : results) BOOST_TEST(identical(y, wanted));
  }
}

BOOST_AUTO_TEST_CASE(none_on_a_storage_that_is_rewritten_while_tensors_stand_on_it) {
  const Tensor w = draw({12, 36}, 5);
  w.impl()->storage->rewritten = true;
  for (int i = 0; i < 3; ++i)
    (void)gru_sequence(draw({4, 9, 5}, 1), {draw({5, 36}, 7), w}, zeros({4, 12}), {.batch_first = true});
  BOOST_TEST(w.impl()->storage->packs.load() == nullptr);
}

BOOST_AUTO_TEST_CASE(kernels_find_every_weight_of_a_cell) {
  using namespace nn::detail;
  for (const GatedCell* cell : {&kGru, &kGruResetBefore, &kLstm, &kPeepholeLstm, &kRnn})
    for (const std::int64_t H : {1, 7, 16, 33})
      for (const bool copied : {false, true})
        BOOST_TEST_CONTEXT(cell->name << ", " << H << " units, " << (copied ? "copied" : "as they stand")) {
          check_placed<float>(*cell, H, copied);
          check_placed<double>(*cell, H, copied);
        }
}

BOOST_AUTO_TEST_SUITE_END()
