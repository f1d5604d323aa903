// Code that must not compile: memory and references of temporaries, and tensors as conditions of `if`.
#include <concepts>
#include <type_traits>

#include "ferrite/dsl/builder.h"
#include "ferrite/io/tensor_file.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/train/dataset.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

// A handle T&& is the result of an expression, T& a variable.
template <class T>
concept HasValues = requires(T&& t) {
  static_cast<T&&>(t).template values<float>();
};
template <class T>
concept HasData = requires(T&& t) {
  static_cast<T&&>(t).template data<float>();
};
template <class T>
concept HasRaw = requires(T&& t) {
  static_cast<T&&>(t).raw();
};
template <class T>
concept HasListData = requires(T&& t) {
  static_cast<T&&>(t).data();
};
template <class T>
concept IsCondition = requires(T&& t) {
  static_cast<T&&>(t) ? 1 : 0;
};
template <class T>
concept IsNegated = requires(T&& t) {
  !static_cast<T&&>(t) ? 1 : 0;
};
template <class T>
concept HasNames = requires(T&& t) {
  static_cast<T&&>(t).names();
};
template <class T>
concept Compiles = requires(T&& t) {
  static_cast<T&&>(t).compiled();
};
template <class T>
concept HasLayers = requires(T&& t) {
  static_cast<T&&>(t)[std::size_t{0}];
};
template <class T>
concept HasCells = requires(T&& t) {
  static_cast<T&&>(t).cell();
};

static_assert(HasValues<Tensor&> && HasValues<const Tensor&> && !HasValues<Tensor> && !HasValues<const Tensor>);
static_assert(HasData<Tensor&> && !HasData<Tensor> && HasRaw<const Tensor&> && !HasRaw<Tensor>);
static_assert(HasListData<Tensors&> && !HasListData<Tensors>);
static_assert(HasNames<io::TensorFile&> && !HasNames<io::TensorFile>);
static_assert(Compiles<nn::Linear&> && !Compiles<nn::Linear>);
static_assert(HasLayers<dsl::Network&> && !HasLayers<dsl::Network>);
static_assert(HasCells<nn::Custom&> && !HasCells<nn::Custom>);

// No tensor, variable or operand is a condition: `if (loss < best)`, `while (!done)`, `a && b`.
template <class T>
constexpr bool answers =
    std::is_constructible_v<bool, T> || std::is_convertible_v<T, bool> || IsCondition<T> || IsNegated<T>;
static_assert(!answers<Tensor> && !answers<Tensor&> && !answers<const Tensor&>);
static_assert(!answers<Variable&> && !answers<Parameter&> && !answers<Buffer&> && !answers<State&>);
static_assert(!answers<const Operand&>);
static_assert(std::same_as<decltype(std::declval<Tensor>() < std::declval<Tensor>()), Tensor>);

// Everything else that a temporary returns is a separate value.
template <class T>
constexpr bool by_value = !std::is_reference_v<T>;
static_assert(by_value<decltype(std::declval<Tensor>().shape())> &&
              by_value<decltype(std::declval<Tensor>().strides())>);
static_assert(by_value<decltype(std::declval<Tensors>()[0])> && by_value<decltype(std::declval<Tensors>().front())>);
static_assert(by_value<decltype(std::declval<Tensors>().back())>);
static_assert(by_value<decltype(std::declval<Parameter>().peek())> &&
              by_value<decltype(std::declval<Parameter>().name())>);
static_assert(by_value<decltype(std::declval<Parameter>().shape())>);
static_assert(by_value<decltype(std::declval<dsl::Network>().named_parameters())>);
static_assert(by_value<decltype(std::declval<dsl::Network>().named_buffers())>);
static_assert(by_value<decltype(std::declval<dsl::Network>().named_states())>);
static_assert(by_value<decltype(std::declval<dsl::Network>().rows())> &&
              by_value<decltype(std::declval<dsl::Network>().input())>);
static_assert(by_value<decltype(std::declval<nn::Gru>().sizes())> &&
              by_value<decltype(std::declval<nn::Gru>().weights())>);
static_assert(by_value<decltype(std::declval<nn::Adam>().parameters())> &&
              by_value<decltype(std::declval<nn::Adam>().states())>);
static_assert(by_value<decltype(std::declval<nn::Adam>().learning_rate_variable())>);
static_assert(by_value<decltype(std::declval<Plan>().report())> && by_value<decltype(std::declval<Plan>().graph())>);
static_assert(by_value<decltype(std::declval<io::TensorFile>().where())>);
static_assert(by_value<decltype(io::TensorInfo::dtype)> &&
              !std::same_as<decltype(io::TensorInfo::dtype), std::string_view>);

}  // namespace

BOOST_AUTO_TEST_SUITE(lifetimes)

BOOST_AUTO_TEST_CASE(elements_of_a_temporary_list_are_moved_out_of_it) {
  const Tensor x = arange(6);
  const Tensor& last = split(x, 2)[2];  // lives as long as the reference
  BOOST_TEST(support::identical(last, Tensor::from<std::int64_t>({4, 5})));
  BOOST_TEST(support::identical(split(x, 2).front(), Tensor::from<std::int64_t>({0, 1})));
  BOOST_TEST(support::identical(split(x, 2).back(), last));
}

BOOST_AUTO_TEST_CASE(names_of_a_temporary_network_can_be_walked) {
  std::vector<std::string> names;
  for (const auto& p : dsl::features(3).linear(2).build(0).named_parameters()) names.push_back(p.name);
  BOOST_TEST(names == (std::vector<std::string>{"0.weight", "0.bias"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
