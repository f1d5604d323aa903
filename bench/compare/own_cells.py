"""Numbers for the parameters of users' cells and for their data that are the same in all programs
(bench/own_cells.cpp)."""
import numpy as np

from peer import OWN

DATA = 1000  # the number of x


def numbers(tensor, shape):
    """Returns numbers in [-1, 1) that depend only on the tensor's number and the element's."""
    z = np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761) + np.uint32((tensor * 0x9E3779B9 + 1) % 2**32)
    z = (z ^ (z >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    z = (z ^ (z >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    z ^= z >> np.uint32(16)
    return ((z >> np.uint32(8)).astype(np.float32) / np.float32(8388608) - np.float32(1)).reshape(shape)


def parameters(kind, H):
    spread = np.float32(1) / np.sqrt(np.float32(H))
    made = {}
    for k, (name, columns) in enumerate(OWN[kind].items()):
        shape = (H, columns * H) if name[0] in "wu" else (columns * H,)
        made[name] = np.float32("scale" in name) + spread * numbers(k, shape)
    return made


def data(H, T, B):
    """Returns x [B, T, D]."""
    return numbers(DATA, (B, T, H))
