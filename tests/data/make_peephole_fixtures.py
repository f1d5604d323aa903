#!/usr/bin/env python3
"""Writes peephole_lstm.safetensors: what ONNX Runtime's LSTM with peepholes (P) gives, and the gradients that PyTorch's
autograd gives for the same equations, which this script holds to ONNX Runtime's outputs.

    python3 -m pip install -r tests/data/requirements.txt onnx==1.23.2 onnxruntime==1.31.1
    python3 tests/data/make_peephole_fixtures.py [FOLDER]

Case NAME holds x [B, T, D], the parameters under the names of nn::PeepholeLstm (gates i, f, g, o; matrices as in files,
[4H, D]), y, h, c, the cotangent dy of y, and the gradient of each input under g/<input>.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from safetensors.torch import save_file

torch.manual_seed(23)


def by_torch(x, w):
    """One direction in f64: outputs [B, T, H], last h and c."""
    H = w["weight_hh"].shape[1]
    h = c = torch.zeros(x.shape[0], H, dtype=x.dtype)
    p_i, p_f, p_o = w["weight_ch"].split(H)
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = (x[:, t] @ w["weight_ih"].T + w["bias_ih"] + h @ w["weight_hh"].T + w["bias_hh"]).split(H, 1)
        i, f = torch.sigmoid(i + p_i * c), torch.sigmoid(f + p_f * c)
        c = f * c + i * torch.tanh(g)
        o = torch.sigmoid(o + p_o * c)
        h = o * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs, 1), h, c


def by_onnx(x, w):
    """The same by ONNX Runtime in f32, whose gates stand as i, o, f, c and peepholes as i, o, f."""
    H = w["weight_hh"].shape[1]

    def iofc(m):
        i, f, g, o = np.split(m, 4)
        return np.concatenate([i, o, f, g])[None]

    n = {k: v.detach().numpy().astype(np.float32) for k, v in w.items()}
    p_i, p_f, p_o = np.split(n["weight_ch"], 3)
    feed = {"X": x.detach().numpy().astype(np.float32).transpose(1, 0, 2), "W": iofc(n["weight_ih"]), "R": iofc(n["weight_hh"]),
            "B": np.concatenate([iofc(n["bias_ih"]), iofc(n["bias_hh"])], 1), "P": np.concatenate([p_i, p_o, p_f])[None]}
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "", "", "", "P"], ["Y", "Yh", "Yc"], hidden_size=H)
    graph = helper.make_graph([node], "peephole", [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in feed.items()],
                              [helper.make_tensor_value_info(k, TensorProto.FLOAT, None) for k in ("Y", "Yh", "Yc")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    y, h, c = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    return torch.tensor(y[:, 0].transpose(1, 0, 2)), torch.tensor(h[0]), torch.tensor(c[0])


def case(B, T, D, H):
    shapes = {"weight_ih": (4 * H, D), "weight_hh": (4 * H, H), "bias_ih": (4 * H,), "bias_hh": (4 * H,), "weight_ch": (3 * H,)}
    w = {k: (torch.rand(s, dtype=torch.float64) - 0.5).requires_grad_() for k, s in shapes.items()}
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    y, h, c = by_torch(x, w)
    for ours, theirs in zip((y, h, c), by_onnx(x, w)):
        assert (ours.detach() - theirs).abs().max() < 2e-6, "not ONNX Runtime's"
    dy = torch.randn_like(y)
    (y * dy).sum().backward()
    inputs = {"x": x, **{f"{k}_l0": v for k, v in w.items()}}
    return {**inputs, "y": y, "h": h, "c": c, "dy": dy, **{f"g/{k}": v.grad for k, v in inputs.items()}}


CASES = {"small": (2, 5, 3, 4), "one": (1, 1, 1, 1), "odd": (3, 7, 2, 9)}
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
tensors = {f"{name}/{k}": v.detach().contiguous() for name, sizes in CASES.items() for k, v in case(*sizes).items()}
save_file(tensors, folder / "peephole_lstm.safetensors",
          metadata={"torch": torch.__version__, "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__})
