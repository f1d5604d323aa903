/// Writes sums of products of extents as instructions.
#include "ferrite/exchange/emit/extent_arithmetic.h"

#include <algorithm>

namespace ferrite::exchange::detail {

Value ExtentArithmetic::number(const SymbolicNumber& n) {
  const auto constant = [&](std::int64_t value) { return b_.scalar(value, Dtype::i64); };
  if (n.is_constant()) return constant(n.more());
  const auto [at, fresh] = numbers_.try_emplace(n);
  if (!fresh) return at->second;
  Value x;
  for (const SymbolicNumber::Term& t : n.terms()) {
    Value term = product(t.symbols);
    if (t.factor != 1) term = b_.multiply(term, constant(t.factor));
    x = x.exists() ? b_.add(x, term) : term;
  }
  if (n.more() != 0) x = b_.add(x, constant(n.more()));
  if (n.divisor() != 1) x = b_.divide(x, constant(n.divisor()));
  return at->second = x;
}

Value ExtentArithmetic::list(const ExtentNumbers& numbers) {
  const auto [at, fresh] = lists_.try_emplace(numbers);
  if (!fresh) return at->second;
  if (are_constant(numbers)) {
    Integers values;
    for (const SymbolicNumber& n : numbers) values.push_back(n.more());
    return at->second = b_.integers(values);
  }
  if (numbers.size() == 1) {
    const Value n = number(numbers[0]);
    return at->second = b_.unsqueeze(n, 0);
  }
  Values parts;
  for (const SymbolicNumber& n : numbers)
    parts.push_back(n.is_constant() ? b_.filled(n.more(), {{1}, Dtype::i64}) : list({n}));
  return at->second = b_.concatenate(parts, 0);
}

Value ExtentArithmetic::real(const ExtentReal& r, Dtype dtype) {
  const Dtype in = b_.real_of_extents(dtype);
  const auto constant = [&](double value) { return b_.scalar(value, in); };
  Value x = b_.convert(number(r.number), in);
  if (r.factor != 1) x = b_.multiply(x, constant(r.factor));
  if (r.more != 0) x = b_.add(x, constant(r.more));
  if (r.inverse) x = b_.divide(constant(1), x);
  return b_.convert(x, dtype);
}

Value ExtentArithmetic::product(std::uint32_t set) {
  Value all;
  for (std::size_t k = 0; k < extents_.symbols(); ++k)
    if (set >> k & 1) all = all.exists() ? b_.multiply(all, extent(k)) : extent(k);
  return all;
}

/// Returns the k-th symbol: an extent of the first argument that has it, or a computed quotient.
Value ExtentArithmetic::extent(std::size_t k) {
  if (k >= extents_.names().size()) return number(extents_.quotients()[k - extents_.names().size()]);
  const auto [at, fresh] = numbers_.try_emplace(SymbolicNumber::symbol(k));
  if (at->second.exists()) return at->second;
  const DynamicAxis& a = *std::ranges::find(axes_, extents_.names()[k], &DynamicAxis::name);
  return at->second = b_.extent_of(arguments_[a.input], a.axis);
}

}  // namespace ferrite::exchange::detail
