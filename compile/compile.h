#pragma once
/// Compiled functions: a function of tensors is traced once for each combination of types and replayed as one program.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ferrite/compile/plan.h"
#include "ferrite/tensor/error.h"

namespace ferrite {
namespace detail {

/// The plans of one compiled function. Copies share them. No lock is held while the function runs or a log is written,
/// so the function and the log may ask for plans and reports.
class Compilation {
 public:
  /// The arguments of a call: tensors, and the identities of the variables that the other arguments hold.
  struct Arguments {
    std::span<const Tensor* const> tensors;
    std::span<const void* const> variables;
  };
  /// A borrowed function of tensors, without its type.
  class Body {
   public:
    template <class F>
    explicit Body(F& f)
        : object_(&f), call_([](void* object, const Tensors& in) { return (*static_cast<F*>(object))(in); }) {}
    Tensors operator()(const Tensors& in) const { return call_(object_, in); }

   private:
    void* object_;
    Tensors (*call_)(void*, const Tensors&);
  };

  /// Makes a compilation without plans.
  explicit Compilation(const PlanOptions& options);
  /// Runs f by the plan that fits the arguments; traces and plans it first if there is none.
  Tensors call(const Arguments& arguments, const Body& f) const;
  /// Throws TraceError when f is no longer the function that was traced for the arguments, NoPlanError without a plan.
  void verify(const Arguments& arguments, const Body& f) const;
  /// Returns the number of plans kept.
  std::size_t plans() const;
  /// Returns the report of the plan made last. Throws Error before the first call.
  PlanReport report() const;
  /// Returns the program of the plan made last. Throws Error before the first call.
  Graph graph() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Returns the result of a function as a list of tensors.
inline Tensors to_tensors(Tensor t) { return {std::move(t)}; }
inline Tensors to_tensors(Tensors t) { return t; }
template <class... T>
Tensors to_tensors(const std::tuple<T...>& t) {
  return std::apply([](const auto&... x) { return Tensors{x...}; }, t);
}
inline Tensors to_tensors(const std::pair<Tensor, Tensor>& t) { return {t.first, t.second}; }
template <std::size_t N>
Tensors to_tensors(const std::array<Tensor, N>& t) {
  return Tensors(t.begin(), t.end());
}

/// Converts the tensors of a trace to the function's result type R.
template <class R>
struct FromTensors {
  static R get(Tensors& t) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return R{std::move(t[I])...}; }
    (std::make_index_sequence<std::tuple_size_v<R>>{});
  }
};
template <>
struct FromTensors<Tensor> {
  static Tensor get(Tensors& t) { return std::move(t[0]); }
};
template <>
struct FromTensors<Tensors> {
  static Tensors get(Tensors& t) { return std::move(t); }
};
template <>
struct FromTensors<void> {
  static void get(Tensors&) {}
};

}  // namespace detail

/// The types of arguments of a compiled function that are not tensors but hold variables (nn::Carry). Such an argument
/// is passed to the function unchanged. For an argument that holds other variables the function is traced again.
template <class T>
concept HoldsVariables = requires(const T& t) {
  { t.variables() } -> std::convertible_to<std::span<const State>>;
};

/// The result of `compile`: a function object that traces the function F when it is called with a new combination of
/// types, and otherwise replays the program traced before.
template <class F>
class Compiled {
 public:
  /// Wraps the function f. Throws ValueError when it is null.
  Compiled(F f, const PlanOptions& options) : f_(std::move(f)), compilation_(options) {
    if constexpr (requires { f_ == nullptr; }) {
      if (f_ == nullptr) detail::throw_value_error("compile: the function is null");
    }
  }

  /// Calls the function with tensors (or parameters) and objects that hold variables. Throws what the function throws,
  /// and TraceError when it reads values of a tensor made inside.
  template <class... A>
  requires((std::is_convertible_v<const A&, Tensor> || HoldsVariables<A>)&&...) auto operator()(const A&... a) const {
    using Result = std::invoke_result_t<const F&, Passed<A>...>;
    return with_arguments(
        [&](const detail::Compilation::Arguments& arguments, const detail::Compilation::Body& body) {
          Tensors out = compilation_.call(arguments, body);
          return detail::FromTensors<Result>::get(out);
        },
        a...);
  }
  /// Checks that the function is still the one that was traced for these arguments. Traces it again and throws
  /// TraceError, naming the first difference, when changed C++ values that the function captures make another program,
  /// which a call does not notice. Throws Error when there is no plan for such arguments. Computes nothing and changes
  /// no variable.
  template <class... A>
  requires((std::is_convertible_v<const A&, Tensor> || HoldsVariables<A>)&&...) void verify(const A&... a) const {
    with_arguments([&](const detail::Compilation::Arguments& arguments,
                       const detail::Compilation::Body& body) { compilation_.verify(arguments, body); },
                   a...);
  }
  /// Calls a function that takes a list, f(const Tensors&). Throws as the other form.
  auto operator()(const Tensors& arguments) const requires std::is_invocable_v<const F&, const Tensors&> {
    using Result = std::invoke_result_t<const F&, const Tensors&>;
    auto body = [&](const Tensors& in) { return results<Result>([&]() -> decltype(auto) { return f_(in); }); };
    const OperandList operands(arguments);
    Tensors out = compilation_.call({operands, {}}, detail::Compilation::Body(body));
    return detail::FromTensors<Result>::get(out);
  }

  /// Checks that a function of a list is still the one that was traced for these arguments. Throws as the other form.
  void verify(const Tensors& arguments) const requires std::is_invocable_v<const F&, const Tensors&> {
    using Result = std::invoke_result_t<const F&, const Tensors&>;
    auto body = [&](const Tensors& in) { return results<Result>([&]() -> decltype(auto) { return f_(in); }); };
    const OperandList operands(arguments);
    compilation_.verify({operands, {}}, detail::Compilation::Body(body));
  }

  /// Returns the number of plans kept: one for each combination of shapes, dtypes, switches read and variables given,
  /// at most PlanOptions::most_plans.
  std::size_t plans() const { return compilation_.plans(); }
  /// Returns a report of the plan made last. Throws Error before the first call.
  PlanReport report() const { return compilation_.report(); }
  /// Returns the program of the plan made last, as traced. Throws Error before the first call.
  Graph graph() const { return compilation_.graph(); }

 private:
  /// The type with which an argument of type A is passed to the function.
  template <class A>
  using Passed = std::conditional_t<HoldsVariables<A>, const A&, Tensor>;

  template <class Then, class... A>
  auto with_arguments(Then then, const A&... a) const {
    using Result = std::invoke_result_t<const F&, Passed<A>...>;
    InlineVector<Tensor, 8> tensors;
    InlineVector<const void*, 8> variables;
    (add_argument(a, tensors, variables), ...);
    auto body = [&](const Tensors& in) {
      [[maybe_unused]] std::size_t next = 0;
      std::tuple<Passed<A>...> all{argument(a, in, next)...};  // braces: from left to right
      return results<Result>([&]() -> decltype(auto) { return std::apply(f_, std::move(all)); });
    };
    const OperandList operands(tensors);
    return then({operands, {variables.data(), variables.size()}}, detail::Compilation::Body(body));
  }
  template <class A>
  static void add_argument(const A& a, InlineVector<Tensor, 8>& tensors, InlineVector<const void*, 8>& variables) {
    if constexpr (HoldsVariables<A>) {
      for (const State& s : std::span<const State>(a.variables())) variables.push_back(s.identity());
      variables.push_back(nullptr);  // marks the end of this argument's variables
    } else {
      tensors.push_back(Tensor(a));
    }
  }
  template <class A>
  static decltype(auto) argument(const A& a, const Tensors& in, std::size_t& next) {
    if constexpr (HoldsVariables<A>) {
      return (a);
    } else {
      return Tensor(in[next++]);
    }
  }
  /// Returns what the function returns, as tensors.
  template <class Result, class Call>
  static Tensors results(const Call& call) {
    if constexpr (std::is_void_v<Result>) {
      call();
      return {};
    } else {
      return detail::to_tensors(call());
    }
  }

  F f_;
  detail::Compilation compilation_;
};

/// Compiles a function of tensors to one program: traced once for every combination of shapes, dtypes and switches
/// (train or eval) that it meets, simplified, fused, planned, and replayed without touching the heap. The results are
/// those of the function itself, bit for bit.
///
///   auto step = compile([&](const Tensor& x, const Tensor& y) {
///     Tape tape;
///     const Tensor loss = nn::cross_entropy(net(x), y);
///     adam.step(tape.grad(loss, net.parameters()));
///     return loss;
///   });
///
/// The function takes tensors and objects that hold variables (an nn::Carry, by const reference), or one `const
/// Tensors&`. It returns a Tensor, Tensors, a tuple, a pair or an array of them, or nothing. Variables (parameters,
/// running statistics, optimiser state, step counts, learning rates, draw counters) are read and written in every call.
/// Any other C++ state is read once, while tracing (`verify` checks whether it has changed since); captured tensors are
/// constants. Reading values inside throws TraceError. Under a Tape a call is one entry, and its gradient is compiled
/// as well; inside another compiled function it becomes part of that one. Several threads may call it at once if the
/// function writes no variables. Copies share their plans. Whatever the function refers to must outlive it.
template <class F>
Compiled<std::decay_t<F>> compile(F&& f, const PlanOptions& options = {}) {
  return {std::forward<F>(f), options};
}

namespace detail {

/// Thrown when no plan of a compiled function fits the arguments and switches: none was made for them, or it was
/// dropped. A call would make one, of the function as it is now.
class NoPlanError final : public Error {
 public:
  using Error::Error;
};

}  // namespace detail
}  // namespace ferrite
