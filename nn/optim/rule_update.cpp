/// Elementwise updates as one operation, `rule_update`: division among threads, and the kernels in use.
#include "ferrite/nn/optim/detail/rule_update.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/optim/detail/rules.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::nn::detail {
namespace {

constexpr std::int64_t kShare = 1 << 15;  ///< elements in a share

/// Returns whether a sweep over n elements is worth more than one share.
constexpr bool is_shared(std::int64_t n) { return n >= 2 * kShare; }

/// Calls f(first element, number of elements) for adjacent shares of n elements.
template <class F>
void each_share(std::int64_t n, const F& f) {
  ferrite::detail::parallel_for((n + kShare - 1) / kShare,
                                [&](std::int64_t k) { f(k * kShare, std::min(kShare, n - k * kShare)); });
}

}  // namespace

using namespace ferrite::detail;

FERRITE_TABLES(RuleKernels, rule_kernels, rules_in_use)

namespace {

constexpr const char* kName = "rule_update";

/// A number of an update: a tensor, or a constant of the rule, which is a literal of its operations.
struct TensorNumber {
  Tensor tensor{};
  double constant = 0;  ///< used if `tensor` is undefined
};
Tensor operator*(const TensorNumber& a, const Tensor& b) { return a.tensor.defined() ? a.tensor * b : a.constant * b; }
TensorNumber operator/(const TensorNumber& a, const TensorNumber& b) { return {a.tensor / b.tensor}; }
TensorNumber sqrt(const TensorNumber& a) { return {ferrite::sqrt(a.tensor)}; }

/// Functions on tensors that the formulas use.
struct TensorFunctions {
  static Tensor larger(const Tensor& a, const Tensor& b) { return maximum(a, b); }
  static Tensor not_negative(const Tensor& a) { return maximum(a, 0); }
  static Tensor sign_of(const Tensor& a) { return sign(a); }
  static Tensor choose(const TensorNumber& flag, const Tensor& a, const Tensor& b) {
    return where(flag.tensor > 0, a, b);
  }
  static Tensor root_over(const Tensor& a, const TensorNumber& divisor) { return ferrite::sqrt(a) / divisor.tensor; }
};
using Operands = RuleOperands<Tensor, double, TensorNumber, TensorFunctions>;

template <RuleKind kind>
Tensor composed(Operands& o, const Rule& rule) {
  if (rule.decay == RuleDecay::gradient) o.g = o.g + rule.weight_decay * o.w;
  if (rule.decay == RuleDecay::weights) o.w = o.w - (o.numbers[kRate].tensor * rule.weight_decay) * o.w;
  prepare_numbers<kind>(o.numbers);
  return apply_rule<kind>(o);
}

template <std::size_t... kind>
Tensor composed_by(std::index_sequence<kind...>, Operands& o, const Rule& rule) {
  Tensor w;
  ((static_cast<std::size_t>(rule.kind) == kind ? void(w = composed<static_cast<RuleKind>(kind)>(o, rule)) : void()),
   ...);
  return w;
}

bool has(unsigned set, std::size_t k) { return (set >> k & 1U) != 0; }

ferrite::Positions positions_of(unsigned set) {
  std::vector<std::int64_t> list;
  for (std::size_t k = 0; k < 8; ++k)
    if (has(set, k)) list.push_back(static_cast<std::int64_t>(k));
  return ferrite::Positions::of(list);
}

unsigned set_of(const ferrite::Positions& positions) {
  unsigned set = 0;
  for (const std::int64_t k : positions.list()) set |= 1U << k;
  return set;
}

/// Throws ValueError unless the positions ascend and lie below `count`.
void check_positions(const ferrite::Positions& positions, const char* what, std::size_t count) {
  std::int64_t least = 0;
  for (const std::int64_t k : positions.list()) {
    if (k < least || k >= static_cast<std::int64_t>(count))
      throw ValueError(std::string(kName) + ": " + what + " must ascend below " + std::to_string(count) + ", got " +
                       positions.str());
    least = k + 1;
  }
}

RuleKind kind_of(Label name) {
  for (const RuleFacts& facts : kRuleFacts)
    if (facts.name == name.text()) return facts.kind;
  throw ValueError(std::string(kName) + ": there is no rule '" + std::string(name.text()) + "'");
}

/// Throws ValueError unless the numbers given as operands are those that the rule reads.
void check_numbers(const RuleForm& form) {
  for (std::size_t k = 0; k < kRuleNumbers; ++k) {
    const bool read = uses_number(form.rule, k), optional = k < kFixedNumbers;
    if (has(form.numbers, k) ? !read : read && !optional)
      throw ValueError(std::string(kName) + ": the rule '" + std::string(facts_of(form.rule.kind).name) + "' " +
                       (read ? "needs" : "has no") + " number " + std::to_string(k) + ", got " +
                       positions_of(form.numbers).str());
  }
}

/// Returns the form of attributes that `rule_form` has accepted; a step calls it once for every parameter.
RuleForm accepted_form(const RuleAttrs& a) {
  return {{.kind = kind_of(a.rule),
           .decay = a.decoupled_decay ? RuleDecay::weights
                    : a.weight_decay  ? RuleDecay::gradient
                                      : RuleDecay::none,
           .weight_decay = a.decoupled_decay ? *a.decoupled_decay : a.weight_decay.value_or(0),
           .maximize = a.maximize.value_or(false),
           .nesterov = a.nesterov.value_or(false),
           .damped = a.damped.value_or(false),
           .constants = {a.constant0.value_or(0), a.constant1.value_or(0), a.constant2.value_or(0)},
           .numbers = {a.number0.value_or(0), a.number1.value_or(0)}},
          set_of(a.states),
          set_of(a.numbers)};
}

template <class T>
T number(const Tensor& x) {
  return static_cast<T>(x.dtype() == Dtype::f32 ? static_cast<double>(x.data<float>()[0]) : x.data<double>()[0]);
}

/// The operation that updates one parameter by a rule.
struct RuleUpdate {
  using Attributes = RuleAttrs;
  static constexpr auto name = kName, onnx = "", stablehlo = "";
  static constexpr auto summary =
      "an optimiser's update of w by g, its states and the numbers of the step -> {w', states'}: sgd, rmsprop, adam, "
      "nadam, radam, adamax, adagrad, adadelta or lion, by the formula that the optimiser documents";
  static constexpr Reads reads = reads_inputs;
  static constexpr std::uint8_t in_place[] = {0, 2, 3, 4};
  static constexpr Effects effects{};

  static Specs infer(Inputs in, const Attributes& attrs) {
    const RuleForm form = rule_form(attrs);
    check(in, form);
    Specs specs;
    for (int k = 0; k <= std::popcount(form.states); ++k) specs.push_back(in[0].spec());
    return specs;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RuleForm form = accepted_form(attrs);
    if (in[0].dtype() == Dtype::f32) {
      run<float>(in, out, form);
    } else {
      run<double>(in, out, form);
    }
  }

  /// Defines the update in other operations.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const RuleForm form = rule_form(attrs);
    const Rule& rule = form.rule;
    Operands o;
    o.w = in[0];
    o.g = rule.maximize ? -in[1] : in[1];
    o.constants = rule.constants;
    o.nesterov = rule.nesterov;
    o.damped = rule.damped;
    std::size_t at = 2;
    for (std::size_t k = 0; k < kRuleStates; ++k) {
      o.has[k] = has(form.states, k);
      if (o.has[k]) o.states[k] = in[at++];
    }
    for (std::size_t k = 0; k < kFixedNumbers; ++k) o.numbers[k].constant = rule.numbers[k];
    for (std::size_t k = 0; k < kRuleNumbers; ++k)
      if (has(form.numbers, k)) o.numbers[k].tensor = cast(in[at++], in[0].dtype());
    Tensors out{composed_by(std::make_index_sequence<kRules>(), o, rule)};
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (o.has[k]) out.push_back(o.states[k]);
    return out;
  }

  static Tensors vjp(const Vjp& v, const Attributes&) { return gradient_of_reference(structured<RuleUpdate>, v); }

 private:
  /// Throws for operands that do not fit; no other function rejects any.
  static void check(Inputs in, const RuleForm& form) {
    const std::size_t states = static_cast<std::size_t>(std::popcount(form.states)),
                      numbers = static_cast<std::size_t>(std::popcount(form.numbers));
    if (in.size() != 2 + states + numbers)
      throw_shape(name, "it takes w, g, " + std::to_string(states) + " states and " + std::to_string(numbers) +
                            " numbers, got " + std::to_string(in.size()) + " operands");
    const Tensor& w = in[0];
    if (!is_float(w.dtype())) throw_dtype(name, "w is " + w.spec().str() + "; it takes f32 or f64");
    const RuleFacts& facts = facts_of(form.rule.kind);
    check_like(in[1], "g", w);
    std::size_t at = 2;
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (has(form.states, k)) check_like(in[at++], facts.states[k], w);
    for (std::size_t k = 0; k < kRuleNumbers; ++k)
      if (has(form.numbers, k)) check_number(in[at++], k == kRate ? "rate" : facts.numbers[k]);
  }
  static void check_like(const Tensor& x, std::string_view what, const Tensor& w) {
    const auto differs = [&] { return std::string(what) + " is " + x.spec().str() + ", w is " + w.spec().str(); };
    if (x.dtype() != w.dtype()) throw_dtype(name, differs() + "; cast one of them");
    if (x.shape() != w.shape()) throw_shape(name, differs());
  }
  static void check_number(const Tensor& x, std::string_view what) {
    const auto wrong = [&] { return std::string(what) + " must be a float of rank 0, got " + x.spec().str(); };
    if (!is_float(x.dtype())) throw_dtype(name, wrong());
    if (x.rank() != 0) throw_shape(name, wrong());
  }

  template <class T>
  static void run(Inputs in, std::span<Tensor> out, const RuleForm& form) {
    Tensor copies[2 + kRuleStates];  // of operands that are not row-major
    const auto read = [&](std::size_t i) {
      return (in[i].contiguous() ? in[i] : copies[i] = dense(in[i])).template data<T>();
    };
    RuleRun<T> run{read(0), read(1), Writer::data<T>(out[0])};
    std::size_t at = 2;
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (has(form.states, k)) {
        run.states[k] = read(at);
        run.states_out[k] = Writer::data<T>(out[at - 1]);
        ++at;
      }
    RuleNumbersOf<T> numbers{};
    for (std::size_t k = 0; k < kFixedNumbers; ++k) numbers[k] = static_cast<T>(form.rule.numbers[k]);
    for (std::size_t k = 0; k < kRuleNumbers; ++k)
      if (has(form.numbers, k)) numbers[k] = number<T>(in[at++]);
    run_shared<T>(sweep_of<T>(form.rule, form.states), form.rule, numbers, run, out[0].numel());
  }
};

std::optional<double> unless_zero(double x) { return x == 0 ? std::optional<double>() : x; }
std::optional<bool> if_true(bool x) { return x ? std::optional(true) : std::nullopt; }

}  // namespace

Attrs rule_attrs(const RuleForm& form) {
  const Rule& r = form.rule;
  return RuleAttrs{.rule = Label::of(facts_of(r.kind).name),
                   .constant0 = unless_zero(r.constants[0]),
                   .constant1 = unless_zero(r.constants[1]),
                   .constant2 = unless_zero(r.constants[2]),
                   .number0 = has(form.numbers, 0) ? std::nullopt : unless_zero(r.numbers[0]),
                   .number1 = has(form.numbers, 1) ? std::nullopt : unless_zero(r.numbers[1]),
                   .weight_decay = r.decay == RuleDecay::gradient ? std::optional(r.weight_decay) : std::nullopt,
                   .decoupled_decay = r.decay == RuleDecay::weights ? std::optional(r.weight_decay) : std::nullopt,
                   .maximize = if_true(r.maximize),
                   .nesterov = if_true(r.nesterov),
                   .damped = if_true(r.damped),
                   .states = positions_of(form.states),
                   .numbers = positions_of(form.numbers)};
}

RuleForm rule_form(const RuleAttrs& a) {
  if (a.weight_decay && a.decoupled_decay)
    throw ValueError(std::string(kName) + ": it takes weight_decay or decoupled_decay, got both");
  check_positions(a.states, "states", kRuleStates);
  check_positions(a.numbers, "numbers", kRuleNumbers);
  const RuleForm form = accepted_form(a);
  check_states(kName, form.rule.kind, form.states);
  check_numbers(form);
  return form;
}

void check_states(const char* where, RuleKind kind, unsigned states) {
  if (!has_form(kind, states))
    throw ValueError(std::string(where) + ": the rule '" + std::string(facts_of(kind).name) +
                     "' has no form with the states " + positions_of(states).str());
}

template <>
RuleSweep<float> sweep_of<float>(const Rule& rule, unsigned states) {
  return rules_in_use.get().f32(rule.kind, states, rule.decay == RuleDecay::none && !rule.maximize);
}
template <>
RuleSweep<double> sweep_of<double>(const Rule& rule, unsigned states) {
  return rules_in_use.get().f64(rule.kind, states, rule.decay == RuleDecay::none && !rule.maximize);
}

template <class T>
void run_shared(RuleSweep<T> sweep, const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run,
                std::int64_t n) {
  if (!is_shared(n)) return sweep(rule, numbers, run, n);
  each_share(n, [&](std::int64_t at, std::int64_t count) { sweep(rule, numbers, run.from(at), count); });
}
template void run_shared(RuleSweep<float>, const Rule&, const RuleNumbersOf<float>&, const RuleRun<float>&,
                         std::int64_t);
template void run_shared(RuleSweep<double>, const Rule&, const RuleNumbersOf<double>&, const RuleRun<double>&,
                         std::int64_t);

Tensors update_by_rule(Inputs in, const Attrs& attrs) { return structured<RuleUpdate>.apply(in, attrs); }

const Primitive& rule_operation() { return structured<RuleUpdate>; }

}  // namespace ferrite::nn::detail
