#pragma once
/// Oracles: for each operation an implementation in doubles and plain loops, and the operands with which it is tested.
/// The files in this folder hold those of all operations of the library; the conformance tests fail for a record
/// without one.
///
/// A struct has the name of its operation, and
/// - of a pointwise one: `scalar`, a function of its operands, and `domain`, the interval to try; with `kinks`, points
///   at which it has no derivative;
/// - of any other: `oracle` of dense operands and results, and `samples`.
/// Structs of operations that a program writes for itself (docs/own-operations.md) may have the same. Constants are
/// written down once more, as texts of programs spell them: an operation whose own have other names, types or another
/// order refuses them.
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferrite/tensor/define.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite {
struct Graph;
}

namespace oracles {
using namespace ferrite;
using namespace ferrite::detail;

struct Oracle {
  std::string_view name;
  // Fields of a pointwise operation.
  Range domain{};
  std::span<const double> kinks{};
  double (*scalar)(const double* operands) = nullptr;
  // Fields of any other operation.
  void (*evaluate)(std::span<const Dense> in, std::span<Dense> out, const Attrs&) = nullptr;
  std::span<const Sample> (*samples)() = nullptr;
};

template <class... T>
constexpr std::size_t arity_of(double (*)(T...)) {
  return sizeof...(T);
}
template <class Op>
double scalar_of(const double* operands) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return Op::scalar(operands[I]...); }
  (std::make_index_sequence<arity_of(&Op::scalar)>());
}
template <class Op>
void evaluate_of(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
  Op::oracle(in, out, attrs.as<AttributesOf<Op>>(Op::name));
}
template <class Op>
std::span<const Sample> samples_of() {
  static const std::vector<Sample> samples = Op::samples();
  return samples;
}

/// Returns the oracle that a struct defines.
template <class Op>
constexpr Oracle oracle_in() {
  Oracle o{.name = Op::name};
  if constexpr (requires { &Op::scalar; }) {
    o.domain = Op::domain;
    o.scalar = scalar_of<Op>;
    if constexpr (requires { Op::kinks; }) o.kinks = Op::kinks;
  } else {
    o.evaluate = evaluate_of<Op>;
    o.samples = samples_of<Op>;
  }
  return o;
}

/// Adds oracles to those that `of` finds, while the program starts.
class Added {
 public:
  explicit Added(std::initializer_list<Oracle> list);
};
template <class... Op>
Added add() {
  return Added({oracle_in<Op>()...});
}

/// Returns all registered oracles.
std::span<const Oracle> all();
/// Returns the oracle of an operation. Throws std::out_of_range, naming the operation, if there is none.
const Oracle& of(const Primitive& op);
inline std::span<const Sample> samples(const Primitive& op) { return of(op).samples(); }

/// Evaluates a program in double precision with the oracles of its operations.
std::vector<Dense> evaluate(const Graph& g, std::span<const Dense> in);

}  // namespace oracles
