#!/usr/bin/env python3
"""Writes recurrent.safetensors: what torch's recurrent layers and cells give over all their options.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_recurrent_fixtures.py [FOLDER]

Three tensors a case. NNN/config i64, in the order of FIELDS, the lengths behind it. NNN/in f32 (everything that goes
in is exact in f32): x, h0 and c0 if given, the parameters in torch's order and layout, the cotangents of y, h_n and
c_n, and for double backward a direction for each of x, h0, c0 and the parameters. NNN/out f64: y, h_n, c_n, the
gradients of sum(y cy) + sum(h_n ch) + sum(c_n cc) by x, h0, c0 and the parameters, and for double backward the
gradients of the sum of <gradient, direction> by the same. NNN/gap f64: how far torch's own f32 is from each tensor of
the first part of `out`, in the metric of docs/numerics.md. Where x is padding it holds NaN in every other case.
"""
import itertools
import pathlib
import sys

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reference import save_file

FIELDS = ("kind", "layers", "bidirectional", "bias", "layout", "states", "ragged", "dropout", "proj", "D", "H", "B", "T", "double")
KINDS = ("gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
BATCH_FIRST, TIME_FIRST, UNBATCHED = range(3)
NOT_RAGGED, SORTED, UNSORTED = range(3)


def exact(t):
    return t.detach().float().double()


def configurations():
    """All options of the GRU; every third of LSTM's and RNN's; projections, dropout of everything, cells."""
    shapes = [(l, r) for l in (BATCH_FIRST, TIME_FIRST) for r in (NOT_RAGGED, SORTED, UNSORTED)] + [(UNBATCHED, NOT_RAGGED)]
    everything = list(itertools.product((1, 2, 3), (0, 1), (1, 0), shapes, (0, 1)))
    n = 0

    def sized(kind, layers, bi, bias, layout, states, ragged, dropout=0, proj=0, double=None):
        nonlocal n
        n += 1
        r = n * 2654435761 % 2**32 >> 8  # sizes as if by chance
        D, H, B, T = 1 + r % 4, 2 + (r >> 3) % 3, 1 if layout == UNBATCHED else 1 + (r >> 6) % 4, 1 if n % 10 == 7 else 2 + (r >> 9) % 4
        if ragged:
            T = max(T, 3)
        double = double if double is not None else int(n % 12 == 0 and layers * (1 + bi) <= 4)
        return (KINDS.index(kind), layers, bi, bias, layout, states, ragged, dropout, H - 1 if proj else 0, D, H, B, T, double)

    for layers, bi, bias, (layout, ragged), states in everything:
        yield sized("gru", layers, bi, bias, layout, states, ragged)
    for i, (layers, bi, bias, (layout, ragged), states) in enumerate(everything):
        if i % 5 in (0, 2):
            yield sized("lstm", layers, bi, bias, layout, states, ragged)
        if i % 9 == 1:
            yield sized("lstm", layers, bi, bias, layout, states, ragged, proj=1)
        if i % 5 == 3:
            yield sized("rnn_tanh", layers, bi, bias, layout, states, ragged)
        if i % 9 == 4:
            yield sized("rnn_relu", layers, bi, bias, layout, states, ragged)
    for kind in ("gru", "lstm", "rnn_tanh"):
        for layers, bi in ((2, 0), (3, 1)):
            yield sized(kind, layers, bi, 1, BATCH_FIRST, 1, NOT_RAGGED, dropout=1)
    for kind in KINDS[4:]:
        for bias, states, layout in itertools.product((1, 0), (0, 1), (BATCH_FIRST, UNBATCHED)):
            yield sized(kind, 1, 0, bias, layout, states, NOT_RAGGED, double=states)


def module_of(c):
    kind = KINDS[c["kind"]]
    if kind.endswith("cell"):
        cls = {"gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell, "rnn": torch.nn.RNNCell}[kind.split("_")[0]]
        more = {"nonlinearity": kind.split("_")[1]} if kind.startswith("rnn") else {}
        return cls(c["D"], c["H"], bias=bool(c["bias"]), **more)
    cls = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM, "rnn": torch.nn.RNN}[kind.split("_")[0]]
    more = {"nonlinearity": kind.split("_")[1]} if kind.startswith("rnn") else {}
    if kind == "lstm":
        more["proj_size"] = c["proj"]
    return cls(c["D"], c["H"], c["layers"], bias=bool(c["bias"]), batch_first=c["layout"] == BATCH_FIRST,
               dropout=float(c["dropout"]), bidirectional=bool(c["bidirectional"]), **more)


def call(module, c, lengths, x, states):
    """y, h_n and of an LSTM c_n."""
    given = None if not states else states[0] if len(states) == 1 else tuple(states)
    if KINDS[c["kind"]].endswith("cell"):
        out = module(x, given)
        return list(out) if isinstance(out, tuple) else [out]
    if lengths is not None:
        x = pack_padded_sequence(x, lengths, c["layout"] == BATCH_FIRST, enforce_sorted=c["ragged"] == SORTED)
    y, last = module(x, given)
    if lengths is not None:
        y, _ = pad_packed_sequence(y, c["layout"] == BATCH_FIRST, total_length=c["T"])
    return [y] + (list(last) if isinstance(last, tuple) else [last])


def gap(narrow, wide):
    scale = max(1.0, float(wide.abs().max())) if wide.numel() else 1.0
    return float((narrow.detach().double() - wide).abs().max()) / scale if wide.numel() else 0.0


def case(number, values):
    c = dict(zip(FIELDS, values))
    torch.manual_seed(number)
    module = module_of(c).double()
    for p in module.parameters():
        p.data = exact(p)  # default initialisation: the bound in f32 of docs/numerics.md is for it
    cell = KINDS[c["kind"]].endswith("cell")
    D, H, B, T = c["D"], c["H"], c["B"], c["T"]
    shape = {BATCH_FIRST: (B, T, D), TIME_FIRST: (T, B, D), UNBATCHED: (T, D)}[c["layout"]]
    if cell:
        shape = (D,) if c["layout"] == UNBATCHED else (B, D)
    x = exact(torch.rand(shape) * 2 - 1)
    lengths = None
    if c["ragged"]:
        lengths = torch.randint(1, T + 1, (B,))
        lengths[torch.randint(0, B, (1,))] = T if number // 3 % 2 else T - 1
        if c["ragged"] == SORTED:
            lengths = lengths.sort(descending=True).values
        padding = torch.arange(T)[None, :] >= lengths[:, None]
        if number // 2 % 2:
            x[padding if c["layout"] == BATCH_FIRST else padding.T] = float("nan")
    x.requires_grad_()
    states = []
    if c["states"]:
        widths = [c["proj"] or H] + ([H] if "lstm" in KINDS[c["kind"]] else [])
        rows = c["layers"] * (2 if c["bidirectional"] else 1)
        for w in widths:
            s = (w,) if cell and c["layout"] == UNBATCHED else (B, w) if cell else (rows, w) if c["layout"] == UNBATCHED else (rows, B, w)
            states.append(exact(torch.rand(s) * 2 - 1).requires_grad_())
    parameters = list(module.parameters())
    variables = [x] + states + parameters
    results = call(module, c, lengths, x, states)
    cotangents = [exact(torch.randn_like(r)) for r in results]
    loss = sum((r * g).sum() for r, g in zip(results, cotangents))
    grads = torch.autograd.grad(loss, variables, create_graph=True)
    inside = variables + cotangents
    outside = results + list(grads)
    first = len(outside)
    if c["double"]:
        directions = [exact(torch.randn_like(g)) for g in grads]
        total = sum((g * u).sum() for g, u in zip(grads, directions))
        inside = inside + directions
        outside = outside + list(torch.autograd.grad(total, variables, allow_unused=False))
    narrow = module_of(c)
    for p, q in zip(narrow.parameters(), parameters):
        p.data = q.detach().float()
    leaves = [v.detach().float().requires_grad_() for v in [x] + states]
    results32 = call(narrow, c, lengths, leaves[0], leaves[1:])
    loss32 = sum((r * g.float()).sum() for r, g in zip(results32, cotangents))
    grads32 = torch.autograd.grad(loss32, leaves + list(narrow.parameters()))
    gaps = [gap(a, b.detach()) for a, b in zip(list(results32) + list(grads32), outside[:first])]
    flat = lambda ts, dtype: torch.cat([t.detach().reshape(-1).to(dtype) for t in ts])
    return {
        f"{number:03}/config": torch.tensor(list(values) + (lengths.tolist() if lengths is not None else []), dtype=torch.int64),
        f"{number:03}/in": flat(inside, torch.float32),
        f"{number:03}/out": flat(outside, torch.float64),
        f"{number:03}/gap": torch.tensor(gaps, dtype=torch.float64),
    }


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for number, values in enumerate(configurations()):
        tensors |= case(number, values)
    save_file(tensors, folder / "recurrent.safetensors", {"torch": torch.__version__, "fields": ",".join(FIELDS), "kinds": ",".join(KINDS)})
    print(len(tensors) // 4, "cases")


if __name__ == "__main__":
    main()
