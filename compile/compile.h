#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ferrite/compile/plan.h"

namespace ferrite {

namespace detail {

/// The plans of one compiled function. Copies share them.
class Compilation {
 public:
  /// A borrowed function of tensors.
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

  explicit Compilation(const PlanOptions& options);
  Tensors call(std::span<const Tensor* const> arguments, const Body& f) const;
  std::size_t plans() const;
  PlanReport report() const;
  Graph graph() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

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

template <class T, class>
using Always = T;

/// A function's result from the tensors of its trace.
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

/// A function that is traced when first called and replayed from then on. See `compile`.
template <class F>
class Compiled {
 public:
  Compiled(F f, const PlanOptions& options) : f_(std::move(f)), compilation_(options) {}

  /// Calls it with tensors (or parameters). Throws what the function throws while it is traced, and TraceError when it
  /// reads values of a tensor made inside.
  template <class... A>
  requires(std::is_convertible_v<const A&, Tensor>&&...) auto operator()(const A&... arguments) const {
    using Result = std::invoke_result_t<const F&, detail::Always<Tensor, A>...>;
    const Tensor tensors[] = {Tensor(arguments)..., Tensor()};
    return call<Result>(std::span<const Tensor>(tensors, sizeof...(A)),
                        [this](const Tensors& in) { return invoke<Result>(in, std::index_sequence_for<A...>{}); });
  }
  /// For a function of a list: f(const Tensors&).
  auto operator()(const Tensors& arguments) const requires std::is_invocable_v<const F&, const Tensors&> {
    using Result = std::invoke_result_t<const F&, const Tensors&>;
    return call<Result>(std::span<const Tensor>(arguments.data(), arguments.size()), [this](const Tensors& in) {
      if constexpr (std::is_void_v<Result>) {
        f_(in);
        return Tensors();
      } else {
        return detail::to_tensors(f_(in));
      }
    });
  }

  /// Number of plans so far: one for each combination of shapes, dtypes and switches read.
  std::size_t plans() const { return compilation_.plans(); }
  /// What the plan made last does. Throws Error when there is none yet.
  PlanReport report() const { return compilation_.report(); }
  /// The program of the plan made last, as traced. Throws Error when there is none yet.
  Graph graph() const { return compilation_.graph(); }

 private:
  template <class Result, std::size_t... I>
  Tensors invoke(const Tensors& in, std::index_sequence<I...>) const {
    if constexpr (std::is_void_v<Result>) {
      f_(in[I]...);
      return {};
    } else {
      return detail::to_tensors(f_(in[I]...));
    }
  }
  template <class Result, class Body>
  Result call(std::span<const Tensor> arguments, Body body) const {
    Tensors out = compilation_.call(OperandList(arguments), detail::Compilation::Body(body));
    return detail::FromTensors<Result>::get(out);
  }

  F f_;
  detail::Compilation compilation_;
};

/// Makes one program of a function of tensors: traced once for every combination of shapes, dtypes and switches (train
/// or eval) that it meets, simplified, fused, planned, and replayed without touching the heap. The bits are those of
/// the function itself.
///
///   auto step = compile([&](const Tensor& x, const Tensor& y) {
///     Tape tape;
///     const Tensor loss = nn::cross_entropy(net(x), y);
///     adam.step(tape.grad(loss, net.parameters()));
///     return loss;
///   });
///
/// The function takes tensors, or one `const Tensors&`, and gives a Tensor, Tensors, a tuple, a pair or an array of
/// them, or nothing. Cells (parameters, running statistics, optimiser state, step counts, learning rates, draw
/// counters) are read and written in every call. Any other C++ state is read once, while tracing; captured tensors are
/// constants. Reading values inside throws TraceError. Under a Tape a call is one entry, and its gradient is compiled
/// as well; inside another compiled function it becomes part of that one. May be called by several threads at once as
/// far as the function writes no cells. Copies share their plans. What the function refers to must outlive it.
template <class F>
Compiled<std::decay_t<F>> compile(F&& f, const PlanOptions& options = {}) {
  return {std::forward<F>(f), options};
}

}  // namespace ferrite
