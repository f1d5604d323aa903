"""Reads the library's public headers: functions, structs of options and enumerations with their comments. It knows the
way in which these headers are written and formatted, not C++."""

import dataclasses
import functools
import pathlib
import re


@dataclasses.dataclass
class Parameter:
    type: str
    name: str
    default: str | None = None
    comment: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Declared:
    """What a header declares: a function, a struct or an enumeration."""

    header: str
    space: str
    name: str
    comment: list
    returns: str = ""
    parameters: list = dataclasses.field(default_factory=list)
    values: list = dataclasses.field(default_factory=list)
    base: str = ""
    body: str = ""
    fallback: list = dataclasses.field(
        default_factory=list
    )  # the comment of the declarations before it in its paragraph

    @property
    def full(self):
        return f"{self.space}::{self.name}"


def closing(text, begin):
    """Returns the index of the bracket that closes the one at `begin`."""
    depth, quote = 0, ""
    for i, c in enumerate(text[begin:], begin):
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "({[") - (c in ")}]")
            if depth == 0:
                return i
    return len(text)


def split(text, separator=","):
    """Splits at separators outside brackets and texts."""
    parts, depth, now, quote = [], 0, "", ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "({[<") - (c in ")}]") - (c == ">" and text[i - 1] != "-")
        if c == separator and depth == 0 and not quote:
            parts.append(now.strip())
            now = ""
        else:
            now += c
    return [p for p in [*parts, now.strip()] if p]


def parameter(text):
    text = re.sub(r"\s+", " ", text).strip()
    default = None
    m = re.search(r"\s=\s", text)
    if m:
        text, default = text[: m.start()], text[m.end() :].strip()
    m = re.match(r"(.*[\s&*>])(\w+)(\{.*\})?$", text)
    if not m or m[1].strip() in ("const", "unsigned"):
        return Parameter(text, "", default)
    return Parameter(m[1].strip(), m[2], m[3] if default is None and m[3] else default)


def unnested(lines):
    """Returns the lines with what lies in `namespace detail` blanked."""
    out, inside = [], False
    for line in lines:
        if re.match(r"namespace (ferrite::)?([\w:]*::)?detail \{", line):
            inside = True
        out.append("" if inside else line)
        if re.match(r"\}  // namespace .*detail|\}$", line):
            inside = False
    return out


class Headers:
    # Classes that hold a number and convert to it.
    wrapped = {"ResetAfter": "bool", "Zoneout": "double"}

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.enums, self.structs, self.classes = {}, {}, {}
        self._functions = {}
        paths = [
            p
            for folder in ("tensor", "autograd", "nn", "dsl", "train", "io", "compile", "exchange")
            for p in sorted((self.root / folder).rglob("*.h"))
            if not {"detail", "kernel"} & set(p.relative_to(self.root).parts)
        ]
        for path in paths:
            self._read(path)

    def _read(self, path):
        header = str(path.relative_to(self.root))
        lines = unnested(path.read_text().splitlines())
        space, comment, last, found = "ferrite", [], [], []
        k = 0
        while k < len(lines):
            line = lines[k]
            m = re.match(r"namespace (ferrite[\w:]*) \{", line)
            if m:
                space = m[1]
            if line.startswith("///"):
                comment.append(re.sub(r"^/// ?", "", line))
                k += 1
                continue
            if not line.strip():
                comment, last = [], []
                k += 1
                continue
            m = re.match(r"enum class (\w+)[^{]*\{", line)
            if m and not line.startswith("template"):
                body, k = self._until(lines, k, "}")
                inner = re.sub(r"//.*", "", body[body.index("{") + 1 : body.rindex("}")])
                values = [re.match(r"\w+", v)[0] for v in split(inner)]
                self.enums[f"{space}::{m[1]}"] = Declared(header, space, m[1], comment, values=values)
                comment = []
                continue
            m = re.match(r"(struct|class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : ([^{]*))?\s*\{", line)
            if m:
                end = k
                if "}" not in line:
                    while not lines[end].startswith("};"):
                        end += 1
                body = "\n".join(lines[k : end + 1])
                base = re.sub(r"\b(public|private) ", "", m[3] or "").strip()
                made = Declared(header, space, m[2], comment, base=base, body=body)
                (self.structs if m[1] == "struct" else self.classes)[made.full] = made
                comment, k = [], end + 1
                continue
            m = re.match(r"(?:inline |constexpr |\[\[nodiscard\]\] )*([\w:<>]+(?:<[^()]*>)?) (\w+)\(", line)
            if m and m[1] not in ("return", "using", "template", "requires", "else", "explicit"):
                text, k = self._until(lines, k, ")")
                begin = text.index("(", text.index(m[2]))
                inside = re.sub(r"//.*", "", text[begin + 1 : closing(text, begin)])
                own = comment or [line for line in last if f"`{m[2]}`" in " ".join(last)]
                found.append(
                    Declared(
                        header,
                        space,
                        m[2],
                        own,
                        returns=m[1],
                        parameters=[parameter(p) for p in split(inside)],
                        fallback=last,
                    )
                )
                last, comment = comment or last, []
                # a body on the lines that follow
                rest = text[closing(text, begin) + 1 :]
                if rest.strip().startswith("{") and "}" not in rest:
                    while not lines[k - 1].startswith("}"):
                        k += 1
                continue
            if line.startswith("template"):
                k += 1
                if k < len(lines) and re.match(r"(struct|class) \w+[^;]*\{", lines[k]):
                    continue  # read as the class that it is a template of
                comment = []
                if k < len(lines) and not re.match(r"(struct|class)", lines[k]):  # a function
                    while k < len(lines) and not re.search(r"[;}]\s*$", lines[k]):
                        k += 1
                    k += 1
                elif k < len(lines):
                    while not lines[k].rstrip().endswith(("};", ";")):
                        k += 1
                    k += 1
                continue
            comment = []
            k += 1
        self._functions[header] = found

    @staticmethod
    def _until(lines, k, bracket):
        """Returns the text from line k to the end of the declaration, and the line after it."""
        text, opening = lines[k].partition("//")[0], {"}": "{", ")": "("}[bracket]
        begin = text.index(opening)
        while closing(text, begin) >= len(text):
            k += 1
            text += "\n" + lines[k].partition("//")[0]
        return text, k + 1

    def functions(self, header):
        return self._functions[header]

    def enum_name(self, name, where):
        """Returns the full name of an enumeration that `where` refers to by this name, else None."""
        for space in (where.space, "ferrite", "ferrite::nn", "ferrite::train"):
            if f"{space}::{name}" in self.enums and name != "Dtype":
                return f"{space}::{name}"
        return None

    # Structs that are templates, under the name of the template.
    templates = {"BatchNormOptions": "ChannelNormOptions", "InstanceNormOptions": "ChannelNormOptions"}

    def struct_named(self, name, where):
        if name in self.templates:
            found = self.struct_named(self.templates[name], where)
            return found and dataclasses.replace(found, name=name, body=found.body)
        for space in (where.space, "ferrite", "ferrite::nn", "ferrite::train", "ferrite::io"):
            if f"{space}::{name}" in self.structs:
                return self.structs[f"{space}::{name}"]
        return None

    @functools.cache
    def _members(self, full):
        space, _, name = full.rpartition("::")
        struct = self.structs[f"{space}::{self.templates.get(name, name)}"]
        members = []
        if struct.base:
            base = self.struct_named(struct.base, struct)
            members += self._members(base.full) if base else []
        comment = []
        text = struct.body[struct.body.index("{") + 1 :]
        lines = text.splitlines()
        k = 0
        while k < len(lines):
            line = lines[k].strip()
            k += 1
            if line.startswith("///") and not line.startswith("///<"):
                comment.append(re.sub(r"^/// ?", "", line))
                continue
            code, _, after = line.partition("///<")
            code = re.sub(r"//.*", "", code).strip()
            if not code or code.startswith(
                ("static ", "using ", "friend ", "template", "explicit", "bool operator", "~")
            ):
                while code.startswith(("static ", "template")) and not code.endswith((";", "}")) and k < len(lines):
                    code = lines[k].strip()
                    k += 1
                comment = []
                continue
            if re.match(r"[\w:<>, &*]+\(", code) and "std::function" not in code:  # a function or a constructor
                depth = code.count("{") - code.count("}")
                while (depth > 0 or not code.endswith((";", "}"))) and k < len(lines):
                    code = lines[k].strip()
                    depth += code.count("{") - code.count("}")
                    k += 1
                comment = []
                continue
            if not code.endswith(";"):
                comment = []
                continue
            first, *more = split(code[:-1])
            made = parameter(first)
            if made.name:
                made.comment = comment or ([after.strip()] if after.strip() else [])
                members.append(made)
                for each in more:
                    also = parameter(f"{made.type} {each}")
                    also.comment = made.comment
                    members.append(also)
            comment = []
        return members

    def members(self, struct):
        return self._members(struct.full)

    def class_named(self, name):
        return self.classes[f"ferrite::nn::{name}"]

    def methods(self, full):
        """Returns the public functions of a class, in order."""
        body = self.classes[full].body
        body = body[body.index("public:") + len("public:") :]
        body = body[: body.index(" private:")] if " private:" in body else body
        lines, found, comment, k = [line[2:] for line in body.splitlines()], [], [], 0
        last = []
        while k < len(lines):
            line = lines[k]
            if line.startswith("///"):
                comment.append(re.sub(r"^/// ?", "", line))
                k += 1
                continue
            m = re.match(r"(?:virtual |static )?([\w:<>]+&?) (\w+)\(", line)
            if m and m[1] not in ("return", "explicit") and not lines[k - 1].startswith("template"):
                text, k = self._until(lines, k, ")")
                begin = text.index("(", text.index(m[2]))
                inside = text[begin + 1 : closing(text, begin)]
                last = comment or last
                if "= delete" not in lines[k - 1]:
                    found.append(
                        Declared("", full, m[2], last, returns=m[1], parameters=[parameter(p) for p in split(inside)])
                    )
                while "{" in text and lines[k - 1].count("}") < 1:
                    k += 1
                comment = []
                continue
            comment = []
            k += 1
        return found
