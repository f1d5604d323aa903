"""The reference writer's file with its metadata in the order given.

The reference keeps metadata in a hash map: with two keys or more, equal content gives different bytes from run to run.
"""
import json
import pathlib

from safetensors.torch import save


def save_file(tensors, path, metadata):
    """Writes tensors as safetensors.torch.save_file does; equal content gives equal bytes."""
    if not metadata:
        pathlib.Path(path).write_bytes(save(tensors))
        return
    data = save(tensors, metadata)
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header = {"__metadata__": dict(metadata)} | {name: entry for name, entry in header.items() if name != "__metadata__"}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
