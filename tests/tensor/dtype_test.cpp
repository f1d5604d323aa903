// The table of dtypes, and the elements of types that are only stored.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/tensor.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Casts one number from one C++ type to another by the operation.
template <class To, class From>
To casted(From v) {
  return cast(Tensor::from({v}), dtype_of<To>).template item<To>();
}

template <class Half>
std::uint16_t bits(double v) {
  return casted<Half>(v).bits();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dtypes)

BOOST_AUTO_TEST_CASE(the_table_names_and_measures_every_type) {
  std::string all;
  for (const Dtype t : kDtypes) {
    all += std::string(name_of(t)) + ":" + std::to_string(size_of(t)) + (is_storage_only(t) ? "s " : " ");
    visit_dtype(t, [&](auto zero) {
      BOOST_TEST((dtype_of<decltype(zero)> == t));
      BOOST_TEST(static_cast<std::int64_t>(sizeof zero) == size_of(t));
    });
    if (!is_storage_only(t)) visit_computed(t, [&](auto zero) { BOOST_TEST((dtype_of<decltype(zero)> == t)); });
  }
  BOOST_TEST(all == "f32:4 f64:8 i32:4 i64:8 bool:1 bf16:2s f16:2s i8:1s ");
  BOOST_TEST(!is_float(Dtype::bf16));
  BOOST_TEST(!is_integer(Dtype::i8));
  BOOST_TEST(has_gradient(Dtype::f16));
  BOOST_TEST((gradient_dtype(Dtype::f16) == Dtype::f32));
  BOOST_TEST((gradient_dtype(Dtype::f64) == Dtype::f64));
}

BOOST_AUTO_TEST_CASE(half_rounds_to_nearest_even_once) {
  BOOST_TEST(bits<float16>(1 + 0x1p-11) == 0x3c00);            // a tie, down to even
  BOOST_TEST(bits<float16>(1 + 0x3p-11) == 0x3c02);            // a tie, up to even
  BOOST_TEST(bits<float16>(1 + 0x1p-11 + 0x1p-40) == 0x3c01);  // as a float it would be that tie
  BOOST_TEST(bits<bfloat16>(1 + 0x1p-8) == 0x3f80);
  BOOST_TEST(bits<bfloat16>(1 + 0x3p-8) == 0x3f82);
  BOOST_TEST(bits<bfloat16>(1 + 0x1p-8 + 0x1p-50) == 0x3f81);
  BOOST_TEST(casted<bfloat16>((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1).bits() == 0x5e81);
  BOOST_TEST(casted<bfloat16>(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54)).bits() == 0xde80);
}

BOOST_AUTO_TEST_CASE(half_overflows_to_infinity_and_keeps_nan) {
  BOOST_TEST(bits<float16>(65504) == 0x7bff);
  BOOST_TEST(bits<float16>(65519.999) == 0x7bff);
  BOOST_TEST(bits<float16>(65520) == 0x7c00);
  BOOST_TEST(bits<float16>(-1e300) == 0xfc00);
  BOOST_TEST(bits<bfloat16>(3.5e38) == 0x7f80);
  BOOST_TEST(bits<bfloat16>(-kInfinity) == 0xff80);
  BOOST_TEST(bits<float16>(kNan) == 0x7e00);
  BOOST_TEST(bits<bfloat16>(kNan) == 0x7fc0);
  const auto signalling = std::bit_cast<float>(0x7f800001U);
  BOOST_TEST(casted<bfloat16>(signalling).bits() == 0x7fc0);
  BOOST_TEST(casted<float16>(signalling).bits() == 0x7e00);
  BOOST_TEST(bits<float16>(-0.0) == 0x8000);
}

BOOST_AUTO_TEST_CASE(half_has_denormals_whatever_the_mode_of_the_processor) {
  const auto check = [] {
    BOOST_TEST(bits<float16>(0x1p-24) == 0x0001);
    BOOST_TEST(bits<float16>(0x1p-25) == 0x0000);
    BOOST_TEST(bits<float16>(0x1.8p-25) == 0x0001);
    BOOST_TEST(bits<float16>(0x1.ffep-15) == 0x0400);  // rounds up to the smallest normal number
    BOOST_TEST(bits<bfloat16>(0x1p-133) == 0x0001);
    BOOST_TEST(casted<bfloat16>(std::bit_cast<float>(0x00010000U)).bits() == 0x0001);
    BOOST_TEST(std::bit_cast<std::uint32_t>(casted<float>(bfloat16::from_bits(3))) == 0x00030000U);
    BOOST_TEST(casted<float>(float16::from_bits(0x8001)) == -0x1p-24F);
    const bfloat16 least = bfloat16::from_bits(1), negative = bfloat16::from_bits(0x8002);
    BOOST_TEST(std::bit_cast<std::uint64_t>(casted<double>(least)) == std::uint64_t{1023 - 133} << 52);
    BOOST_TEST(std::bit_cast<std::uint64_t>(casted<double>(negative)) == (std::uint64_t{0x800 | (1023 - 132)} << 52));
    BOOST_TEST(casted<bool>(least));
    BOOST_TEST(!casted<bool>(bfloat16::from_bits(0x8000)));
    BOOST_TEST((least != bfloat16::from_bits(0) && bfloat16::from_bits(0x8000) == bfloat16::from_bits(0)));
    BOOST_TEST((bfloat16::from_bits(0x7fc0) != bfloat16::from_bits(0x7fc0)));
  };
  check();
  const FlushDenormals guard;
  check();
}

BOOST_AUTO_TEST_CASE(casts_to_i8_follow_those_to_i32) {
  BOOST_TEST(casted<std::int8_t>(127.9F) == 127);
  BOOST_TEST(casted<std::int8_t>(-128.9F) == -128);
  BOOST_TEST(casted<std::int8_t>(1e30) == 127);
  BOOST_TEST(casted<std::int8_t>(-kInfinity) == -128);
  BOOST_TEST(casted<std::int8_t>(kNan) == 0);
  BOOST_TEST(casted<std::int8_t>(-1.9) == -1);
  BOOST_TEST(casted<std::int8_t>(float16(300.0)) == 127);
  BOOST_TEST(casted<std::int8_t>(std::int32_t{300}) == 44);  // the low bits, as from i64 to i32
  BOOST_TEST(casted<std::int8_t>(std::int64_t{-129}) == 127);
  BOOST_TEST(casted<std::int32_t>(std::int8_t{-5}) == -5);
  BOOST_TEST(casted<bool>(std::int8_t{-5}) == true);
  BOOST_TEST(casted<bool>(bfloat16(-0.0)) == false);
  BOOST_TEST(casted<bool>(float16(kNan)) == true);
  BOOST_TEST(casted<std::int64_t>(float16(-kInfinity)) == std::numeric_limits<std::int64_t>::min());
}

BOOST_AUTO_TEST_CASE(stored_types_live_in_tensors_and_views) {
  const std::vector<bfloat16> values{bfloat16(1), bfloat16(-2.5), bfloat16(3), bfloat16(0.1), bfloat16(5), bfloat16(6)};
  const Tensor x = Tensor::from(values, {2, 3});
  BOOST_TEST(x.spec().str() == "bf16[2, 3]");
  BOOST_TEST(x.str() == "[[ 1.0000, -2.5000,  3.0000],\n [ 0.1001,  5.0000,  6.0000]]");
  BOOST_TEST((x.values<bfloat16>()[1] == bfloat16(-2.5)));
  const Tensor turned = transpose(x);
  BOOST_TEST((turned.to_vector<bfloat16>() ==
              std::vector<bfloat16>{values[0], values[3], values[1], values[4], values[2], values[5]}));
  BOOST_TEST((contiguous(turned).to_vector<bfloat16>() == turned.to_vector<bfloat16>()));
  BOOST_TEST((contiguous(flip(x, {0, 1})).to_vector<bfloat16>()[0] == values[5]));
  BOOST_TEST((reshape(turned, {6}).to_vector<bfloat16>() == turned.to_vector<bfloat16>()));
  BOOST_TEST((unbind(x, 1)[2].to_vector<bfloat16>() == std::vector<bfloat16>{values[2], values[5]}));
  BOOST_TEST(split(x, 1)[1].shape() == Shape({1, 3}));
  BOOST_TEST((select(squeeze(expand(unsqueeze(x, 0), {1, 2, 3})), 0, 1).to_vector<bfloat16>()[0] == values[3]));
  BOOST_TEST((detach(slice(x, 1, 1, 3)).to_vector<bfloat16>()[0] == values[1]));
  BOOST_TEST((full({2}, 1.5, Dtype::f16).to_vector<float16>()[1] == float16(1.5)));
  BOOST_TEST(full({}, -128, Dtype::i8).item<std::int8_t>() == -128);
  BOOST_TEST(Tensor::from<std::int8_t>({-3, 120}).str() == "[ -3, 120]");
  const Tensor built = Tensor::build<float16>({2}, [](std::span<float16> to) { to[0] = to[1] = float16(2); });
  BOOST_TEST(identical(built, full({2}, 2, Dtype::f16)));
  BOOST_TEST(zeros_like(x).spec().str() == "bf16[2, 3]");
}

BOOST_AUTO_TEST_CASE(every_cast_and_its_return_keep_what_the_type_holds) {
  const Tensor small = Tensor::from<float>({0, 1, -2, 3, 100, -100}, {2, 3});
  for (const Dtype t : kDtypes) {
    if (t == Dtype::boolean) continue;
    BOOST_TEST(identical(cast(cast(small, t), Dtype::f32), small), name_of(t));
    BOOST_TEST(identical(cast(transpose(cast(small, t)), Dtype::f32), contiguous(transpose(small))), name_of(t));
  }
}

BOOST_AUTO_TEST_CASE(literals_that_a_stored_type_cannot_hold) {
  BOOST_CHECK_EXCEPTION(full({2}, 128, Dtype::i8), ValueError, says("i8 cannot hold the literal 128"));
  BOOST_CHECK_EXCEPTION(full({2}, 0.5, Dtype::i8), DtypeError, says("float literal 0.5 with a tensor of i8"));
  BOOST_CHECK_EXCEPTION(full({2}, std::int64_t{1} << 31, Dtype::i32), ValueError, says("i32 cannot hold"));
  BOOST_TEST(full({2}, std::numeric_limits<std::int64_t>::min(), Dtype::i64).to_vector<std::int64_t>()[1] ==
             std::numeric_limits<std::int64_t>::min());
}

BOOST_AUTO_TEST_CASE(what_computes_refuses_stored_types_and_says_cast) {
  const Tensor x = full({2, 2}, 1, Dtype::bf16);
  BOOST_CHECK_EXCEPTION(x + x, DtypeError,
                        says("add: bf16 is only stored, nothing is computed in it: bf16[2, 2]; cast"));
  BOOST_CHECK_EXCEPTION(matmul(ones({2, 2}), x), DtypeError, says("matmul: bf16 is only stored"));
  BOOST_CHECK_EXCEPTION(sum(full({3}, 1, Dtype::i8)), DtypeError, says("sum: i8 is only stored"));
  BOOST_CHECK_EXCEPTION(softmax(x), DtypeError, says("bf16"));
  BOOST_CHECK_EXCEPTION(uniform({3}, {1, 2, 3}, 0, 1, Dtype::f16), DtypeError, says("f16"));
  BOOST_CHECK_EXCEPTION(arange(0, 3, 1, Dtype::i8), DtypeError, says("arange: i8 is only stored"));
  BOOST_CHECK_EXCEPTION(Parameter("w", x), DtypeError, says("parameter 'w': bf16 is only stored"));
  BOOST_CHECK_EXCEPTION(x.item<float>(), DtypeError, says("read as f32; cast it first"));
  BOOST_TEST(Buffer("b", x).value().spec().str() == "bf16[2, 2]");
}

BOOST_AUTO_TEST_SUITE_END()
