"""The main loop of the peers: a program that prints its version, then answers lines "job kind H T B seconds" with
microseconds, or with "none" and a reason. Jobs: forward, x [B, T, D] (or [T, B, D], as the peer prefers) -> all
outputs; train, the net -> mean cross-entropy, gradients, Adam; compiled, the same in the forms that each peer has.
Nets: layer -> last step -> linear(10), where the layer is a gru, lstm or rnn of D = H features or vowels, a GRU of 12
features; mlp, linear(H) -> relu -> linear(10) on 784 features; cnn and transformer, as in bench/whole_nets.h. Layers
of users' cells (examples/custom_cell/cells.h and nn::LayerNormGruCell) are timed without a net around them, D = H:
train is the mean square of all outputs, gradients, Adam. Before any other question, "check_forward" is answered with
the outputs of the last step, "check_train" with the first three losses.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import time

CLASSES = 10
GATES = {"gru": 3, "vowels": 3, "lstm": 4, "rnn": 1}
FEATURES = {"mlp": 784, "vowels": 12}
WHOLE = ("cnn", "transformer")
OWN = {  # users' cells: their parameters in our order, with columns over H
    "plain_gru": {"w_x": 3, "w_h": 3, "b_x": 3, "b_h": 3},
    "peephole_lstm": {"w_x": 4, "w_h": 4, "b": 4, "p_i": 1, "p_f": 1, "p_o": 1},
    "minimal_gated": {"w_f": 1, "u_f": 1, "b_f": 1, "w_n": 1, "u_n": 1, "b_n": 1},
    "layer_norm_gru": {"weight_ih": 3, "weight_hh": 3, "scale_ih": 3, "shift_ih": 3, "scale_hh": 3, "shift_hh": 3},
}
TOLERANCE = 1e-5  # of what "check_" asks for, beside ours


def features(kind, H):
    return FEATURES.get(kind, H)


class Absent(Exception):
    """Raised when a peer does not have what is asked for, or takes too long to prepare it."""


def undisturbed(times):
    """Returns the samples that took at most 1.15 times the least; other programs disturbed the others."""
    return [t for t in times if t <= 1.15 * min(times)]


def undisturbed_median(times):
    return statistics.median(undisturbed(times))


def microseconds(call, seconds):
    """Returns the median of three to nine samples after two calls, in about `seconds` seconds."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    calls = max(1, int(seconds / 9 / max(once, 1e-7)))
    samples = max(3, min(9, int(seconds / max(once * calls, 1e-7))))
    times = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return 1e6 * undisturbed_median(times)


def onednn_program(to, source):
    """Returns a program of bench/compare, compiled with oneDNN 3.x in the folder FERRITE_ONEDNN; None without one."""
    folder = os.environ.get("FERRITE_ONEDNN")
    library = folder and next(iter(sorted(pathlib.Path(folder).resolve().rglob("libdnnl.so"))), None)
    if not library:
        return None
    here = pathlib.Path(__file__).resolve().parent
    if not to.exists() or to.stat().st_mtime < (here / source).stat().st_mtime:
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O3", "-march=native", f"-I{pathlib.Path(folder) / 'include'}",
                        f"-I{here.parent}", "-o", to, here / source, library, f"-Wl,-rpath,{library.parent}"], check=True)
    return to


def serve(version, make, last_step=None):
    """Answers questions. make(job, kind, H, T, B) returns a function that computes outputs or the loss, to be timed;
    last_step(outputs) returns [B, H]."""
    print(version, flush=True)
    last, call = None, None
    for line in sys.stdin:
        job, kind, *rest = line.removeprefix("check_").split()
        H, T, B = (int(n) for n in rest[:3])
        key = (job, kind, H, T, B)
        try:
            if key != last:
                call, last = None, key
                call = make(job, kind, H, T, B)
            if call is None:
                raise Absent("not ready")
            if not line.startswith("check_"):
                print(microseconds(call, float(rest[3])), flush=True)
            elif job == "train":
                print(*(call().item() for _ in range(3)), flush=True)
            else:
                print(*last_step(call()).flatten().tolist(), flush=True)
        except Absent as reason:
            print("none", reason, flush=True)
