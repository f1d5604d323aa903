"""Users' cells in torch: one step, applied in a loop over the steps, after the products with x of all steps."""
from typing import Tuple

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

import own_cells


class Layer(torch.nn.Module):
    """A layer of a user's cell, x [B, T, D] -> [B, T, H]; time comes first in memory, which suits the loop."""

    def __init__(self, kind, H):
        super().__init__()
        self.H = H
        for name, values in own_cells.parameters(kind, H).items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(values)))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], self.H)
        state = (h, h)
        outputs = []
        for i in self.of_x(x.transpose(0, 1)).unbind(0):
            state = self.step(i, state)
            outputs.append(state[0])
        return torch.stack(outputs).transpose(0, 1)


class PlainGru(Layer):
    def of_x(self, x: Tensor) -> Tensor:
        return x @ self.w_x + self.b_x

    def step(self, i: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h = state[0]
        i_r, i_z, i_n = i.split(self.H, 1)
        g_r, g_z, g_n = torch.addmm(self.b_h, h, self.w_h).split(self.H, 1)
        r = torch.sigmoid(i_r + g_r)
        z = torch.sigmoid(i_z + g_z)
        n = torch.tanh(i_n + r * g_n)
        return n + z * (h - n), h


class PeepholeLstm(Layer):
    def of_x(self, x: Tensor) -> Tensor:
        return x @ self.w_x + self.b

    def step(self, i: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h, c = state
        a, f, g, o = torch.addmm(i, h, self.w_h).split(self.H, 1)
        c = torch.sigmoid(f + self.p_f * c) * c + torch.sigmoid(a + self.p_i * c) * torch.tanh(g)
        return torch.sigmoid(o + self.p_o * c) * torch.tanh(c), c


class MinimalGated(Layer):
    def of_x(self, x: Tensor) -> Tensor:
        return torch.cat((x @ self.w_f + self.b_f, x @ self.w_n + self.b_n), 2)

    def step(self, i: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h = state[0]
        i_f, i_n = i.split(self.H, 1)
        f = torch.sigmoid(torch.addmm(i_f, h, self.u_f))
        n = torch.tanh(torch.addmm(i_n, f * h, self.u_n))
        return h + f * (n - h), h


class LayerNormGru(Layer):
    def of_x(self, x: Tensor) -> Tensor:
        sums = (x @ self.weight_ih).view(x.shape[0], x.shape[1], 3, self.H)
        return layer_norm(sums, (self.H,)).flatten(2) * self.scale_ih + self.shift_ih

    def step(self, i: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h = state[0]
        sums = (h @ self.weight_hh).view(-1, 3, self.H)
        g = layer_norm(sums, (self.H,)).flatten(1) * self.scale_hh + self.shift_hh
        i_r, i_z, i_n = i.split(self.H, 1)
        g_r, g_z, g_n = g.split(self.H, 1)
        r = torch.sigmoid(i_r + g_r)
        z = torch.sigmoid(i_z + g_z)
        n = torch.tanh(i_n + r * g_n)
        return n + z * (h - n), h


LAYERS = {"plain_gru": PlainGru, "peephole_lstm": PeepholeLstm, "minimal_gated": MinimalGated,
          "layer_norm_gru": LayerNormGru}


def layer(kind, H):
    return LAYERS[kind](kind, H)


def data(H, T, B):
    return torch.from_numpy(own_cells.data(H, T, B)).transpose(0, 1).contiguous().transpose(0, 1)
