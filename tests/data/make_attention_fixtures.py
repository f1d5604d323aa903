#!/usr/bin/env python3
"""Writes attention.safetensors, functions of attention, and attention_layers.safetensors, layers of tokens: what PyTorch
gives, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_attention_fixtures.py [FOLDER]

Functions are cases of twice.py; masks of theirs are constants CASE/mask. A case of a layer holds its inputs in0, in1, ...,
constants under c/, y (0 beyond lengths), a cotangent cot of y, and the parameters under p/; for every input of floats and for every
parameter the gradient under g/, a direction under v/, and under h/ the gradient of the sum of <g, v>. Names ending in
_eval are of modules in evaluation. What PyTorch has no module for (grouped queries, rotary positions, ALiBi) is `Heads`,
written with its functions. tests/golden/attention_golden_test.cpp has the counterpart of every case.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from reference import save_file
from torch import nn
from twice import write

torch.set_default_dtype(torch.float64)


def r(*shape, low=-1.0, high=1.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


# ---- functions ---------------------------------------------------------------------------------------------------


def rotary(x, positions, base=10000.0, interleaved=False):
    D = x.shape[-1]
    angles = positions.double()[..., None] * base ** (-2 * torch.arange(D // 2).double() / D)
    c, s = angles.cos(), angles.sin()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def functions():
    sdpa = F.scaled_dot_product_attention
    q, k, v = r(2, 3, 4, 5), r(2, 3, 6, 5), r(2, 3, 6, 2)
    some = torch.tensor([[1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]]).bool()
    masks = {"bool": some, "padding": torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]]).bool()[:, None, None, :]}
    hiding = torch.where(some, r(4, 6), -math.inf)
    masks["hiding"] = hiding
    cases = {
        "plain": (sdpa, [q, k, v]),
        "matrices": (sdpa, [q[0, 0], k[0, 0], v[0, 0]]),
        "scale": (lambda *t: sdpa(*t, scale=-0.75), [q, k, v]),
        "causal": (lambda *t: sdpa(*t, is_causal=True), [q, k, v]),
        "causal_more_queries": (lambda *t: sdpa(*t, is_causal=True), [k, q, r(2, 3, 4, 3)]),
        "bool": (lambda *t: sdpa(*t, attn_mask=some), [q, k, v]),
        "padding": (lambda *t: sdpa(*t, attn_mask=masks["padding"]), [q, k, v]),
        "hiding": (lambda *t: sdpa(*t, attn_mask=hiding), [q, k, v]),
        "added": (lambda a, b, c, m: sdpa(a, b, c, attn_mask=m), [q, k, v, r(3, 4, 6)]),
        "grouped": (lambda *t: sdpa(*t, enable_gqa=True), [r(2, 4, 3, 4), r(2, 2, 5, 4), r(2, 2, 5, 3)]),
        "grouped_causal": (lambda *t: sdpa(*t, enable_gqa=True, is_causal=True), [r(6, 3, 4), r(2, 5, 4), r(2, 5, 4)]),
        "grouped_one": (lambda *t: sdpa(*t, enable_gqa=True, attn_mask=some), [r(2, 3, 4, 2), r(2, 1, 6, 2), r(2, 1, 6, 2)]),
        "rotary": (lambda x: rotary(x, torch.tensor([0, 1, 2, 70])).square(), [r(2, 4, 6)]),
        "rotary_pairs": (lambda x: rotary(x, torch.tensor([[3, 9], [5, 0]]), 500.0, True).square(), [r(2, 2, 8)]),
    }
    return cases, {f"{name}/mask": m for name, m in masks.items()}


# ---- layers ------------------------------------------------------------------------------------------------------


class Heads(nn.Module):
    """Multi-head attention with fewer heads of keys and positions, by torch.nn.functional."""

    def __init__(self, E, H, G, positions, causal, bias=True):
        super().__init__()
        self.E, self.H, self.G, self.positions, self.causal = E, H, G, positions, causal
        K = G * E // H
        self.in_proj_weight = nn.Parameter(torch.empty(E + 2 * K, E))
        if bias:
            self.in_proj_bias = nn.Parameter(torch.empty(E + 2 * K))
        self.out_proj = nn.Linear(E, E, bias=bias)

    def forward(self, x, hidden=None):
        B, T, W, K = *x.shape[:2], self.E // self.H, self.G * self.E // self.H
        q, k, v = F.linear(x, self.in_proj_weight, getattr(self, "in_proj_bias", None)).split([self.E, K, K], -1)
        q, k, v = [t.view(B, T, -1, W).transpose(1, 2) for t in (q, k, v)]
        at = torch.arange(T)
        if self.positions.startswith("rotary"):
            q, k = [rotary(t, at, 10000.0, self.positions == "rotary_pairs") for t in (q, k)]
        mask = torch.zeros(1, self.H, T, T)
        if self.positions == "alibi":
            mask = mask - torch.tensor(slopes(self.H))[:, None, None] * (at[:, None] - at).abs()
        if self.causal:
            mask = mask.masked_fill(at > at[:, None], -math.inf)
        if hidden is not None:
            mask = mask.masked_fill(hidden[:, None, None, :], -math.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, self.E))


def slopes(n):
    """As in the code of the paper, github.com/ofirpress/attention_with_linear_biases."""
    def of_power(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    if math.log2(n).is_integer():
        return of_power(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_power(closest) + slopes(2 * closest)[0::2][: n - closest]


def attend(**masks):
    return lambda m, *t: m(*(t if len(t) > 1 else t * 3), need_weights=False, **masks)[0]


def attention_cases():
    mha = lambda *a, **o: nn.MultiheadAttention(*a, batch_first=True, **o)
    x = r(2, 5, 6)
    after = torch.ones(5, 5).bool().triu(1)
    hides = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()
    every = torch.zeros(5, 5).bool()
    every[2] = True  # a query that sees nothing
    cross = [x, r(2, 4, 6), r(2, 4, 6)]
    masks = {"attn_mask": r(4, 5, 4) * 2, "key_padding_mask": torch.tensor([[0, 0, 1, 0], [1, 0, 0, 1]]).bool()}
    floats = torch.where(masks["key_padding_mask"], -math.inf, 0.0)
    return {
        "mha": (mha(6, 2), [x], attend(), {}),
        "mha_eval": (mha(6, 2).eval(), [x], attend(), {}),
        "mha_no_bias": (mha(6, 3, bias=False), [x], attend(), {}),
        "mha_causal": (mha(6, 2), [x], attend(attn_mask=after), {}),
        "mha_padding": (mha(6, 2), [x], attend(key_padding_mask=hides), {"lengths": torch.tensor([3, 5])}),
        "mha_nothing_seen": (mha(6, 2), [x] * 3, attend(attn_mask=every), {"attn_mask": every}),
        "mha_cross": (mha(6, 2), cross, attend(**masks), masks),
        "mha_cross_floats": (mha(6, 2), cross, attend(attn_mask=masks["attn_mask"], key_padding_mask=floats),
                             {"attn_mask": masks["attn_mask"], "key_padding_mask": floats}),
        "mha_dims": (mha(6, 2, kdim=3, vdim=4), [x, r(2, 4, 3), r(2, 4, 4)], attend(), {}),
        "mha_kdim": (mha(6, 2, kdim=3, bias=False), [x, r(2, 4, 3), r(2, 4, 6)], attend(), {}),
        "mha_bias_kv": (mha(6, 2, add_bias_kv=True), [x], attend(attn_mask=after), {}),
        "mha_zero": (mha(6, 2, add_zero_attn=True), cross, attend(**masks), masks),
        "mha_both_first": (mha(6, 2, add_bias_kv=True, add_zero_attn=True), [x], attend(key_padding_mask=hides),
                           {"lengths": torch.tensor([3, 5])}),
        "heads_grouped": (Heads(8, 4, 2, "none", False), [r(2, 5, 8)], None, {}),
        "heads_one": (Heads(6, 3, 1, "none", True, bias=False), [x], None, {}),
        "heads_rotary": (Heads(8, 2, 2, "rotary", True), [r(2, 5, 8)], None, {}),
        "heads_rotary_pairs": (Heads(8, 2, 1, "rotary_pairs", False), [r(2, 5, 8)], lambda m, t: m(t, hides),
                               {"lengths": torch.tensor([3, 5])}),
        "heads_alibi": (Heads(12, 6, 2, "alibi", True), [r(2, 5, 12)], None, {}),
        "heads_alibi_both_ways": (Heads(8, 4, 4, "alibi", False), [r(2, 5, 8)], lambda m, t: m(t, hides),
                                  {"lengths": torch.tensor([3, 5])}),
    }


class Positions(nn.Module):
    """Sines and cosines as in arXiv 1706.03762, or learned rows."""

    def __init__(self, D, learned=None):
        super().__init__()
        self.D = D
        if learned:
            self.weight = nn.Parameter(torch.empty(learned, D))

    def forward(self, x):
        if hasattr(self, "weight"):
            return x + self.weight[: x.shape[1]]
        angles = torch.arange(x.shape[1]).double()[:, None] / 10000.0 ** (torch.arange(0, self.D, 2).double() / self.D)
        return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[:, : self.D]


class WeightedBag(nn.Module):
    """nn.EmbeddingBag of sums with per_sample_weights, whose double backward PyTorch lacks."""

    def __init__(self, V, D):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(V, D))

    def forward(self, tokens, weights):
        y = (F.embedding(tokens, self.weight) * weights[..., None]).sum(1)
        assert torch.allclose(y, F.embedding_bag(tokens, self.weight, mode="sum", per_sample_weights=weights))
        return y


def transformer_cases():
    encoder = lambda *a, **o: nn.TransformerEncoderLayer(*a, dropout=0.0, batch_first=True, **o)
    decoder = lambda *a, **o: nn.TransformerDecoderLayer(*a, dropout=0.0, batch_first=True, **o)
    x, memory = r(2, 4, 6), r(2, 3, 6)
    after = torch.ones(4, 4).bool().triu(1)
    lengths = {"lengths": torch.tensor([2, 4])}
    hides = torch.arange(4) >= lengths["lengths"][:, None]
    masks = {"attn_mask": torch.where(after, -math.inf, r(4, 4)), "memory_mask": r(4, 3),
             "memory_key_padding_mask": torch.tensor([[0, 1, 0], [0, 0, 1]]).bool()}
    decode = lambda m, t, u: m(t, u, tgt_mask=masks["attn_mask"], memory_mask=masks["memory_mask"],
                               memory_key_padding_mask=torch.where(masks["memory_key_padding_mask"], -math.inf, 0.0))
    tokens, flat = torch.tensor([[3, 1, 4, 1], [0, 2, 1, 3]]), torch.tensor([3, 1, 1, 4, 0, 2, 1])
    bag = lambda mode, **o: nn.EmbeddingBag(5, 3, mode=mode, **o)
    offsets, ends = torch.tensor([0, 2, 2, 6]), torch.tensor([0, 2, 3, 3, 7])
    at = lambda o: (lambda m, t: m(t, o))
    return {
        "encoder": (encoder(6, 2, 5), [x], None, {}),
        "encoder_eval": (encoder(6, 2, 5).eval(), [x], None, {}),
        "encoder_first": (encoder(6, 3, 7, activation="gelu", norm_first=True, layer_norm_eps=0.01), [x], None, {}),
        "encoder_no_bias": (encoder(6, 2, 5, bias=False, activation=F.silu), [x], None, {}),
        "encoder_causal": (encoder(6, 2, 5), [x], lambda m, t: m(t, after, is_causal=True), {}),
        "encoder_padding": (encoder(6, 2, 5, norm_first=True), [x], lambda m, t: m(t, src_key_padding_mask=hides), lengths),
        "encoder_masks": (encoder(6, 2, 5), [x], lambda m, t: m(t, masks["attn_mask"]), {"attn_mask": masks["attn_mask"]}),
        "decoder": (decoder(6, 2, 5), [x, memory], None, {}),
        "decoder_eval": (decoder(6, 2, 5).eval(), [x, memory], None, {}),
        "decoder_first": (decoder(6, 3, 4, norm_first=True, activation="gelu"), [x, memory],
                          lambda m, t, u: m(t, u, after, tgt_is_causal=True), {}),
        "decoder_no_bias": (decoder(6, 1, 4, bias=False), [x, memory], None, {}),
        "decoder_masks": (decoder(6, 2, 5), [x, memory], decode, masks),
        "embedding_padding": (nn.Embedding(5, 3, padding_idx=1), [tokens], None, {}),
        "embedding_padding_last": (nn.Embedding(5, 3, padding_idx=-1), [tokens], None, {}),
        "bag_sum": (bag("sum"), [tokens], None, {}),
        "bag_mean": (bag("mean", padding_idx=1), [tokens], None, {}),
        "bag_max": (bag("max"), [tokens], None, {}),
        "bag_max_padding": (bag("max", padding_idx=-4), [torch.tensor([[3, 1, 4], [1, 1, 1]])], None, {}),
        "bag_weighted": (WeightedBag(5, 3), [tokens, r(2, 4)], None, {}),
        "bag_sum_offsets": (bag("sum", padding_idx=1), [flat], at(offsets), {"offsets": offsets}),
        "bag_mean_offsets": (bag("mean"), [flat], at(offsets), {"offsets": offsets}),
        "bag_mean_ends": (bag("mean", include_last_offset=True, padding_idx=1), [flat], at(ends), {"offsets": ends}),
        "bag_max_offsets": (bag("max", padding_idx=1), [flat], at(offsets), {"offsets": offsets}),
        "sinusoidal": (Positions(6), [x], None, {}),
        "sinusoidal_odd": (Positions(5), [r(1, 3, 5)], None, {}),
        "learned": (Positions(6, 5), [x], None, {}),
    }


def layers(cases):
    tensors = {}
    for name, (module, inputs, call, constants) in cases.items():
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(r(*p.shape))
        values = {f"in{i}": t.clone().requires_grad_(t.is_floating_point()) for i, t in enumerate(inputs)}
        y = (call or (lambda m, *t: m(*t)))(module, *values.values())
        if "lengths" in constants:
            y = y * (torch.arange(y.shape[1]) < constants["lengths"][:, None])[..., None]
        values |= {f"p/{key}": p for key, p in module.named_parameters()}
        wanted = {key: t for key, t in values.items() if t.requires_grad}
        cotangent = torch.randn_like(y).float().double()
        grads = torch.autograd.grad(y, list(wanted.values()), cotangent, create_graph=True)
        directions = [torch.randn_like(t).float().double() for t in grads]
        total = sum((g * v).sum() for g, v in zip(grads, directions))
        second = [torch.zeros_like(t) for t in grads]
        if total.requires_grad:
            second = torch.autograd.grad(total, list(wanted.values()), allow_unused=True, materialize_grads=True)
        all = values | {f"c/{key}": t for key, t in constants.items()} | {"y": y, "cot": cotangent}
        for key, g, v, h in zip(wanted, grads, directions, second):
            key = key.removeprefix("p/")
            all |= {f"g/{key}": g, f"v/{key}": v, f"h/{key}": h}
        tensors |= {f"{name}/{key}": t.detach().clone().contiguous() for key, t in all.items()}
    return tensors


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    # Of the kernels only this one has a double backward.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        torch.manual_seed(41)
        cases, more = functions()
        write(folder / "attention.safetensors", cases, more)
        torch.manual_seed(43)
        tensors = layers(attention_cases())
        tensors |= layers(transformer_cases())
        save_file(tensors, folder / "attention_layers.safetensors", {"torch": torch.__version__})
    print(len({name.split("/")[0] for name in tensors}), "layers")


if __name__ == "__main__":
    main()
