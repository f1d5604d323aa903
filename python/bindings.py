"""Writes the bindings of functions, losses, layers and optimisers from the library's headers: names, defaults, options
and docstrings are those of C++, so they are written down once.

    python bindings.py ROOT OUTPUT
"""
import dataclasses
import keyword
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from headers import Headers  # noqa: E402

# Functions of these headers become functions of the module.
OPERATIONS = [
    "tensor/activations.h", "tensor/allclose.h", "tensor/attention.h", "tensor/convolution.h", "tensor/cumulative.h",
    "tensor/fft.h", "tensor/linalg.h", "tensor/linear_scan.h", "tensor/math.h", "tensor/mel.h", "tensor/normalization.h",
    "tensor/norms.h", "tensor/ops.h", "tensor/pooling.h", "tensor/random.h", "tensor/sampling.h", "tensor/scatter.h",
    "tensor/selective_scan.h", "tensor/shapes.h", "tensor/signal.h", "tensor/sorting.h", "tensor/windows.h",
    "nn/losses/audio.h", "nn/losses/classification.h", "nn/losses/ranking.h", "nn/losses/reduction.h",
    "nn/losses/regression.h", "nn/losses/sequence.h", "nn/optim/optimizer.h", "nn/recurrent/gru.h", "nn/recurrent/lstm.h",
    "nn/recurrent/rnn.h", "nn/recurrent/min_gru.h", "tensor/threads.h", "tensor/instruction_set.h", "tensor/denormals.h",
]
# Not functions of tensors, or replaced by something that Python has.
LEFT_OUT = {"parallel_for", "philox", "at", "values_of"}
# Functions of a first tensor that are methods too.
METHODS = """abs all amax amin any argmax argmin argsort cast chunk clamp contiguous cos cumprod cumsum detach exp expand
flatten flip gather index_select log logsumexp log_softmax matmul max mean min movedim permute pow prod relu repeat reshape
roll round select sigmoid sign sin slice softmax sort split sqrt square squeeze std sum tanh topk transpose tril triu
unbind unsqueeze var where""".split()
PARTS = 4

PLAIN = {"bool", "int", "double", "float", "std::int64_t", "std::uint64_t", "std::size_t", "std::string", "Scalar", "Dtype",
         "Label", "std::string_view", "const std::string&", "std::optional<double>", "std::optional<std::int64_t>",
         "const Tensors&", "Tensors", "const Shape&", "Shape", "std::vector<double>", "std::vector<std::int64_t>",
         "const std::vector<double>&", "const std::vector<std::int64_t>&", "std::optional<bool>"}
TENSORS = {"const Tensor&", "Tensor"}
CONVERTED = {"const Operand&": ("const OperandArgument&", "{}.operand()"),
             "std::span<const Tensor>": ("const std::vector<Tensor>&", "std::span<const Tensor>({})"),
             "std::span<const std::int64_t>": ("const std::vector<std::int64_t>&", "std::span<const std::int64_t>({})")}
RESULTS = {"void", "Tensor", "Tensors", "std::vector<Tensors>", "bool", "double", "int", "std::int64_t", "Shape",
           "std::string_view", "std::string", "std::size_t"}


@dataclasses.dataclass
class Argument:
    """One argument of a binding: its name, C++ type, default (C++ code or None), and whether None is allowed."""
    name: str
    type: str
    default: str | None = None
    none: bool = False

    def annotation(self):
        text = f'nb::arg("{self.name}")'
        if self.none:
            text += ".none()"
        return text if self.default is None else f"{text} = {self.default}"


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def literal(text):
    """Returns a C++ string literal."""
    return 'R"_(' + text + ')_"'


def docstring(comment):
    """Returns a header's comment as a docstring: as it is, but with the members' and constants' Python spellings."""
    text = "\n".join(comment).strip()
    return text.replace("std::nullopt", "None").replace(" true", " True").replace(" false", " False")


class Writer:
    def __init__(self, headers):
        self.headers = headers
        self.refused = []
        self.tuples = {}  # result structs, by name

    def option(self, struct, member, access):
        """Returns the argument and the assignment for one member of a struct of options; None for one of another type."""
        kind = self.headers.enum_name(member.type, struct)
        default = f"{struct.full}{{}}.{access}" if not kind else f"{struct.full}{{}}.{access}"
        if member.type in ("Tensor",):
            return Argument(python_name(member.name), "Tensor", "nb::none()", True)
        if member.type in PLAIN or kind or member.type in self.headers.wrapped:
            ctype = self.headers.wrapped.get(member.type, kind or member.type)
            if member.type in self.headers.wrapped:
                default = f"static_cast<{ctype}>({default})"
            none = member.type.startswith("std::optional")
            return Argument(python_name(member.name), ctype, default, none)
        return None

    def unfold(self, struct, variable):
        """Returns the arguments and the statements that fill a struct of options."""
        arguments, statements = [], [f"{struct.full} {variable};"]
        for member in self.headers.members(struct):
            argument = self.option(struct, member, member.name)
            if argument is None:
                continue
            arguments.append(argument)
            statements.append(f"{variable}.{member.name} = {argument.name};")
        return arguments, statements

    def parameters(self, function):
        """Returns the positional and the keyword arguments, the statements before the call and what is passed; None for a
        function with a parameter that has no Python form."""
        positional, keywords, before, passed = [], [], [], []
        for k, p in enumerate(function.parameters):
            name = python_name(p.name or f"x{k}")
            kind = self.headers.enum_name(p.type, function)
            bare = re.sub(r"^const |&$", "", p.type)
            struct = self.headers.struct_named("RandomKey" if bare == "DrawKey" else bare, function)
            if p.type in TENSORS:
                default = None if p.default is None else "nb::none()" if p.default in ("{}", "Tensor{}", "Tensor()") else None
                if p.default is not None and default is None:
                    return None
                positional.append(Argument(name, "const Tensor&", default, default is not None or p.name in NONE_ALLOWED))
                passed.append(name)
            elif p.type in CONVERTED:
                ctype, expression = CONVERTED[p.type]
                positional.append(Argument(name, ctype))
                passed.append(expression.format(name))
            elif p.type in PLAIN or kind:
                ctype = kind or p.type
                default = p.default
                if default is not None:
                    value = re.sub(r"^const |&$", "", ctype)
                    default = f"{value}{default}" if default.startswith("{") else f"{value}({default})" if "(" not in value else default
                positional.append(Argument(name, ctype, default, p.type.startswith("std::optional")))
                passed.append(name)
            elif struct is not None:
                arguments, statements = self.unfold(struct, f"options{k}")
                if not arguments:
                    return None
                keywords += arguments
                before += statements
                passed.append(f"options{k}")
            else:
                return None
        names = [a.name for a in positional + keywords]
        return None if len(names) != len(set(names)) else (positional, keywords, before, passed)

    def result(self, function):
        """Returns the type of a function's result and code that makes it from `value`; None where Python has no form."""
        if function.returns in RESULTS:
            return None if function.returns == "void" else "value"
        struct = self.headers.struct_named(function.returns, function)
        if struct is None or not all(m.type in RESULTS for m in self.headers.members(struct)):
            return ""
        members = [m.name for m in self.headers.members(struct)]
        self.tuples[struct.name] = members
        names = ", ".join(f'"{m}"' for m in members)
        values = ", ".join(f"nb::cast(std::move(value.{m}))" for m in members)
        return f'named_tuple("{struct.name}", {{{names}}}, {{{values}}})'

    def function(self, function, target="m", method=False):
        """Returns the statement that defines a function, or a method of Tensor."""
        made, result = self.parameters(function), self.result(function)
        if made is None or result == "":
            self.refused.append(f"{function.header}: {function.returns} {function.name}({', '.join(p.type for p in function.parameters)})")
            return None
        positional, keywords, before, passed = made
        # A default that stands before an argument without one is left out.
        for k, a in enumerate(positional):
            if a.default is not None and any(b.default is None for b in positional[k + 1:]):
                a.default = None
        arguments = positional + keywords
        notes = [a.annotation() for a in (arguments[1:] if method else arguments)]
        if keywords:
            notes.insert(len(positional) - method, "nb::kw_only()")
        taken = ", ".join(f"{'const ' + a.type + '&' if a.type in ('Shape', 'std::string', 'Tensor', 'Tensors') else a.type} {a.name}" for a in arguments)
        call = f"{function.full}({', '.join(passed)})"
        if result == "value" or result is None:
            body = f"{' '.join(before)} {'return ' if result else ''}{call};"
            guard = ", Call()"
        else:
            body = f"auto value = run([&] {{ {' '.join(before)} return {call}; }}); return {result};"
            guard = ""
        notes = "".join(f", {n}" for n in notes)
        doc = ", " + (literal(docstring(function.comment)) if function.comment else f'summary_of("{function.name}")')
        return f'  {target}.def("{python_name(function.name)}", []({taken}) {{ {body} }}{notes}{guard}{doc});'


NONE_ALLOWED = {"bias", "b_hh", "weight"}


def operations(headers, writer, output):
    statements = []
    for header in OPERATIONS:
        for f in headers.functions(header):
            if f.name in LEFT_OUT or f.name.startswith("operator"):
                continue
            statement = writer.function(f)
            if statement is None:
                continue
            statements.append((header, statement))
            if f.name in METHODS and f.parameters and f.parameters[0].type == "const Tensor&":
                statements.append((header, writer.function(f, "tensor", True)))
    size = (len(statements) + PARTS - 1) // PARTS
    for part in range(PARTS):
        chosen = statements[part * size:(part + 1) * size]
        includes = sorted({h for h, _ in chosen})
        text = ["// Written by python/bindings.py.", '#include "casters.h"', '#include "enums.h"',
                *[f'#include "ferrite/{h}"' for h in includes], "", "namespace ferrite::python {",
                "using namespace ferrite::nn;", "",
                f"void define_operations_{part + 1}(nb::module_& m, nb::class_<Tensor>& tensor) {{",
                "  (void)tensor;", *[s for _, s in chosen], "}", "", "}  // namespace ferrite::python", ""]
        write(output / f"operations_{part + 1}.cpp", "\n".join(text))
    calls = "\n".join(f"  define_operations_{p + 1}(m, tensor);" for p in range(PARTS))
    declared = "\n".join(f"void define_operations_{p + 1}(nb::module_&, nb::class_<Tensor>&);" for p in range(PARTS))
    write(output / "operations.cpp", f"""// Written by python/bindings.py.
#include "module.h"

namespace ferrite::python {{
{declared}

void define_operations(nb::module_& m) {{
  nb::class_<Tensor> tensor = nb::borrow<nb::class_<Tensor>>(m.attr("Tensor"));
{calls}
}}

}}  // namespace ferrite::python
""")


def enums(headers, output):
    """Writes the casters of enumerations, whose values are texts in Python."""
    chosen = [e for e in headers.enums.values() if e.full != "ferrite::Dtype"]
    used = sorted({e.header for e in chosen})
    text = ["#pragma once", "// Written by python/bindings.py.", '#include "casters.h"',
            *[f'#include "ferrite/{h}"' for h in used], ""]
    for e in chosen:
        flat = e.full.replace("::", "_")
        values = ", ".join(f'{{{e.full}::{v}, "{v}"}}' for v in e.values)
        text += [f"namespace ferrite::python {{", f"struct {flat}_names {{", f'  static constexpr const char* what = "{e.name}";',
                 f"  static constexpr auto of() {{ return std::to_array<std::pair<{e.full}, const char*>>({{{values}}}); }}", "};",
                 "}  // namespace ferrite::python", "namespace nanobind::detail {", "template <>",
                 f"struct type_caster<{e.full}> : text_caster<{e.full}, ferrite::python::{flat}_names> {{}};",
                 "}  // namespace nanobind::detail", ""]
    write(output / "enums.h", "\n".join(text))


def write(path, text):
    """Writes a file unless it already says the same, so that nothing is compiled again without need."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(root, output):
    output.mkdir(parents=True, exist_ok=True)
    headers = Headers(root)
    writer = Writer(headers)
    enums(headers, output)
    operations(headers, writer, output)
    write(output / "refused.txt", "\n".join(writer.refused) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
