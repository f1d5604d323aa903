"""Writes the reference: a page for each public header, with every declaration as in the source and its comment as
Markdown. Doxygen says what is declared and where; it loses requires-clauses, so signatures are read from the source.
"""
import collections
import pathlib
import re
import subprocess
import xml.etree.ElementTree as xml

FOLDERS = {
    "tensor": "Tensors and operations", "autograd": "Gradients", "nn": "Layers, losses, optimisers",
    "dsl": "The builder", "compile": "Compiled functions and scans", "train": "Training", "io": "Files",
    "exchange": "Exchange with other formats", "distributed": "Several ranks",
}
SETTINGS = """
INPUT = {input}
FILE_PATTERNS = *.h
RECURSIVE = YES
EXCLUDE_PATTERNS = */detail/* */kernel/*
EXCLUDE_SYMBOLS = *::detail ferrite::detail::*
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
OUTPUT_DIRECTORY = {output}
STRIP_FROM_PATH = {root}
EXTRACT_ALL = YES
MARKDOWN_SUPPORT = NO
HAVE_DOT = NO
QUIET = YES
WARNINGS = NO
"""

Entry = collections.namedtuple("Entry", "line kind name owner")


def declared(root, output):
    """Returns the declarations that Doxygen finds, by header, in the order of their lines."""
    output.mkdir(parents=True, exist_ok=True)
    settings = output / "Doxyfile"
    settings.write_text(SETTINGS.format(input=" ".join(str(root / folder) for folder in FOLDERS), output=output, root=root))
    subprocess.run(["doxygen", settings], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = collections.defaultdict(set)
    for path in sorted((output / "xml").glob("*.xml")):
        if path.name in ("index.xml", "Doxyfile.xml"):
            continue
        for compound in xml.parse(path).getroot().findall("compounddef"):
            kind, full = compound.get("kind"), compound.find("compoundname").text
            if "detail" in full.split("::") or "@" in full or kind not in ("class", "struct", "namespace"):
                continue
            owner = "" if kind == "namespace" else full.removeprefix("ferrite::")
            place = compound.find("location")
            if owner and place is not None and compound.get("prot") == "public":
                outer, _, name = owner.rpartition("::")
                found[place.get("file")].add(Entry(int(place.get("line")), kind, name, outer))
            for member in compound.iter("memberdef"):
                place = member.find("location")
                if member.get("prot") != "public" or member.get("kind") in ("friend", "define") or place is None:
                    continue
                name = member.find("name").text
                if name and not name.startswith(("~", "@")):
                    where = place.get("declfile") or place.get("file"), place.get("declline") or place.get("line")
                    found[where[0]].add(Entry(int(where[1]), member.get("kind"), name, owner))
    return {file: sorted(entries) for file, entries in found.items()}


def comment_before(lines, at):
    """Returns the comment lines that end just above line `at` (from 0), and the line on which the declaration begins: that
    of its template head or requires-clause if it has one."""
    k = at - 1
    while k >= 0 and re.match(r"\s*(template\s*<|requires\b|\[\[)", lines[k]):
        k -= 1
    head = k + 1
    while k >= 0 and re.match(r"\s*///(?!<)", lines[k]):
        k -= 1
    return [re.sub(r"^\s*/// ?", "", line) for line in lines[k + 1:head]], head


def signature(lines, first, at, kind=""):
    """Returns the declaration that begins on line `first`, without its body, and the comment after it on its line."""
    text, depth = [], 0
    for line in lines[first:first + 60]:
        code, _, after = line.partition("///<")
        code = re.sub(r"(?<!:)//.*", "", code)
        stop = None
        for i, c in enumerate(code):
            depth += (c in "(<[") - (c in ")>]") if not code[max(0, i - 1):i + 1] == "->" else 0
            body = kind not in ("variable", "enum") and c == "{" and depth <= 0
            if c == ";" or (body and re.search(r"[)\w>&]\s*$|^\s*$", code[:i]) and not re.search(r"=\s*$", code[:i])):
                stop = i
                break
        text.append(code[:stop] if stop is not None else code)
        if stop is not None:
            return "\n".join(text), after.strip()
    return lines[at], ""


def tidy(text):
    """Returns a declaration without the initialisers of a constructor, on one line if it fits."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\) : \w+.*$", ")", text)
    text = re.sub(r"\(\s+", "(", text)
    head, rest = template_head(text)
    if "requires" in head:
        head = head.replace(" requires", "\nrequires")
    begin = rest.find("(", rest.find("operator()") + len("operator()") if "operator()" in rest else 0)
    if len(rest) > 100 and begin >= 0:
        end = closing(rest, begin)
        rest = rest[:begin + 1] + "\n    " + ",\n    ".join(parameters(rest[begin + 1:end])) + rest[end:]
    return head + rest.replace(" requires", "\nrequires")


def closing(text, begin):
    """Returns the index of the bracket that closes the one at `begin`."""
    depth, quote = 0, ""
    for i, c in enumerate(text[begin:], begin):
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "({[<") - (c in ")}]" or (c == ">" and text[i - 1] != "-"))
            if depth == 0:
                return i
    return len(text)


def parameters(text):
    parts, now, i = [], "", 0
    while i < len(text):
        c = text[i]
        if c in "({[<":
            end = closing(text, i)
            now += text[i:end + 1]
            i = end
        elif c in "\"'":
            end = text.find(c, i + 1)
            now += text[i:end + 1]
            i = end
        elif c == ",":
            parts.append(now.strip())
            now = ""
        else:
            now += c
        i += 1
    return [*parts, now.strip()]


def template_head(text):
    """Splits a declaration into its template head, with the requires-clause, and the rest."""
    if not text.startswith("template <"):
        return "", text
    end = closing(text, len("template "))
    head, rest = text[:end + 1] + "\n", text[end + 1:].strip()
    if rest.startswith("requires"):
        begin = rest.find("(")
        if 0 <= begin <= len("requires ("):
            end = closing(rest, begin)
            return head + rest[:end + 1] + "\n", rest[end + 1:].strip()
    return head, rest


def plain(text):
    """Escapes text so that shapes in brackets and angle brackets are not taken for markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]<>*_|$])", r"\\\1", part) for part in parts)


def escaped(comment):
    """Converts a comment to Markdown; indented lines become a block of preformatted text."""
    out, formula = [], []
    for line in [*comment, ""]:
        if line.startswith("  ") or (formula and not line.strip() and line != comment[-1:]):
            formula.append(line)
            continue
        if formula:
            out += ["", "```text", *[each[2:] for each in formula if each.strip()], "```", ""]
            formula = []
        out.append(line)
    text = "\n".join(out).rstrip()
    return "".join(part if part.startswith("```") else plain(part) for part in re.split(r"(```.*?```)", text, flags=re.S))


def intro(lines):
    for k, line in enumerate(lines):
        if line.startswith("///"):
            end = k
            while end < len(lines) and lines[end].startswith("///"):
                end += 1
            return [re.sub(r"^/// ?", "", each) for each in lines[k:end]]
        if line.startswith(("namespace", "class")):
            break
    return []


def page(root, header, entries):
    lines = (root / header).read_text().splitlines()
    space = next((m[1] for line in lines if (m := re.match(r"namespace ([\w:]+) \{", line)) and "detail" not in m[1]), "ferrite")
    out = [f"# `{header}`", "", escaped(intro(lines)), "", "```cpp",
           f"#include <ferrite/{header}>  // namespace {space}", "```", ""]
    last, rows, seen = None, [], set()

    def end_table():
        if rows:
            out.extend(["| member | what it is |", "|---|---|", *rows, ""])
            rows.clear()

    for e in entries:
        at = e.line - 1
        if at in seen or at >= len(lines) or "constexpr auto fields" in lines[at]:
            continue
        seen.add(at)
        comment, first = comment_before(lines, at)
        text, after = signature(lines, first, at, e.kind)
        if after:
            comment = [*comment, after]
        if e.kind == "variable" and e.owner:
            words = " ".join(line.strip() for line in comment)
            rows.append(f"| `{tidy(text).replace('|', chr(92) + '|')}` | {plain(words)} |")
            last = None
            continue
        end_table()
        title = (f"{e.owner}::{e.name}" if e.owner else e.name).removeprefix("nn::")
        if e.kind in ("class", "struct"):
            out += ["", f"## {plain(title)}", ""]
            last = None
        elif (e.owner, e.name) != last:
            out += ["", f"{'###' if e.owner else '##'} {plain(e.name)}", ""]
            last = (e.owner, e.name)
        out += ["```cpp", tidy(text), "```", ""]
        if comment:
            out += [escaped(comment), ""]
    end_table()
    return "\n".join(out) + "\n"


def write(root, to, work):
    """Writes all pages below `to` with their tables of contents, and returns the number of headers."""
    found = declared(root, work)
    out = ["# Reference by header", "", "Every public declaration with its comment. `#include <ferrite/ferrite.h>` gives all of",
           "them but the optional components.", ""]
    pages = 0
    for folder, title in FOLDERS.items():
        headers = sorted(header for header in found if header.startswith(folder + "/"))
        headers = [h for h in headers if "/detail/" not in h and "/kernel/" not in h]
        rows, names = [], []
        for header in headers:
            target = to / (header.removesuffix(".h") + ".md")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page(root, header, found[header]))
            first = " ".join(intro((root / header).read_text().splitlines())).split(". ")[0]
            rows.append(f"| [`{header}`]({header.removesuffix('.h')}.md) | {plain(first)} |")
            names.append(header.removesuffix(".h"))
            pages += 1
        (to / f"{folder}.md").write_text("\n".join([f"# {title}", "", "| header | declares |", "|---|---|", *rows, "",
                                                    "```{toctree}", ":hidden:", "", *names, "```", ""]))
        out.append(f"* [{title}]({folder}.md): {len(headers)} headers")
    out += ["", "```{toctree}", ":hidden:", "", *FOLDERS, "```", ""]
    (to / "index.md").write_text("\n".join(out))
    return pages
