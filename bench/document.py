#!/usr/bin/env python3
"""Measures and writes the figures of docs/benchmarks.md: the text between <!-- begin NAME --> and <!-- end NAME --> is
replaced by the present output of that section's program, and so is the short table of README.md. Figures that a second
run does not confirm are not printed (bench/confirm.py). Run by scripts/benchmarks.

    python3 bench/document.py [--build build/release] [--full] [SECTION ...]
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "compare"))
sys.path.insert(0, str(ROOT / "bench"))
import confirm  # noqa: E402
import run as compare  # noqa: E402
import sentences  # noqa: E402
import where  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
RESULTS = ROOT / "bench" / "results"  # measurements, as JSON


def pinned():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run(*command, pin=True, **options):
    print("running", *command, flush=True)
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=True, text=True,
                          preexec_fn=pinned if pin else None, env=os.environ | compare.ONE_THREAD, **options)


def output(*command):
    return run(*command, capture_output=True).stdout


def fenced(*command):
    texts = [output(*command).strip("\n") for _ in range(confirm.RUNS)]
    return "```text\n" + confirm.confirmed(texts) + "\n```"


def program(options, name):
    return options.build / "bench" / name


def run_peers(path, options, *arguments):
    run(sys.executable, ROOT / "bench" / "compare" / "run.py", "--build", options.build, "--out", path, *arguments)
    return json.loads(path.read_text())


def left_out(result):
    for name, reasons in result["left_out"].items():
        for reason, cells in reasons.items():
            yield f"{name} without {', '.join(cells) if len(cells) < 4 else f'{len(cells)} cells'}: {reason}."


def peers(options, own=False):
    path = RESULTS / ("cells-compare.json" if own else "compare.json")
    result = run_peers(path, options, *(["--own"] if own else []),
                       *(["--cells", *options.cells] if options.cells else []))
    names = list(result["versions"])
    lines = [", ".join(dict.fromkeys(result["versions"].values())) + ".", "",
             compare.header(names, "fused" if own else "limit"),
             *(compare.show(row, names) for row in result["cells"]), ""]
    lines.append("Lost: " + ("; ".join(result["lost"]) if result["lost"] else "none") + ".")
    return "\n".join([*lines, *left_out(result)])


SHOWN = [("forward", "gru", 16, 100, 1), ("forward", "gru", 64, 100, 1), ("forward", "gru", 256, 100, 1),
         ("forward", "lstm", 256, 100, 1), ("forward", "gru", 64, 100, 32), ("forward", "gru", 512, 10, 128),
         ("train", "gru", 32, 10, 1), ("train", "gru", 128, 10, 1), ("train", "gru", 128, 50, 32),
         ("train", "gru", 256, 50, 128)]


def readme(options):
    """Returns some cells of the last comparison with the peers, including those that are lost."""
    names = ["torch", "jax.jit", "ONNX Runtime", "oneDNN"]
    rows = sentences.by_cell("compare")
    for cell, row in sentences.by_cell("onednn").items():
        rows.get(cell, row)["ratios"] |= row["ratios"]
    lines = ["| job | layer | H | T | B | Ferrite, us | " + " | ".join(names) + " |", "|---" * (6 + len(names)) + "|"]
    for cell in SHOWN:
        row = rows[cell]
        ratios = [compare.ratio(row, name) for name in names]
        lines.append("| " + " | ".join([*map(str, cell), f"{row['ours_us']:.1f}", *ratios]) + " |")
    return "\n".join(lines)


def machine(options):
    """Returns the origin of the figures: the processor as bench_gru found it, and the present system and compiler."""
    head = json.loads((RESULTS / "limit.json").read_text())
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return (f"{where.machine()}, peak {head['peak_gflops']:.0f} GFLOP/s a core in f32 with packets of "
            f"{head['floats_in_a_packet']} floats; {release.get('PRETTY_NAME', 'an unknown system')}, g++ {compiler}.")


def summary(options):
    """Returns the last comparison over the whole grid in one table: medians, least ratios, numbers of lost cells."""
    cells = json.loads((RESULTS / "compare-full.json").read_text())["cells"]
    cells += json.loads((RESULTS / "onednn.json").read_text())["cells"]
    names = [name for name in compare.PEERS if any(name in row["ratios"] for row in cells)]
    lines = ["| beside | forward: median, least | training step: median, least | cells in which it wins |", "|---|---|---|---|"]
    for name in names:
        columns = []
        for job in ("forward", "train"):
            ratios = [row["ratios"][name] for row in cells if row["job"] == job and name in row["ratios"]]
            columns.append(f"{statistics.median(ratios):.2f}, {min(ratios):.2f}" if ratios else "-")
        ratios = [row["ratios"][name] for row in cells if name in row["ratios"]]
        columns.append(f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}")
        lines.append(f"| {name} | " + " | ".join(columns) + " |")
    return "\n".join(lines)


def peer_grid(options):
    """Returns the whole grid in short: median and least ratio by job, layer, batch and peer, and all lost cells."""
    names = [name for name in compare.PEERS if name != "torch.compile"]  # compiling every cell would take hours
    result = run_peers(RESULTS / "compare-full.json", options, "--full", "--rounds", "3", "--seconds", "0.03",
                       "--peers", *names)
    lines = [", ".join(dict.fromkeys(result["versions"].values())) + ".", "",
             "|  | layer | B | cells | " + " | ".join(names) + " |", "|---" * (4 + len(names)) + "|"]
    groups = {}
    for row in result["cells"]:
        groups.setdefault((row["job"], row["kind"], row["B"]), []).append(row)
    for (job, kind, B), rows in groups.items():
        columns = []
        for name in names:
            ratios = [row["ratios"][name] for row in rows if name in row["ratios"]]
            columns.append(f"{statistics.median(ratios):.2f}, {min(ratios):.2f}" if ratios else "-")
        lines.append(f"| {job} | {kind} | {B} | {len(rows)} | " + " | ".join(columns) + " |")
    lines.append("")
    for name in names:
        lost = [f"{compare.title(row)} ({row['ratios'][name]:.2f})" for row in result["cells"]
                if row["ratios"].get(name, 1) < 1]
        if lost:
            lines.append(f"Lost to {name}, {len(lost)} cells: {'; '.join(lost)}.")
    return "\n".join([*lines, *left_out(result)])


def over_limit(cell):
    return cell["ours"] / (cell["limit"] or cell["bound"])


def middle_of(runs):
    """Returns the run of a cell with the median ratio, and whether another run confirms it."""
    ordered = sorted(runs, key=over_limit)
    middle = ordered.pop(len(ordered) // 2)
    return middle | {"confirmed": any(confirm.agree(over_limit(middle), over_limit(other)) for other in ordered)}


def grid_table(cells, job, kind):
    """Returns a table with one row for each H and B and one column for each T: ours over the yardstick (for a user's
    cell, over the fused layer), or over the bound where there is none."""
    chosen = [c for c in cells if c["job"] == job and c["kind"] == kind]
    lengths = sorted({c["T"] for c in chosen})
    over = {(c["H"], c["B"], c["T"]): f"{over_limit(c):.2f}" if c.get("confirmed", True) else "-" for c in chosen}
    against = "fused" if kind in compare.OWN else "limit" if chosen[0]["limit"] else "bound"
    title = "a step" if job == "stream" else ""
    lines = [f"| {job}, {kind}: ours / {against} | " + " | ".join(title or f"T = {T}" for T in lengths) + " |",
             "|---" * (len(lengths) + 1) + "|"]
    for H, B in sorted({(c["H"], c["B"]) for c in chosen}, key=lambda size: (size[1], size[0])):
        lines.append(f"| H = {H}, B = {B} | " + " | ".join(over[H, B, T] for T in lengths) + " |")
    return "\n".join(lines)


def measured_cells(options, names, out, runs, *arguments):
    """Returns the head of the programs' output and the middle one of every cell's runs; writes both to `out`."""
    cells, head = [], {}
    for name in names:
        path = options.build / f"{name}.json"
        every = []
        for _ in range(runs):
            output(program(options, name), "--json", path, *arguments)
            head = json.loads(path.read_text())
            every.append(head.pop("cells"))
        cells += [middle_of(cell) for cell in zip(*every, strict=True)]
    (RESULTS / out).write_text(json.dumps(head | {"cells": cells}, indent=1) + "\n")
    return head, cells


def limit_grid(options):
    """Says in one sentence how many cells of the whole grid come close to a GRU written by hand."""
    _, cells = measured_cells(options, ("bench_gru", "bench_train"), "full.json", 2, "--full", "--kinds", "gru")

    def close(job, most, chosen=lambda cell: True):
        ratios = [over_limit(cell) for cell in cells if cell["job"] == job and chosen(cell)]
        return f"{sum(ratio <= most for ratio in ratios)} of {len(ratios)}"

    def long(cell):
        return cell["T"] >= 50

    return (f"Beside a GRU written by hand for this processor the forward pass takes at most 1.25 times as long in "
            f"{close('forward', 1.25)} cells\n({close('forward', 1.25, long)} from T = 50), a training step at most "
            f"1.35 times as long in {close('train', 1.35)} ({close('train', 1.35, long)} from T = 50,\n"
            f"{close('train', 1.35, lambda cell: cell['T'] == 1)} at T = 1), and a stream at most 1.25 times as long in "
            f"{close('stream', 1.25)}.")


def limit(options, names=("bench_gru", "bench_train"), out="limit.json"):
    head, cells = measured_cells(options, names, out, confirm.RUNS)
    jobs = dict.fromkeys((c["job"], c["kind"]) for c in cells)
    intro = f"Peak {head['peak_gflops']:.0f} GFLOP/s."
    return "\n\n".join([intro, *(grid_table(cells, job, kind) for job, kind in jobs)])


def strengths(options):
    result = RESULTS / "strengths.json"
    return output(sys.executable, ROOT / "bench" / "compare" / "strengths.py", "--build", options.build,
                  "--out", result).strip("\n")


def onednn(options):
    """Returns the comparison of the whole grid with oneDNN: median, least ratio, lost cells of every job and layer."""
    result = run_peers(RESULTS / "onednn.json", options, "--full", "--rounds", "3", "--seconds", "0.02", "--peers",
                       "oneDNN")
    return onednn_text(result)


def onednn_text(result):
    groups = {}
    for row in result["cells"]:
        if "oneDNN" in row["ratios"]:
            groups.setdefault((row["job"], row["kind"], row["B"]), []).append(row)
    lines = [f"{result['versions']['oneDNN']}, one thread.", "",
             "|  | layer | B | cells | median | least | lost |", "|---|---|---|---|---|---|---|"]
    lost = []
    for (job, kind, B), rows in groups.items():
        ratios = [row["ratios"]["oneDNN"] for row in rows]
        behind = [row for row in rows if row["ratios"]["oneDNN"] < 1]
        lines.append(f"| {job} | {kind} | {B} | {len(rows)} | {statistics.median(ratios):.2f} | {min(ratios):.2f} | "
                     f"{len(behind)} |")
        lost += behind
    lost.sort(key=lambda row: row["ratios"]["oneDNN"])
    cells = "; ".join(f"{compare.title(row)} ({row['ratios']['oneDNN']:.2f})" for row in lost)
    return "\n".join([*lines, "", f"Lost, the worst first: {cells or 'none'}."])


def samples(name, checkouts):
    """Returns a table of streams sample by sample; measures it if the environment names the peers' checkouts."""
    def section(options):
        path = RESULTS / f"{name}.json"
        given = [(option, os.environ.get(variable)) for option, variable in checkouts.items()]
        if all(folder for _, folder in given):
            run(sys.executable, ROOT / "bench" / "compare" / f"{name}.py", "--build", options.build, "--out", path,
                *(part for pair in given for part in pair), pin=False)
        import streams
        return streams.tables(json.loads(path.read_text()))
    return section


def lost(options):
    """Says in words where others are faster by the page's tables."""
    import streams
    lines = []
    cells = [row for row in json.loads((RESULTS / "onednn.json").read_text())["cells"] if "oneDNN" in row["ratios"]]
    for job, what in (("train", "a training step with the same loss and Adam"), ("forward", "forward")):
        chosen = [row for row in cells if row["job"] == job]
        behind = [row for row in chosen if row["ratios"]["oneDNN"] < 1]
        by_steps = {T: sum(row["T"] == T for row in behind) for T in sorted({row["T"] for row in chosen})}
        counts = ", ".join(f"{n} at T = {T}" for T, n in by_steps.items() if n)
        worst = min(chosen, key=lambda row: row["ratios"]["oneDNN"])
        lines.append(f"* **oneDNN, {what}**: it wins {len(behind)} of {len(chosen)} cells"
                     + (f" ({counts}), {compare.title(worst)} most, at {worst['ratios']['oneDNN']:.2f}." if behind else "."))
    full = json.loads((RESULTS / "compare-full.json").read_text())["cells"]
    for name in compare.PEERS:
        behind = [row for row in full if row["ratios"].get(name, 1) < 1]
        if name != "oneDNN" and behind:
            lines.append(f"* **{name}**: " + ", ".join(f"{compare.title(row)} ({row['ratios'][name]:.2f})" for row in behind)
                         + ".")
    for file, name in (("rtneural", "RTNeural's compile-time models, the better back end"),
                       ("nam", "NAM Core and NeuralAudio")):
        result = json.loads((RESULTS / f"{file}.json").read_text())["cells"]
        lines.append(f"* **{name}**: " + " ".join(
            streams.sentences(result, [p for p in result[0]["nanoseconds"] if p != "Ferrite"])))
    return "\n".join(lines)


def chains(options):
    """Returns the tables of fused chains, and their result compared with a loop by hand."""
    first = fenced(program(options, "bench_fusion"), "chains")
    found = [line.split() for line in first.splitlines()]
    ratios = [(int(words[1]), float(words[3])) for words in found if len(words) > 4 and words[1].isdigit() and words[3] != "-"]
    groups = [("In the caches, from 10,000 to 100,000 elements,", lambda n: 10**4 <= n <= 10**5),
              ("With a million to ten million", lambda n: n >= 10**6), ("With 1000 and fewer", lambda n: n <= 1000)]
    words = [f"{text} a fused chain runs at {sentences.spread(chosen)} of the speed of one loop by hand."
             for text, fits in groups if (chosen := [ratio for n, ratio in ratios if fits(n)])]
    return "\n\n".join([first, fenced(program(options, "bench_fusion"), "rotary"), " ".join(words)])


def rows(options):
    return output(sys.executable, ROOT / "bench" / "compare" / "rows.py", "--build", options.build,
                  "--out", RESULTS / "rows.json").strip("\n")


def catalogue(options):
    return output(sys.executable, ROOT / "bench" / "compare" / "catalogue.py", "--build", options.build,
                  "--out", RESULTS / "catalogue.json").strip("\n")


def convolutions(options):
    return output(sys.executable, ROOT / "bench" / "compare" / "convolutions.py", "--build", options.build,
                  "--out", RESULTS / "convolutions.json").strip("\n")


def threads(options):
    return run(sys.executable, ROOT / "bench" / "compare" / "threads.py", "--build", options.build, "--out",
               RESULTS / "threads.json", pin=False, capture_output=True).stdout.strip("\n")


def onnx(options):
    """ONNX nets beside other runtimes: the files are those that onnx_models.py wrote into FERRITE_ONNX_MODELS."""
    return output(sys.executable, ROOT / "bench" / "compare" / "onnx_nets.py", os.environ["FERRITE_ONNX_MODELS"], "--build",
                  options.build, "--out", RESULTS / "onnx.json").strip("\n")


def attention(options):
    return output(sys.executable, ROOT / "bench" / "compare" / "attention.py", "--build", options.build,
                  "--out", RESULTS / "attention.json").strip("\n")


def linear(options):
    return output(sys.executable, ROOT / "bench" / "compare" / "linear.py", "--build", options.build,
                  "--out", RESULTS / "linear.json").strip("\n")


def epochs(options):
    return run(sys.executable, ROOT / "bench" / "compare" / "epochs.py", "--build", options.build, "--out",
               RESULTS / "epochs.json", pin=False, capture_output=True).stdout.strip("\n")


def pointwise(options):
    """Returns the elementwise functions compared with PyTorch, measured now by the Python that has it."""
    path, program_of = RESULTS / "pointwise.json", ROOT / "bench" / "compare" / "torch_pointwise.py"
    path.unlink(missing_ok=True)
    run(sys.executable, program_of, "--build", options.build, "--out", path)
    import torch_pointwise
    return torch_pointwise.table(json.loads(path.read_text()))


SECTIONS = {
    "peers": peers,
    "readme": readme,
    "strengths": strengths,
    "epochs": epochs,
    "rows": rows,
    "onednn": onednn,
    "nam": samples("nam", {"--nam-core": "FERRITE_NAM_CORE", "--neural-audio": "FERRITE_NEURAL_AUDIO"}),
    "rtneural": samples("rtneural", {"--rtneural": "FERRITE_RTNEURAL"}),
    "frozen": samples("frozen", {"--nam-core": "FERRITE_NAM_CORE", "--rtneural": "FERRITE_RTNEURAL"}),
    "lost": lost,
    "peer-grid": peer_grid,
    "summary": summary,
    "limit-grid": limit_grid,
    "limit": limit,
    "cells": lambda o: limit(o, ("bench_cells",), "cells.json"),
    "cell-peers": lambda o: peers(o, own=True),
    "steps": lambda o: fenced(program(o, "bench_compile")),
    "streams": lambda o: fenced(program(o, "bench_streams")),
    "chains": chains,
    "threads": threads,
    "adam": lambda o: fenced(program(o, "bench_adam")),
    "catalogue": catalogue,
    "convolutions": convolutions,
    "linear": linear,
    "attention": attention,
    "onnx": onnx,
    "pointwise": pointwise,
    "ops": lambda o: fenced(program(o, "bench_ops")),
    "machine": machine,
    "gemm": lambda o: fenced(program(o, "bench_gemm")),
    "demo": lambda o: fenced(program(o, "bench_vowels"), "data/japanese_vowels.safetensors"),
    "files": lambda o: fenced(program(o, "bench_files")),
    "compile": lambda o: fenced("scripts/compile-cost"),
}

def told(words):
    """A section in words, of what other sections say."""
    return lambda options: words(PAGE.read_text()) if words.__code__.co_argcount else words()


SECTIONS |= {f"{name}-words": told(words) for name, words in (
    ("findings", sentences.findings), ("cells", sentences.own_cells), ("steps", sentences.training_steps),
    ("gemm", sentences.products), ("convolutions", sentences.convolutions), ("threads", sentences.threads))}
# Sections of results that carry their own dates.
FROM_OTHERS = ("readme", "lost", "summary", "machine", "nam", "rtneural", "frozen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--full", action="store_true", help="the whole grids of recurrent layers, too: an hour")
    parser.add_argument("--cells", nargs="*", help="of peers: measure only these, as job/kind/H/T/B")
    options = parser.parse_args()
    options.build = options.build.resolve()
    every = [name for name in SECTIONS if options.full or name not in ("peer-grid", "limit-grid")]
    if "FERRITE_ONNX_MODELS" not in os.environ:
        every.remove("onnx")
    for name in options.sections or (["peers"] if options.cells else every):
        if name not in SECTIONS:
            parser.error(f"no such section: {name}")
        text = SECTIONS[name](options)
        if name not in FROM_OTHERS and not name.endswith("-words"):
            text = f"{where.machine()}, {where.today()}.\n\n{text}"
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
        path = README if name == "readme" else PAGE
        page, count = pattern.subn(lambda m: m[1] + text + "\n" + m[2], path.read_text())
        if count != 1:
            raise SystemExit(f"{path.name} has {count} places for {name}")
        path.write_text(page)


if __name__ == "__main__":
    main()
