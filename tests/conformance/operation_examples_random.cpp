// Examples of draws. Every number follows from the seed, the name of the variable and the position.
#include "conformance/operation_examples.h"
#include "ferrite/tensor/sampling.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kRandom[] = {
    {"uniform", "torch.Tensor.uniform_", FERRITE_EXAMPLE(uniform({3}, {.seed = 1}, -1, 1))},
    {"normal", "torch.normal", FERRITE_EXAMPLE(normal({3}, {.seed = 2}))},
    {"exponential", "torch.Tensor.exponential_", FERRITE_EXAMPLE(exponential({3}, {.seed = 1}))},
    {"laplace", "torch.distributions.Laplace", FERRITE_EXAMPLE(laplace({3}, {.seed = 1}))},
    {"gumbel", "torch.distributions.Gumbel", FERRITE_EXAMPLE(gumbel({3}, {.seed = 1}))},
    {"truncated_normal", "torch.nn.init.trunc_normal_", FERRITE_EXAMPLE(truncated_normal({3}, {.seed = 1}))},
    {"randint", "torch.randint", FERRITE_EXAMPLE(randint({5}, {.seed = 1}, 0, 10))},
    {"gamma", "torch.distributions.Gamma with rate=1", FERRITE_EXAMPLE(gamma(full({3}, 2), {.seed = 1}))},
    {"poisson", "torch.poisson", FERRITE_EXAMPLE(poisson(full({5}, 3), {.seed = 1}))},
    {"beta", "torch.distributions.Beta", FERRITE_EXAMPLE(beta(full({3}, 2), full({3}, 2), {.seed = 1}))},
    {"multinomial", "torch.multinomial", FERRITE_EXAMPLE(multinomial(Tensor::from({1.f, 0.f, 3.f}), 2, {.seed = 1}))},
    {"filter_logits", "", FERRITE_EXAMPLE(filter_logits(Tensor::from({1.f, 3.f, 2.f}), {.top_k = 2}))},
    {"permutation", "torch.randperm", FERRITE_EXAMPLE(permutation(5, DrawKey({.seed = 1})))},
    {"bernoulli", "torch.Tensor.bernoulli_", FERRITE_EXAMPLE(bernoulli({5}, {.seed = 1}, 0.5))},
    {"categorical", "torch.distributions.Categorical", FERRITE_EXAMPLE(categorical(zeros({5, 4}), {.seed = 1}))},
    {"sample_logits", "", FERRITE_EXAMPLE(sample_logits(zeros({5, 4}), {.seed = 1}, {.top_k = 2}))},
    {"shuffle", "", FERRITE_EXAMPLE(shuffle(arange(5), {.seed = 1}))},
};

}  // namespace

std::span<const OperationExample> random_examples() { return kRandom; }

}  // namespace conformance
