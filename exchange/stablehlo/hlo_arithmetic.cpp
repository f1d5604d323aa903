/// Arithmetic on `get_dimension_size`.
#include "ferrite/exchange/stablehlo/hlo_arithmetic.h"

#include <algorithm>

namespace ferrite::exchange::detail {

ExtentArithmetic::ExtentArithmetic(const HloBuilder& b, const Extents& extents, const std::vector<DynamicAxis>& axes,
                                   const HloValues& arguments)
    : extents_(extents), axes_(axes), arguments_(arguments), b_(&b) {}

HloValue ExtentArithmetic::number(const SymbolicNumber& n) {
  const auto constant = [&](std::int64_t value) { return b_.constant(value, {{}, Dtype::i64}); };
  if (n.is_constant()) return constant(n.more());
  const auto [at, fresh] = numbers_.try_emplace(extents_.text(n));
  if (!fresh) return at->second;
  HloValue x;
  for (const SymbolicNumber::Term& t : n.terms()) {
    HloValue term = product(t.symbols);
    if (t.factor != 1) term = b_.multiply(term, constant(t.factor));
    x = x.exists() ? b_.add(x, term) : term;
  }
  if (n.more() != 0) x = b_.add(x, constant(n.more()));
  if (n.divisor() != 1) x = b_.divide(x, constant(n.divisor()));
  return at->second = x;
}

HloValue ExtentArithmetic::list(const ExtentNumbers& numbers) {
  std::string text;
  for (const SymbolicNumber& n : numbers) text += extents_.text(n) + ",";
  const auto [at, fresh] = lists_.try_emplace(text);
  if (!fresh) return at->second;
  if (are_constant(numbers)) {
    std::vector<std::int64_t> values;
    for (const SymbolicNumber& n : numbers) values.push_back(n.more());
    return at->second = b_.constant(Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}));
  }
  if (numbers.size() == 1) return at->second = b_.reshape(number(numbers[0]), {1});
  HloValues parts;
  for (const SymbolicNumber& n : numbers)
    parts.push_back(n.is_constant() ? b_.constant(n.more(), {{1}, Dtype::i64}) : list({n}));
  return at->second = b_.concatenate(parts, 0);
}

/// In f64 for f64 alone: not every target has that.
HloValue ExtentArithmetic::real(const ExtentReal& r, Dtype dtype) {
  const Dtype in = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const auto constant = [&](double value) { return b_.constant(value, {{}, in}); };
  HloValue x = b_.convert(number(r.number), in);
  if (r.factor != 1) x = b_.multiply(x, constant(r.factor));
  if (r.more != 0) x = b_.add(x, constant(r.more));
  if (r.inverse) x = b_.divide(constant(1), x);
  return b_.convert(x, dtype);
}

HloValue ExtentArithmetic::product(std::uint32_t set) {
  HloValue all;
  for (std::size_t k = 0; k < extents_.names().size(); ++k)
    if (set >> k & 1) all = all.exists() ? b_.multiply(all, extent(k)) : extent(k);
  return all;
}

/// From the first argument that has it.
HloValue ExtentArithmetic::extent(std::size_t k) {
  const std::string& name = extents_.names()[k];
  const auto [at, fresh] = numbers_.try_emplace(name);
  if (!fresh && at->second.exists()) return at->second;
  const DynamicAxis& a = *std::ranges::find(axes_, name, &DynamicAxis::name);
  const HloValue size =
      b_.emit("get_dimension_size", {arguments_[a.input]}, {{}, Dtype::i32}, {{"dim", std::to_string(a.axis)}});
  return numbers_[name] = b_.convert(size, Dtype::i64);
}

}  // namespace ferrite::exchange::detail
