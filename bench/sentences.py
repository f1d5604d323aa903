"""What the tables of docs/benchmarks.md say, in words: every figure of the page's text comes from here, so that none
outlives the run it was read from.
"""
import json
import pathlib
import re
import statistics

RESULTS = pathlib.Path(__file__).resolve().parent / "results"


def cells_of(name):
    return json.loads((RESULTS / f"{name}.json").read_text())["cells"]


def by_cell(name):
    return {(row["job"], row["kind"], row["H"], row["T"], row["B"]): row for row in cells_of(name)}


def spread(values, digits=2):
    values = list(values)
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def numbers(text, begins):
    """Returns the rows of a program's output that begin with a pattern: the match, and the numbers that follow it."""
    rows = []
    for line in text.splitlines():
        found = re.match(begins, line)
        if found:
            rows.append((found, [float(word.rstrip("%")) for word in line[found.end():].split() if word != "-"]))
    return rows


def section(page, name):
    """Returns the text between the marks of a section."""
    return re.search(rf"<!-- begin {name} -->\n(.*?)<!-- end {name} -->", page, re.S)[1]


def findings():
    """Compares a small and a large network with other programs."""
    rows, onednn = by_cell("compare"), by_cell("onednn")

    def sentence(cell, names):
        row = rows[cell]
        ratios = row["ratios"] | {k: v for k, v in onednn.get(cell, {"ratios": {}})["ratios"].items() if k == "oneDNN"}
        times = ", ".join(f"{name} {ratios[name]:.3g} times" for name in names if name in ratios)
        return row["ours_us"], times

    small, small_ratios = sentence(("forward", "gru", 16, 100, 1), ["torch", "jax.jit", "ONNX Runtime", "oneDNN"])
    large, large_ratios = sentence(("forward", "gru", 256, 100, 32), ["torch", "jax.jit", "ONNX Runtime", "oneDNN"])
    return (f"* **Small networks gain most.** A GRU with 16 units over 100 steps of one sequence takes {small:.1f} us; others "
            f"take longer: {small_ratios}. The reason is overhead per operation, not arithmetic.\n"
            f"* **Large networks gain little.** With 256 units, 100 steps and a batch of 32 the matrix products dominate, and "
            f"others take little longer: {large_ratios}.")


def own_cells():
    """Compares users' cells with the built-in layers and with other programs."""
    cells = [c for c in cells_of("cells") if c.get("confirmed", True) and c.get("limit")]
    ratio = lambda c: c["ours"] / c["limit"]

    def of(kind, fits):
        return spread(ratio(c) for c in cells if c["kind"] == kind and fits(c["H"]))

    others = [(r, name) for row in cells_of("cells-compare") for name, r in row["ratios"].items() if name != "limit"]
    least, name = min(others)
    return (f"A GRU written as one step takes {of('plain_gru', lambda H: H >= 64)} times as long as the built-in layer from "
            f"64 units on, a peephole LSTM {of('peephole_lstm', lambda H: H >= 64)}; with 16 units it is "
            f"{of('plain_gru', lambda H: H == 16)} and {of('peephole_lstm', lambda H: H == 16)}. The layer-norm GRU takes "
            f"{of('layer_norm_gru', lambda H: True)} times as long as `nn::Gru`, which does not normalise. Beside the same cell "
            f"in torch, torch.compile, TorchScript and `jax.jit`, the closest of {len(others)} comparisons is {name}, which takes "
            f"{least:.2f} of our time.")


def training_steps(page):
    """Compares compiled steps with eager ones and the limit, and says what the parts of a small one take."""
    page = section(page, "steps")
    rows = numbers(page, r"(MLP 784-128-10|the demo's GRU 64, T = 16) +\d+ ")
    ratios = [row[2] for _, row in rows]
    over = [row[4] for _, row in rows]
    unrolled = [1 / row[2] for found, row in numbers(page, r"GRU \d+, T = 50 +\d+ ")]
    parts = {(int(found[1]), int(found[2])): row for found, row in numbers(page, r"GRU (\d+) +T = (\d+) ")}
    small = parts[16, 10]
    return (f"A compiled training step runs {spread(ratios)} times as fast as an eager one and takes {spread(over)} times the "
            f"limit. A GRU written in single operations and unrolled takes {spread(unrolled)} times as long as the layer, "
            f"compiled.\n\nOf {small[5]:.1f} us for a step of a GRU with 16 units over 10 steps, the call takes "
            f"{small[0]:.2f} us, the layer {small[1]:.2f}, head and loss {small[2]:.2f}, all gradients {small[3]:.2f} and Adam "
            f"{small[4]:.2f}. With 16 and 32 units over 10 steps it is {parts[16, 10][6]:.1f} and {parts[32, 10][6]:.1f} times the "
            f"step written by hand, with 128 units {parts[128, 10][6]:.1f} times.")


def products(page):
    """Compares products with the best other program: weights used again, and a transposed operand met once."""
    straight, once, again = [], [], []
    transposed = False
    for line in section(page, "gemm").splitlines():
        transposed |= line.startswith("C [M, 3H] = A [M, H] . B^T")
        if line.startswith("y [3H]"):
            break
        found = re.match(r" +(\d+) +(\d+) .*?([\d.]+)%? +([\d.]+|-)(?: +([\d.]+|-) +([\d.]+|-))?$", line)
        if not found or found[4] == "-":
            continue
        size = int(found[1]), int(found[2])
        if not transposed:
            straight.append((float(found[4]), size))
        else:
            once.append((float(found[4]), size))
            if found[6] and found[6] != "-":
                again.append((float(found[6]), size))

    def lost(rows, bar):
        names = ", ".join(f"{m} x {h} ({r:.2f})" for r, (m, h) in sorted(rows) if r < bar)
        return names or "none"

    def median(rows):
        return f"{statistics.median(r for r, _ in rows):.2f}"

    return (f"Beside the best other program a product A B has {median(straight)} of its speed in the median of {len(straight)} "
            f"sizes; below 0.95, as rows x H: {lost(straight, 0.95)}. A transposed B that is used again has {median(again)}; below "
            f"0.95: {lost(again, 0.95)}. A transposed B that is met once has {median(once)}; below 0.6: {lost(once, 0.6)}. There one "
            f"chain of sums for each element needs the matrix transposed, where others sum along it.")


def convolutions():
    """Compares convolutions with torch's calls and with oneDNN alone."""
    rows = json.loads((RESULTS / "convolutions.json").read_text())["results"]
    out = []
    for peer, what in (("torch", "torch's calls"), ("oneDNN", "oneDNN with data in its own order"),
                       ("oneDNN, plain", "oneDNN with data as ours are")):
        have = sorted((row[peer], name) for name, row in rows.items() if row.get(peer))
        if have:
            below = [f"{name} ({ratio:.2f})" for ratio, name in have if ratio < 0.9]
            out.append(f"* Beside {what}: median {statistics.median(r for r, _ in have):.2f}, least {have[0][0]:.2f} of {len(have)}; "
                       + (f"below 0.9: {'; '.join(below)}." if below else "none below 0.9."))
    return "\n".join(out)


def threads():
    """Says how much two threads gain, for jobs large enough to be shared."""
    result = json.loads((RESULTS / "threads.json").read_text())
    out = []
    for job, name in (("forward", "Forward"), ("train", "In training")):
        rows = [row for row in result["cells"] if row["cell"][0] == job and row["cell"][2] >= 64]
        times = [row["us"]["one"] / row["us"]["two"] for row in rows]
        share = [(row["us"]["beside"] / 2 / row["us"]["two"], row["cell"]) for row in rows]
        torch = [row["us"]["torch_one"] / row["us"]["torch_two"] for row in rows if "torch_one" in row["us"]]
        below = [f"{c[1]} {c[2]}/{c[3]}/{c[4]} ({s:.2f})" for s, c in sorted(share) if s < 0.9]
        out.append(f"* {name}, two threads are {spread(times)} times as fast as one"
                   + (f" (torch: {spread(torch)})" if torch else "")
                   + f", {spread(s for s, _ in share)} of what two processes do"
                   + (f"; below 0.9: {', '.join(below)}." if below else "."))
    return "\n".join(out)
