#!/usr/bin/env python3
"""Builds the library with all mutants of mutants.txt in it and says which test notices each. Started by scripts/mutants.

    scripts/mutants [NAME ...] [--check] [--jobs 2] [--document]

The patched copy stands in build/mutants/tree; the environment variable FERRITE_MUTANT chooses one mutant by its number,
none if it is unset. Each mutant meets the test programs named in its entry first, then all others, until a test fails,
the program crashes, or it takes ten times as long as without the mutant: then it is dead. Results are kept in
build/mutants/results.json as long as the sources stay what they are, so that an interrupted run goes on. Exit status: 0
all mutants died but those proved equivalent; 1 one survived, or an entry's text is not found exactly once; 2 the tests
fail without any mutant.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "mutants"
TREE = FOLDER / "tree"
BUILD = TREE / "build" / "release"
RESULTS = FOLDER / "results.json"
PAGE = ROOT / "docs" / "mutants.md"
LIST = pathlib.Path(__file__).resolve().parent / "mutants.txt"
# In the order in which they are asked; house reads sources, samples needs data of others.
PROGRAMS = ["tensor", "autograd", "nn", "dsl", "scan", "compile", "train", "conformance", "golden", "io", "exchange", "onnx", "threads", "alloc", "random", "png", "distributed", "ranges"]
SKIPPED = {"io": ["--run_test=!torch_written"], "exchange": ["--run_test=!interpreters"],
           "onnx": ["--run_test=!published,runtimes,torch_nets"]}
SWITCH = """// Which mutant is awake: set by the environment, read once, before anything else runs.
#include <cstdlib>

extern int ferrite_mutant;
int ferrite_mutant = 0;

namespace {
[[gnu::constructor(101)]] void choose() {
  if (const char* const number = std::getenv("FERRITE_MUTANT")) ferrite_mutant = std::atoi(number);
}
}  // namespace
"""


class Mutant:
    def __init__(self, name, file, tests):
        self.name, self.file, self.tests = name, file, tests
        self.text, self.new, self.proof = [], [], []

    def describe(self):
        return json.dumps([self.name, self.file, self.text, self.new])


def read_mutants():
    mutants = []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        head = re.fullmatch(r"\[([a-z0-9-]+)\] (\S+) : (.+)", line)
        if head:
            mutants.append(Mutant(head[1], head[2], head[3].split()))
        elif line[:2] in ("- ", "+ ", "= ") or line == "+":
            {"-": mutants[-1].text, "+": mutants[-1].new, "=": mutants[-1].proof}[line[0]].append(line[2:])
        else:
            raise SystemExit(f"{LIST}:{number}: no line of an entry: {line}")
    names = [m.name for m in mutants]
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"two mutants are called {name}")
    return mutants


def pattern(text):
    """Blanks between words may be any; the marked part is a group."""
    before, marked, after = re.fullmatch(r"(.*)⟦(.*)⟧(.*)", text, re.S).groups()

    def words(part):
        return r"\s+".join(map(re.escape, part.split()))

    def border(left, right):
        return r"\s*" if left and right else ""

    return re.compile(words(before) + border(before.strip(), marked) + "(" + words(marked) + ")"
                      + border(marked, after.strip()) + words(after), re.S)


def is_list(text):
    """Whether it is several expressions, which parentheses would make one: the last."""
    depth = 0
    for c in re.sub(r"<[^<>()]*>", "", text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            return True
    return False


def spans(mutants):
    """By file: [(begin, end, number, mutant)]; and what is wrong with entries."""
    found, problems = {}, []
    for number, mutant in enumerate(mutants, 1):
        path = ROOT / mutant.file
        source = path.read_text() if path.exists() else ""
        text = "\n".join(mutant.text)
        if text.count("⟦") != 1 or text.count("⟧") != 1:
            problems.append(f"{mutant.name}: its text has no part between ⟦ and ⟧")
            continue
        hits = list(pattern(text).finditer(source))
        if len(hits) != 1:
            problems.append(f"{mutant.name}: its text stands {len(hits)} times in {mutant.file}")
            continue
        if not hits[0][1].endswith(";") and (is_list(hits[0][1]) or is_list("\n".join(mutant.new))):
            problems.append(f"{mutant.name}: a list is no expression")
            continue
        if re.fullmatch(r"[!%&*+/<=>^|~-]+", hits[0][1]):
            problems.append(f"{mutant.name}: an operator is no expression")
            continue
        if re.match(r"(static )?constexpr [^(\[{]*⟦|constinit ", text):
            problems.append(f"{mutant.name}: a constant cannot ask which mutant is awake")
            continue
        if not hits[0][1].endswith(";") and not "".join(mutant.new).strip():
            problems.append(f"{mutant.name}: an expression cannot be replaced by nothing")
            continue
        if re.match(r"(const|auto)\b.*;$", hits[0][1], re.S):
            problems.append(f"{mutant.name}: what it takes away declares a name")
            continue
        found.setdefault(mutant.file, []).append((hits[0].start(1), hits[0].end(1), number, mutant))
    for file, list_ in found.items():
        list_.sort(key=lambda s: s[:3])
        for a, b in zip(list_, list_[1:]):
            if b[0] < a[1] and b[:2] != a[:2]:
                problems.append(f"{a[3].name} and {b[3].name} overlap")
    return found, problems


def patched(source, of_file):
    """The source with a switch at each marked place. Mutants of one place become a chain."""
    out, at = "", 0
    places = {}
    for begin, end, number, mutant in of_file:
        places.setdefault((begin, end), []).append((number, "\n".join(mutant.new)))
    for (begin, end), choices in sorted(places.items()):
        original = source[begin:end]
        if original.endswith(";"):
            code = "{ " + "".join(f"if (::ferrite_mutant == {n}) {{ {new} }} else " for n, new in choices)
            code += "{ " + original + " } }"
        else:
            code = "(" + "".join(f"::ferrite_mutant == {n} ? ({new}) : " for n, new in choices) + "(" + original + "))"
        out += source[at:begin] + code
        at = end
    return "extern int ferrite_mutant;\n" + out + source[at:]


def target(program):
    """What has no library is compiled for one instruction set."""
    return "test_ranges_native" if program == "ranges" else f"test_{program}"


def sources():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    return sorted(f for f in set(listed) if f and (ROOT / f).is_file())


def write_tree(mutants):
    """Writes what has changed; the state of all sources as one number."""
    found, problems = spans(mutants)
    if problems:
        raise SystemExit("\n".join(problems))
    state = hashlib.sha256()
    wanted = set()
    for file in sources():
        data = (ROOT / file).read_bytes()
        if file in found:
            data = patched(data.decode(), found[file]).encode()
        if file == "tests/CMakeLists.txt":  # of the programs that have no library
            data = data.replace(b"ranges/bits_test.cpp main.cpp", b'ranges/bits_test.cpp main.cpp "${PROJECT_SOURCE_DIR}/tensor/mutant.cpp"')
        if pathlib.Path(file).parts[0] not in ("docs", "bench", "examples", "tools", "scripts"):
            state.update(file.encode() + b"\0" + hashlib.sha256(data).digest())
        wanted.add(file)
        to = TREE / file
        if to.exists() and to.read_bytes() == data:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data)
        if os.access(ROOT / file, os.X_OK):
            to.chmod(0o755)
    switch = TREE / "tensor" / "mutant.cpp"
    if not switch.exists() or switch.read_text() != SWITCH:
        switch.write_text(SWITCH)
    for path in TREE.rglob("*"):
        name = path.relative_to(TREE).as_posix()
        if path.is_file() and not name.startswith("build/") and name not in wanted and path != switch:
            path.unlink()
    return state.hexdigest()


def build(options):
    cmake = "/usr/bin/cmake" if os.access("/usr/bin/cmake", os.X_OK) else "cmake"
    subprocess.run([cmake, "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFERRITE_WERROR=OFF",
                    "-DFERRITE_BUILD_TESTS=ON", "-DFERRITE_BUILD_EXAMPLES=OFF", "-DFERRITE_BUILD_TOOLS=OFF",
                    "-DFERRITE_ISA_LEVELS=native"],
                   check=True, stdout=subprocess.DEVNULL)
    targets = [target(p) for p in PROGRAMS]
    subprocess.run([cmake, "--build", BUILD, "--parallel", str(options.jobs), "--target", *targets, "--", "-k", "0"], check=True)


def run_program(program, suite, number, limit):
    """(what was noticed or None, seconds). The program ends at its first error."""
    arguments = [str(BUILD / "tests" / target(program)), "--color_output=no", "--catch_system_errors=no",
                 "--log_level=test_suite", "--report_level=no"]
    arguments += [f"--run_test={suite}"] if suite else SKIPPED.get(program, [])
    environment = os.environ | {"FERRITE_DATA": str(TREE / "data"), "FERRITE_FIXTURES": str(TREE / "tests" / "data")}
    environment.pop("FERRITE_MUTANT", None)
    if number:
        environment["FERRITE_MUTANT"] = str(number)
    begun = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env=environment, cwd=BUILD / "tests", start_new_session=True)
    timed_out = threading.Event()

    def end():
        timed_out.set()
        kill(process)

    timer = threading.Timer(limit, end)
    timer.start()
    inside, noticed, last = "", None, ""
    for line in process.stdout:
        last = line.strip() or last
        entering = re.search(r'Entering test (case|suite) "([^"]+)"', line)
        if entering:
            inside = entering[2]
        error = re.search(r': (?:fatal )?error: in "([^"]+)"', line)
        if error:
            noticed = f"{program}: {error[1]}"
            kill(process)
            break
    process.stdout.close()
    status = process.wait()
    timer.cancel()
    if noticed is None and timed_out.is_set():
        noticed = f"{program}: {inside} (does not end)"
    elif noticed is None and status != 0:
        noticed = f"{program}: {inside} ({'signal ' + str(-status) if status < 0 else last[:80]})"
    return noticed, time.monotonic() - begun


def kill(process):
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass


def order(mutant):
    """Programs, or suites of them, in the order in which a mutant meets them."""
    first = [tuple(t.split("/", 1)) if "/" in t else (t, "") for t in mutant.tests]
    whole = [p for p, suite in first if not suite]
    return first + [(p, "") for p in PROGRAMS if p not in whole]


def judge(mutant, number, seconds):
    for program, suite in order(mutant):
        noticed, _ = run_program(program, suite, number, 20 + 10 * seconds[program])
        if noticed:
            return noticed
    return None


def measure(mutants):
    """Seconds of every program without a mutant; all have to pass, and the suites that entries name have to exist."""
    seconds = {}
    suites = sorted({test for m in mutants for test in order(m) if test[1]})
    for program, suite in [(p, "") for p in PROGRAMS] + suites:
        noticed, took = run_program(program, suite, 0, 1800)
        if noticed:
            print(f"without any mutant this fails: {noticed}")
            raise SystemExit(2)
        if not suite:
            seconds[program] = took
    return seconds


def table(mutants, results):
    width = max(len(m.name) for m in mutants)
    lines = []
    for m in mutants:
        if m.name not in results:
            continue
        noticed = results[m.name]
        verdict = noticed or ("equivalent: " + " ".join(m.proof) if m.proof else "SURVIVED")
        lines.append(f"{m.name:{width}}  {verdict}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--check", action="store_true", help="only whether every text is found exactly once")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--document", action="store_true", help="write the table into docs/mutants.md")
    options = parser.parse_args()
    mutants = read_mutants()
    unknown = set(options.names) - {m.name for m in mutants}
    if unknown:
        raise SystemExit(f"no such mutant: {', '.join(sorted(unknown))}")
    if options.check:
        _, problems = spans(mutants)
        print("\n".join(problems) or f"{len(mutants)} mutants, every text found once")
        return 1 if problems else 0
    TREE.mkdir(parents=True, exist_ok=True)
    state = write_tree(mutants)
    print(f"== building {len(mutants)} mutants", flush=True)
    build(options)

    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if kept.get("state") != state:
        kept = {"state": state, "results": {}}
    if "seconds" not in kept:
        print("== the tests without a mutant", flush=True)
        kept["seconds"] = measure(mutants)
    chosen = [(n, m) for n, m in enumerate(mutants, 1) if not options.names or m.name in options.names]
    left = [(n, m) for n, m in chosen if options.names or m.name not in kept["results"]]
    print(f"== {len(left)} mutants to try, {len(chosen) - len(left)} known", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {pool.submit(judge, m, n, kept["seconds"]): m for n, m in left}
        for done in concurrent.futures.as_completed(runs):
            mutant = runs[done]
            kept["results"][mutant.name] = done.result()
            RESULTS.write_text(json.dumps(kept, indent=1))
            print(*table([mutant], kept["results"]), flush=True)
    lines = table([m for _, m in chosen], kept["results"])
    print("\n== all\n" + "\n".join(lines))
    survived = [m.name for _, m in chosen if kept["results"][m.name] is None and not m.proof]
    refuted = [m.name for _, m in chosen if kept["results"][m.name] and m.proof]
    equal = sum(1 for _, m in chosen if kept["results"][m.name] is None and m.proof)
    total = (f"{len(chosen)} mutants: {len(chosen) - len(survived) - equal} died, {equal} are equivalent, "
             f"{len(survived)} survived" + (": " + ", ".join(survived) if survived else ""))
    print("\n" + total)
    if options.document and not options.names:
        page = PAGE.read_text()
        begin, end = (page.index(f"<!-- {word} mutants -->") for word in ("begin", "end"))
        PAGE.write_text(page[:begin] + "<!-- begin mutants -->\n" + total + ".\n\n```text\n" + "\n".join(lines) + "\n```\n"
                        + page[end:])
    if refuted:
        print("said to be equivalent, and noticed all the same: " + ", ".join(refuted))
    return 1 if survived or refuted else 0


if __name__ == "__main__":
    sys.exit(main())
