// Tensors in memory of another owner: when it is copied, who may write to it, and when it is released.
#include <atomic>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/storage.h"
#include "ferrite/tensor/variable.h"
#include "support/compare.h"
#include "support/guarded.h"

using namespace ferrite;
using support::frozen_copy;
using support::Guarded;
using support::identical;
using support::says;

namespace {

Tensor drawn(const Shape& shape) { return uniform(shape, {.seed = 7}, -1, 1); }

/// Memory of 4 KiB that counts how often it is released.
struct Counted {
  std::atomic<int> released{0};
  alignas(64) std::byte memory[4096] = {};

  std::shared_ptr<const void> keeper() {
    return {static_cast<const void*>(memory), [this](const void*) { ++released; }};
  }
  std::span<const std::byte> from(std::size_t at, std::size_t bytes) const {
    return std::span(memory).subspan(at, bytes);
  }
};

const Spec kFour{{4}, Dtype::f32};

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen)

BOOST_AUTO_TEST_CASE(aligned_memory_is_taken_without_a_copy_and_let_go_with_the_last_view) {
  Counted own;
  const float values[] = {1, 2, 3, 4};
  std::memcpy(own.memory + 64, values, sizeof values);
  Tensor row;
  {
    const Tensor x = Tensor::frozen(own.from(64, 128), kFour, own.keeper());
    BOOST_TEST(x.raw() == own.memory + 64);
    BOOST_TEST(x.contiguous());
    BOOST_TEST(identical(x * 2, Tensor::from({2.0F, 4.0F, 6.0F, 8.0F})));
    row = slice(x, 0, 1, 3);
    BOOST_TEST(row.raw() == own.memory + 68);
  }
  BOOST_TEST(own.released == 0);
  BOOST_TEST(identical(row, Tensor::from({2.0F, 3.0F})));
  row = Tensor();
  BOOST_TEST(own.released == 1);
}

BOOST_AUTO_TEST_CASE(an_address_that_is_no_multiple_of_the_element_is_copied) {
  Counted own;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::bf16, Dtype::f16, Dtype::i8}) {
    const auto size = static_cast<std::size_t>(size_of(dtype));
    for (std::size_t at = 0; at < 2 * size; ++at) {
      const Tensor x = Tensor::frozen(own.from(at, 256), {{5}, dtype}, own.keeper());
      BOOST_TEST((x.raw() == own.memory + at) == (at % size == 0), name_of(dtype) << " at " << at);
      BOOST_TEST(identical(x, zeros({5}, dtype)));
    }
  }
}

// Whole lines and one line more, and nothing less; memory that was copied is released at once.
BOOST_AUTO_TEST_CASE(memory_that_ends_too_early_is_copied) {
  Counted own;
  for (const std::int64_t n : {1, 15, 16, 17, 32}) {
    const auto bytes = static_cast<std::size_t>(4 * n);
    const std::size_t needed = (bytes + 63) / 64 * 64 + 64;
    for (const std::size_t readable : {bytes, needed - 1, needed, needed + 1}) {
      const int before = own.released;
      const Tensor x = Tensor::frozen(own.from(64, readable), {{n}, Dtype::f32}, own.keeper());
      const bool taken = readable >= needed;
      BOOST_TEST((x.raw() == own.memory + 64) == taken, n << " elements, " << readable << " bytes");
      BOOST_TEST(own.released == before + (taken ? 0 : 1));
    }
  }
}

// Guarded memory ends a process that reads beyond it.
BOOST_AUTO_TEST_CASE(nothing_is_read_behind_the_memory) {
  const Tensor x = drawn({7, 9});
  for (std::size_t behind = 0; behind <= 128; behind += 4) {
    const Guarded memory(x, behind);
    const Tensor y = Tensor::frozen(memory.readable(), x.spec(), memory.keeper());
    BOOST_TEST(identical(exp(y), exp(x)));
    BOOST_TEST(identical(exp(select(y, 0, 6)), exp(select(x, 0, 6))));
    BOOST_TEST(identical(sum(y, {0}), sum(x, {0})));
    BOOST_TEST(identical(matmul(y, transpose(y)), matmul(x, transpose(x))));
    BOOST_TEST(identical(flip(y, {0, 1}), flip(x, {0, 1})));
    BOOST_TEST(identical(cast(y, Dtype::f64), cast(x, Dtype::f64)));
  }
}

BOOST_AUTO_TEST_CASE(mistakes_are_refused_and_let_go) {
  Counted own;
  own.memory[70] = std::byte{2};
  BOOST_CHECK_EXCEPTION((void)Tensor::frozen(own.from(64, 15), kFour, own.keeper()), ValueError,
                        says("frozen: the memory is shorter than the elements: 15 bytes for f32[4], which has 16"));
  BOOST_CHECK_EXCEPTION((void)Tensor::frozen(own.from(64, 256), {{8}, Dtype::boolean}, own.keeper()), ValueError,
                        says("frozen: a bool is neither 0 nor 1: 2 at element 6"));
  BOOST_CHECK_THROW((void)Tensor::frozen(own.from(0, 256), {{std::int64_t{1} << 45}, Dtype::i8}, own.keeper()),
                    ShapeError);
  BOOST_CHECK_THROW((void)Tensor::frozen(own.from(0, 256), {{-1}, Dtype::i8}, own.keeper()), ShapeError);
  BOOST_TEST(own.released == 4);
}

BOOST_AUTO_TEST_CASE(empty_and_rank_0_tensors) {
  Counted own;
  const Tensor none = Tensor::frozen({}, {{0, 3}, Dtype::f32}, own.keeper());
  BOOST_TEST(none.shape() == Shape({0, 3}));
  BOOST_TEST(own.released == 1);
  const Tensor one = Tensor::frozen(own.from(0, 128), {{}, Dtype::f64}, nullptr);
  BOOST_TEST(one.item<double>() == 0);
  BOOST_TEST(one.raw() == own.memory);
}

// The memory is read-only: a write would end the test.
BOOST_AUTO_TEST_CASE(nothing_is_written_in_place) {
  const Tensor x = drawn({40});
  Tensor total = frozen_copy(x);
  const std::byte* const memory = total.raw();
  BOOST_TEST(!detail::owned_alone(total));
  detail::accumulate(total, x);
  BOOST_TEST(total.raw() != memory);
  BOOST_TEST(identical(total, x + x));

  const Parameter w("w", frozen_copy(x));
  Tape tape;
  const Tensor loss = sum(w.value() * w.value());
  w.assign(w.peek() - tape.grad(loss, {w})[0]);
  BOOST_TEST(identical(w.peek(), x - (x + x)));
}

BOOST_AUTO_TEST_CASE(the_memory_is_never_pooled) {
  const std::size_t cached = (trim(), cached_memory());
  {
    Counted own;
    { const Tensor x = Tensor::frozen(own.from(0, 1088), {{256}, Dtype::f32}, own.keeper()); }
    BOOST_TEST(own.released == 1);
    BOOST_TEST(cached_memory() == cached);
    for (int i = 0; i < 8; ++i) {
      const Tensor fresh = zeros({256});
      BOOST_TEST((fresh.raw() < own.memory || fresh.raw() >= own.memory + sizeof own.memory));
    }
  }
  trim();
}

// A product packs its second operand: the pack is attached to the storage and freed with it.
BOOST_AUTO_TEST_CASE(packs_of_frozen_weights_go_with_them) {
  const Tensor x = drawn({64, 48}), weight = drawn({48, 80});
  const Tensor wanted = matmul(x, weight);
  for (int round = 0; round < 3; ++round) {
    const Tensor w = frozen_copy(weight, 4);
    for (int use = 0; use < 4; ++use) {
      BOOST_TEST(identical(matmul(x, w), wanted));
      BOOST_TEST(identical(matmul(slice(x, 0, 0, 1), w), slice(wanted, 0, 0, 1)));
    }
  }
}

BOOST_AUTO_TEST_CASE(another_thread_may_let_go_last) {
  Counted own;
  for (int round = 1; round <= 20; ++round) {
    Tensor x = Tensor::frozen(own.from(0, 1088), {{256}, Dtype::f32}, own.keeper());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([y = x] {
        if (sum(y).item() != 0) throw std::logic_error("another sum");
      });
    x = Tensor();
    for (std::thread& t : threads) t.join();
    threads.clear();
    BOOST_TEST(own.released == round);
  }
}

// Freeing the keeper may run anything: here it frees a tensor.
BOOST_AUTO_TEST_CASE(a_tensor_may_hold_the_memory_of_another) {
  const auto holder = std::make_shared<const Tensor>(drawn({64}));
  const std::span<const std::byte> memory(holder->raw(), 256 + 64);
  Tensor x = Tensor::frozen(memory, {{8, 8}, Dtype::f32}, holder);
  BOOST_TEST(x.raw() == holder->raw());
  BOOST_TEST(identical(x, reshape(*holder, {8, 8})));
  BOOST_TEST(holder.use_count() == 2);
  x = Tensor();
  BOOST_TEST(holder.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
