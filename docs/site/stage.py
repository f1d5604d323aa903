#!/usr/bin/env python3
"""Copies the pages into a folder that Sphinx can read, with what only the site has: the table of contents, the reference
by header, words under which pages are also found. Started by scripts/docs.

    python3 docs/site/stage.py build/docs
"""
import json
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import reference  # noqa: E402

LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def synonyms():
    """Returns, by page, other phrases for its subject."""
    phrases = {}
    for line in (HERE / "synonyms.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            page, _, rest = line.partition(":")
            phrases[page.strip()] = [phrase.strip() for phrase in rest.split(",")]
    return phrases


def lines_of(program):
    examples = ROOT / "examples"
    for path in (examples / f"{program}.cpp", examples / program / "main.cpp", examples / "python" / f"{program}.cpp"):
        if path.exists():
            return len(path.read_text().splitlines())
    return None


def check_lines(page):
    """Fails if the table of examples gives another length of a program than its file has."""
    for program, lines in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.M):
        if lines_of(program) not in (None, int(lines)):
            raise SystemExit(f"docs/examples.md: {program} has {lines_of(program)} lines, not {lines}")


def main(build):
    source = build / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "data/README.md",
                                      "tests/README.md")] + sorted((ROOT / "docs").glob("*.md"))
    also = synonyms()
    unknown = set(also) - {str(path.relative_to(ROOT)) for path in pages}
    if unknown:
        raise SystemExit(f"docs/site/synonyms.txt names pages that are not there: {', '.join(sorted(unknown))}")
    for path in pages:
        name = path.relative_to(ROOT)
        text = path.read_text()
        if path.name == "examples.md":
            check_lines(text)
        for _, link, _ in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
            file = (path.parent / link).resolve()
            if file.is_file() and file.suffix != ".md" and ROOT in file.parents:
                to = source / file.relative_to(ROOT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)
        if str(name) in also:  # the search knows only pages that have the words
            text += "\n:::{container} also\n" + ", ".join(also[str(name)]) + "\n:::\n"
        to = source / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)
    shutil.copy(HERE / "index.md", source / "index.md")
    shutil.copy(HERE / "conf.py", source / "conf.py")
    shutil.copytree(HERE / "static", source / "_static")
    scorer = source / "_static" / "scorer.js"
    by_page = {page.removesuffix(".md"): phrases for page, phrases in also.items()}
    scorer.write_text(scorer.read_text().replace("ALSO = {}", "ALSO = " + json.dumps(by_page)))
    count = reference.write(ROOT, source / "reference", build / "doxygen")
    print(f"{len(pages)} pages, {count} headers")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
