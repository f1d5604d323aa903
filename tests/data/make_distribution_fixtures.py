#!/usr/bin/env python3
"""Writes distributions.safetensors: densities, distribution functions, entropies and Kullback-Leibler divergences of
torch.distributions with their gradients and the gradients of these, in f64.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_distribution_fixtures.py [FOLDER]

Case NAME holds NAME/in0, ... (f64) that are differentiated, constants NAME/c0, ..., NAME/out, a cotangent NAME/cot, the
gradients NAME/g0, ..., cotangents of these NAME/v0, ... and NAME/h0, ..., the gradients of the sum of <v, g>.
tests/golden/distributions_golden_test.cpp has the counterparts.
"""
import math
import pathlib
import sys

import torch
import torch.distributions as D
from safetensors.torch import save_file

torch.manual_seed(23)
D.Distribution.set_default_validate_args(False)


def shifted(x):
    """x + 15, where Stirling's series has all digits, and what leads there."""
    return x + 15, [x + i for i in range(15)]


def lgamma(x):
    """In operations: PyTorch's third derivative, and its second one of digamma, have nine digits."""
    y, steps = shifted(x)
    series = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
    tail = sum(c / y ** (2 * k + 1) for k, c in enumerate(series))
    return (y - 0.5) * y.log() - y + 0.5 * math.log(2 * math.pi) + tail - sum(s.log() for s in steps)


def digamma(x):
    y, steps = shifted(x)
    series = [1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12]
    tail = sum(c / y ** (2 * k + 2) for k, c in enumerate(series))
    return y.log() - 1 / (2 * y) - tail - sum(1 / s for s in steps)


POINTS = torch.linspace(0.1, 9, 50).double()
assert torch.allclose(lgamma(POINTS), torch.lgamma(POINTS), rtol=1e-13, atol=1e-13)
assert torch.allclose(digamma(POINTS), torch.digamma(POINTS), rtol=1e-13, atol=1e-13)
torch.lgamma, torch.digamma = lgamma, digamma
torch.Tensor.lgamma, torch.Tensor.digamma = lgamma, digamma


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def positive(*shape):
    return r(*shape, low=0.3, high=2.5)


def probabilities(*shape):
    return r(*shape, low=0.05, high=0.95)


M, S, X = r(3, 4), positive(3, 4), r(3, 4, low=-3, high=3)
CASES = {}


def case(name, f, inputs, constants=()):
    CASES[name] = (f, inputs, list(constants))


for name, kind, parameters in [
        ("normal", D.Normal, [M, S]), ("laplace", D.Laplace, [M, S]), ("uniform", lambda a, b: D.Uniform(a, a + b), [M, S]),
        ("exponential", D.Exponential, [S])]:
    value = r(3, 4, low=0.1, high=3) if name == "exponential" else X
    inside = M + S * probabilities(3, 4) if name == "uniform" else value
    case(f"{name}_log_prob", lambda *a, kind=kind: kind(*a[:-1]).log_prob(a[-1]), parameters + [inside])
    case(f"{name}_cdf", lambda *a, kind=kind: kind(*a[:-1]).cdf(a[-1]), parameters + [inside])
    case(f"{name}_entropy", lambda *a, kind=kind: kind(*a).entropy(), parameters)
    case(f"{name}_mean", lambda *a, kind=kind: kind(*a).mean + 0 * a[0], parameters)
    case(f"{name}_variance", lambda *a, kind=kind: kind(*a).variance, parameters)
case("uniform_outside", lambda a, b: D.Uniform(a, a + b).log_prob(a + 2 * b * torch.tensor([0.0, 0.25, 0.625, 0.75])), [M, S])
case("normal_broadcast", lambda m, s, x: D.Normal(m, s).log_prob(x), [r(4), positive(3, 1), r(2, 3, 4)])
BITS = (r(3, 4) > 0).double()
case("bernoulli_log_prob", lambda x, v: D.Bernoulli(logits=x).log_prob(v), [M * 3], [BITS])
case("bernoulli_entropy", lambda x: D.Bernoulli(logits=x).entropy(), [M * 3])
case("bernoulli_probabilities", lambda p, v: D.Bernoulli(p).log_prob(v), [probabilities(3, 4)], [BITS])
case("bernoulli_variance", lambda x: D.Bernoulli(logits=x).variance, [M])
CLASSES = torch.tensor([3, 0, 1])
case("categorical_log_prob", lambda x, v: D.Categorical(logits=x).log_prob(v), [M], [CLASSES])
case("categorical_many", lambda x, v: D.Categorical(logits=x).log_prob(v), [M], [torch.tensor([[3, 0, 1], [2, 2, 0]])])
case("categorical_entropy", lambda x: D.Categorical(logits=x).entropy(), [M])
case("categorical_probabilities", lambda p, v: D.Categorical(p).log_prob(v), [S], [CLASSES])
M2, S2 = r(3, 4), positive(3, 4)
for name, kind in [("normal", D.Normal), ("laplace", D.Laplace)]:
    case(f"kl_{name}", lambda a, b, c, d, kind=kind: D.kl_divergence(kind(a, b), kind(c, d)), [M, S, M2, S2])
case("kl_uniform", lambda a, b, c, d: D.kl_divergence(D.Uniform(a, a + b), D.Uniform(a - c, a + b + d)), [M, S, S2, S2 + 1])
case("kl_uniform_outside", lambda a, b: D.kl_divergence(D.Uniform(a, a + b), D.Uniform(a + 0.125, a + b)), [M, S])
case("kl_exponential", lambda a, b: D.kl_divergence(D.Exponential(a), D.Exponential(b)), [S, S2])
case("kl_bernoulli", lambda a, b: D.kl_divergence(D.Bernoulli(logits=a), D.Bernoulli(logits=b)), [M, M2])
case("kl_categorical", lambda a, b: D.kl_divergence(D.Categorical(logits=a), D.Categorical(logits=b)), [M, M2])
case("kl_uniform_normal", lambda a, b, c, d: D.kl_divergence(D.Uniform(a, a + b), D.Normal(c, d)), [M, S, M2, S2])
case("kl_exponential_normal", lambda a, c, d: D.kl_divergence(D.Exponential(a), D.Normal(c, d)), [S, M2, S2])
case("mixture_log_prob", lambda w, m, s, x: D.MixtureSameFamily(D.Categorical(logits=w), D.Normal(m, s)).log_prob(x), [r(3, 4), M, S, r(2, 3)])
case("mixture_laplace", lambda w, m, s, x: D.MixtureSameFamily(D.Categorical(logits=w), D.Laplace(m, s)).log_prob(x), [r(3, 4), M, S, r(3)])
case("mixture_mean", lambda w, m, s: D.MixtureSameFamily(D.Categorical(logits=w), D.Normal(m, s)).mean + 0 * s.sum(), [r(3, 4), M, S])

V = r(3, 4, low=0.1, high=3)
case("gamma_log_prob", lambda a, b, x: D.Gamma(a, b).log_prob(x), [S, S2, V])
case("gamma_entropy", lambda a, b: D.Gamma(a, b).entropy(), [S, S2])
case("gamma_variance", lambda a, b: D.Gamma(a, b).variance, [S, S2])
case("beta_log_prob", lambda a, b, x: D.Beta(a, b).log_prob(x), [S, S2, probabilities(3, 4)])
case("beta_entropy", lambda a, b: D.Beta(a, b).entropy(), [S, S2])
case("beta_variance", lambda a, b: D.Beta(a, b).variance, [S, S2])
S3, S4 = positive(3, 4), positive(3, 4)
case("kl_gamma", lambda a, b, c, d: D.kl_divergence(D.Gamma(a, b), D.Gamma(c, d)), [S, S2, S3, S4])
case("kl_beta", lambda a, b, c, d: D.kl_divergence(D.Beta(a, b), D.Beta(c, d)), [S, S2, S3, S4])


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs, constants) in CASES.items():
        inputs = [x.clone().requires_grad_() for x in inputs]
        out = f(*inputs, *constants)
        for k, x in enumerate(inputs):
            tensors[f"{name}/in{k}"] = x
        for k, x in enumerate(constants):
            tensors[f"{name}/c{k}"] = x
        tensors[f"{name}/out"] = out
        tensors[f"{name}/cot"] = cotangent = torch.randn_like(out).float().double()
        grads = torch.autograd.grad(out, inputs, cotangent, create_graph=True, allow_unused=True)
        grads = [torch.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]
        for k, g in enumerate(grads):
            tensors[f"{name}/g{k}"] = g
        directions = [torch.randn_like(g).float().double() for g in grads]
        for k, v in enumerate(directions):
            tensors[f"{name}/v{k}"] = v
        total = sum((v * g).sum() for v, g in zip(directions, grads))
        again = torch.autograd.grad(total, inputs, allow_unused=True) if total.requires_grad else [None] * len(inputs)
        for k, h in enumerate(again):
            tensors[f"{name}/h{k}"] = torch.zeros_like(inputs[k]) if h is None else h
    save_file({name: x.detach().clone().contiguous() for name, x in tensors.items()},
              folder / "distributions.safetensors", {"torch": torch.__version__})
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
