#!/usr/bin/env python3
"""Writes png/*.png, one for every form that PNG has, and png/expected.npz, what they hold as f32 [C, H, W] in 0..1.

    python3 -m pip install numpy && python3 tests/data/make_png_fixtures.py [FOLDER]

Files are put together by the specification (w3.org/TR/png-3), interlaced ones pass by pass.
"""
import pathlib
import struct
import sys
import zlib

import numpy as np

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def rows(samples, bits):
    """[H, W, C] as lines of filter 0."""
    out = b""
    for line in samples.reshape(len(samples), -1):
        if bits == 16:
            packed = line.astype(">u2").tobytes()
        else:
            digits = "".join(format(v, f"0{bits}b") for v in line)
            digits += "0" * (-len(digits) % 8)
            packed = int(digits, 2).to_bytes(len(digits) // 8, "big")
        out += b"\0" + packed
    return out


def png(samples, bits, kind, interlaced=False, extra=b""):
    height, width, _ = samples.shape
    parts = [samples]
    if interlaced:
        parts = [samples[y::dy, x::dx] for y, x, dy, dx in PASSES]
    data = b"".join(rows(p, bits) for p in parts if p.size)
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"gAMA", struct.pack(">I", 100000)) + extra
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"tEXt", b"Title\0none") + chunk(b"IEND", b""))


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "png"
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(5)
    expected = {}

    def add(name, bits, kind, interlaced=False, extra=b"", as_values=None):
        samples = random.integers(0, 2**bits, (5, 7, SAMPLES[kind]))
        (folder / f"{name}.png").write_bytes(png(samples, bits, kind, interlaced, extra))
        values = (samples / (2**bits - 1)) if as_values is None else as_values(samples)
        expected[name] = np.ascontiguousarray(values.astype("f4").transpose(2, 0, 1))

    for bits in (1, 2, 4, 8, 16):
        add(f"grey{bits}", bits, GREY)
    for bits in (8, 16):
        add(f"grey_alpha{bits}", bits, GREY_ALPHA)
        add(f"rgb{bits}", bits, RGB)
        add(f"rgba{bits}", bits, RGBA)
    colours = random.integers(0, 256, (256, 3))
    for bits in (1, 2, 4, 8):
        palette = chunk(b"PLTE", colours[:2**bits].astype("u1").tobytes())
        add(f"palette{bits}", bits, PALETTE, extra=palette, as_values=lambda s: colours[s[..., 0]] / 255)
    opacities = np.full(256, 255)
    opacities[:3] = 0, 100, 200
    add("palette_alpha", 4, PALETTE, extra=chunk(b"PLTE", colours[:16].astype("u1").tobytes()) + chunk(b"tRNS", bytes([0, 100, 200])),
        as_values=lambda s: np.concatenate([colours[s[..., 0]], opacities[s]], -1) / 255)
    add("grey_transparent", 2, GREY, extra=chunk(b"tRNS", struct.pack(">H", 1)),
        as_values=lambda s: np.concatenate([s / 3, s != 1], -1))
    add("rgb_transparent", 8, RGB, extra=chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3)),
        as_values=lambda s: np.concatenate([s / 255, np.ones_like(s[..., :1])], -1))
    add("interlaced_rgb", 8, RGB, interlaced=True)
    add("interlaced_grey1", 1, GREY, interlaced=True)
    add("interlaced_rgba16", 16, RGBA, interlaced=True)
    np.savez_compressed(folder / "expected.npz", **expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
