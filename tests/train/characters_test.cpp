// Characters as tokens, with results by hand, and the code points of UTF-8 in Unicode's table 3-7.
#include "ferrite/train/characters.h"

#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;

BOOST_AUTO_TEST_SUITE(characters)

BOOST_AUTO_TEST_CASE(there_and_back) {
  const Characters c(".aé😀");
  BOOST_TEST(c.size() == 4);
  BOOST_TEST(identical(c.tokens("😀aé."), Tensor::from<std::int64_t>({3, 1, 2, 0})));
  BOOST_TEST(c.text(Tensor::from<std::int64_t>({2, 2, 3})) == "éé😀");
  BOOST_TEST(c.tokens("").shape().str() == "[0]");
  BOOST_TEST(c.text(c.tokens("")).empty());
  BOOST_TEST(c[2] == "é");
  BOOST_TEST(c.strings(Tensor::from<std::int64_t>({3, 0})) == (std::vector<std::string>{"😀", "."}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_a_text_in_the_order_of_code_points) {
  const Characters c = Characters::of("bé\nab😀é");
  BOOST_TEST(c.size() == 5);
  BOOST_TEST(c.text(arange(5)) == "\nabé😀");
}

BOOST_AUTO_TEST_CASE(refusals) {
  BOOST_CHECK_EXCEPTION(Characters(""), ValueError, says("the alphabet is empty"));
  BOOST_CHECK_EXCEPTION(Characters("aéa"), ValueError, says("the alphabet has 'a' twice"));
  const Characters c("aé");
  BOOST_CHECK_EXCEPTION((void)c.tokens("aéb"), ValueError, says("'b' is not in the alphabet: byte 3 of the text"));
  BOOST_CHECK_EXCEPTION((void)c.tokens("\n"), ValueError, says("the character of number 10 is not in the alphabet"));
  BOOST_CHECK_EXCEPTION((void)c[2], ValueError, says("there is no token 2, there are 0..1"));
  BOOST_CHECK_THROW((void)c[-1], ValueError);
  BOOST_CHECK_THROW((void)c.text(Tensor::from<std::int64_t>({0, 2})), ValueError);
  BOOST_CHECK_THROW((void)c.text(Tensor::from<float>({0})), DtypeError);
  BOOST_CHECK_THROW((void)c.text(zeros({1, 1}, Dtype::i64)), ShapeError);
}

BOOST_AUTO_TEST_CASE(what_is_no_utf8) {
  for (const char* text : {"\x80", "\xc1\xbf", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    BOOST_CHECK_EXCEPTION((void)Characters::of(std::string("ab") + text), ValueError, says("is not UTF-8: byte 2"));
  for (const char* text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    BOOST_TEST(Characters::of(text).size() == 1);
}

BOOST_AUTO_TEST_CASE(next_tokens_are_one_ahead) {
  const std::vector<Tensor> each = {Tensor::from<std::int64_t>({3, 4}), Tensor::from<std::int64_t>({5})};
  const Dataset data = next_tokens(each, 7);
  BOOST_TEST(data.size() == 2);
  BOOST_TEST(identical(data[0][0], Tensor::from<std::int64_t>({7, 3, 4})));
  BOOST_TEST(identical(data[0][1], Tensor::from<std::int64_t>({3, 4, 7})));
  BOOST_TEST(identical(data[1][0], Tensor::from<std::int64_t>({7, 5})));
  BOOST_TEST(identical(data.all().lengths[1], Tensor::from<std::int64_t>({3, 2})));
  BOOST_CHECK_THROW((void)next_tokens({}, 7), ValueError);
  BOOST_CHECK_THROW((void)next_tokens(std::vector<Tensor>{zeros({2})}, 7), DtypeError);
  BOOST_CHECK_THROW((void)next_tokens(std::vector<Tensor>{zeros({2, 2}, Dtype::i64)}, 7), ShapeError);
}

BOOST_AUTO_TEST_SUITE_END()
