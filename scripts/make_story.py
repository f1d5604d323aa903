#!/usr/bin/env python3
"""Writes data/story.gguf: a transformer of words that tells small stories, quantised to blocks of 8 bits. It learns
stories that this script makes up from its own grammar, so nothing in it has another author.

    python3 scripts/make_story.py [--out data/story.gguf]

Needs torch and gguf. Takes two minutes on one core.
"""
import argparse
import pathlib
import random

import gguf
import numpy as np
import torch
from torch import nn

ANIMALS = "cat dog fox hen pig owl frog mouse".split()
COLOURS = "red blue green small old brave".split()
PLACES = ("the river", "the hill", "the forest", "the barn", "the garden")
THINGS = "ball hat apple bell lantern".split()
FEELINGS = {"found": "happy", "lost": "sad", "saw": "curious"}
CONTEXT, WIDTH, HEADS, LAYERS, HIDDEN = 64, 64, 4, 2, 128


def story(r):
    """Returns a story as words. The animals and things named first come back later, which the net has to learn."""
    who, other = r.sample(ANIMALS, 2)
    colour, thing, place, verb = r.choice(COLOURS), r.choice(THINGS), r.choice(PLACES), r.choice(list(FEELINGS))
    lines = [f"once there was a {colour} {who} .", f"one day the {who} went to {place} .",
             f"at {place} the {who} {verb} a {thing} .", f"the {who} was {FEELINGS[verb]} ."]
    if verb == "lost":
        lines += [f"then a {other} came and found the {thing} .", f"the {other} gave the {thing} to the {who} ."]
    elif verb == "found":
        lines += [f"then a {other} came and said : this is my {thing} .", f"the {who} gave the {thing} to the {other} ."]
    else:
        lines += [f"then a {other} came and said : what is this ?", f"it is a {thing} , said the {who} ."]
    lines.append(f"and the {colour} {who} and the {other} were friends .")
    return " ".join(lines).split()


class Net(nn.Sequential):
    """dsl::tokens(V).embedding(64).positions(64).repeat(2, transformer).layer_norm().linear(V), with the same names."""

    def __init__(self, words):
        layers = [nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0, activation="gelu", batch_first=True,
                                             norm_first=True) for _ in range(LAYERS)]
        super().__init__(nn.Embedding(words, WIDTH), nn.Embedding(CONTEXT, WIDTH), *layers, nn.LayerNorm(WIDTH),
                         nn.Linear(WIDTH, words))

    def forward(self, x):
        steps = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(steps)
        y = self[0](x) + self[1](torch.arange(steps))
        for layer in list(self)[2:2 + LAYERS]:
            y = layer(y, src_mask=mask, is_causal=True)
        return self[-1](self[-2](y))


def trained(words, rows):
    """Returns a net trained on `rows` of words. `words` are the tokens; token 0 comes before and after a story."""
    numbers = {w: i for i, w in enumerate(words)}
    data = torch.zeros(len(rows), CONTEXT, dtype=torch.long)
    for i, row in enumerate(rows):
        data[i, 1:1 + len(row)] = torch.tensor([numbers[w] for w in row])
    net = Net(len(words))
    steps = 1500
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        x = data[torch.randint(len(data), (32,))]
        loss = nn.functional.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 300 == 299:
            print(f"step {step + 1}: {loss.item():.3f} nats a word")
    return net


def write(path, net, words):
    writer = gguf.GGUFWriter(path, "story")
    writer.add_name("small stories")
    writer.add_license("MIT")
    writer.add_uint32("story.context_length", CONTEXT)
    writer.add_uint32("story.embedding_length", WIDTH)
    writer.add_uint32("story.block_count", LAYERS)
    writer.add_uint32("story.attention.head_count", HEADS)
    writer.add_uint32("story.feed_forward_length", HIDDEN)
    writer.add_token_list(words)
    for name, value in net.state_dict().items():
        x = value.numpy().astype(np.float32)
        if x.ndim == 2:
            blocks = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "data" / "story.gguf")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    r = random.Random(0)
    rows = [story(r) for _ in range(4000)]
    assert max(map(len, rows)) < CONTEXT - 1
    words = ["\n", *sorted({w for row in rows for w in row})]
    write(options.out, trained(words, rows), words)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {len(words)} words")


if __name__ == "__main__":
    main()
