/// Generators: random tensors that a compiled function draws afresh in every run.
#include "ferrite/tensor/generator.h"

#include <bit>

#include "ferrite/tensor/ops.h"

namespace ferrite {

Generator::Generator(std::uint64_t seed, std::string_view name)
    : calls("calls", full({}, 0, Dtype::i64)),
      key("key", Tensor::from({std::bit_cast<std::int64_t>(seed), std::bit_cast<std::int64_t>(stream_of(name))}, {2})) {
}

/// Gives f(key, number of the call); the next draw has the next number.
template <class F>
Tensor Generator::draw(F&& f) const {
  const Tensor call = calls.value();
  Tensor drawn = f(key.value(), call);
  calls.assign(call + 1);
  return drawn;
}

Tensor Generator::uniform(const Shape& shape, double low, double high, Dtype dtype) const {
  return draw([&](const Tensor& k, const Tensor& call) { return ferrite::uniform(shape, k, call, low, high, dtype); });
}

Tensor Generator::normal(const Shape& shape, double mean, double deviation, Dtype dtype) const {
  return draw(
      [&](const Tensor& k, const Tensor& call) { return ferrite::normal(shape, k, call, mean, deviation, dtype); });
}

Tensor Generator::bernoulli(const Shape& shape, double probability, Dtype dtype) const {
  return draw(
      [&](const Tensor& k, const Tensor& call) { return ferrite::bernoulli(shape, k, call, probability, dtype); });
}

}  // namespace ferrite
