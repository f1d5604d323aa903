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
    "tensor/activations.h",
    "tensor/allclose.h",
    "tensor/attention.h",
    "tensor/convolution.h",
    "tensor/cumulative.h",
    "tensor/fft.h",
    "tensor/linalg.h",
    "tensor/linear_scan.h",
    "tensor/math.h",
    "tensor/mel.h",
    "tensor/normalization.h",
    "tensor/norms.h",
    "tensor/ops.h",
    "tensor/pooling.h",
    "tensor/random.h",
    "tensor/sampling.h",
    "tensor/scatter.h",
    "tensor/selective_scan.h",
    "tensor/shapes.h",
    "tensor/signal.h",
    "tensor/sorting.h",
    "tensor/windows.h",
    "nn/losses/audio.h",
    "nn/losses/classification.h",
    "nn/losses/ranking.h",
    "nn/losses/reduction.h",
    "nn/losses/regression.h",
    "nn/losses/sequence.h",
    "nn/optim/optimizer.h",
    "nn/recurrent/gru.h",
    "nn/recurrent/lstm.h",
    "nn/recurrent/rnn.h",
    "nn/recurrent/min_gru.h",
    "tensor/threads.h",
    "tensor/instruction_set.h",
    "tensor/denormals.h",
]
# Not functions of tensors, or replaced by something that Python has.
LEFT_OUT = {"parallel_for", "philox", "at", "values_of"}
# Functions of a first tensor that are methods too.
METHODS = """abs all amax amin any argmax argmin argsort cast chunk clamp contiguous cos cumprod cumsum detach exp expand
flatten flip gather index_select log logsumexp log_softmax matmul max mean min movedim permute pow prod relu repeat reshape
roll round select sigmoid sign sin slice softmax sort split sqrt square squeeze std sum tanh topk transpose tril triu
unbind unsqueeze var where""".split()
PARTS = 4

PLAIN = {
    "bool",
    "int",
    "double",
    "float",
    "std::int64_t",
    "std::uint64_t",
    "std::size_t",
    "std::string",
    "Scalar",
    "Dtype",
    "Label",
    "std::string_view",
    "const std::string&",
    "std::optional<double>",
    "std::optional<std::int64_t>",
    "const Tensors&",
    "Tensors",
    "const Shape&",
    "Shape",
    "std::vector<double>",
    "std::vector<std::int64_t>",
    "const std::vector<double>&",
    "const std::vector<std::int64_t>&",
    "std::optional<bool>",
    "ConvolutionPadding",
}
TENSORS = {"const Tensor&", "Tensor"}
CONVERTED = {
    "const Operand&": ("const OperandArgument&", "{}.operand()"),
    "std::span<const Tensor>": ("const std::vector<Tensor>&", "std::span<const Tensor>({})"),
    "std::span<const std::int64_t>": ("const std::vector<std::int64_t>&", "std::span<const std::int64_t>({})"),
}
RESULTS = {
    "void",
    "Tensor",
    "Tensors",
    "std::vector<Tensors>",
    "bool",
    "double",
    "int",
    "std::int64_t",
    "Shape",
    "std::string_view",
    "std::string",
    "std::size_t",
}


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
            nested = self.headers.struct_named(member.type, struct)
            for part in self.headers.members(nested) if nested else []:
                argument = self.option(struct, part, f"{member.name}.{part.name}")
                if argument is not None:
                    argument.name = f"{member.name}_{part.name}"
                    arguments.append(argument)
                    statements.append(f"{variable}.{member.name}.{part.name} = {argument.name};")
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
                default = (
                    None if p.default is None else "nb::none()" if p.default in ("{}", "Tensor{}", "Tensor()") else None
                )
                if p.default is not None and default is None:
                    return None
                positional.append(
                    Argument(name, "const Tensor&", default, default is not None or p.name in NONE_ALLOWED)
                )
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
                    default = (
                        f"{value}{default}"
                        if default.startswith("{")
                        else f"{value}({default})"
                        if "(" not in value
                        else default
                    )
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
            self.refused.append(
                f"{function.header}: {function.returns} {function.name}({', '.join(p.type for p in function.parameters)})"
            )
            return None
        positional, keywords, before, passed = made
        # A default that stands before an argument without one is left out.
        for k, a in enumerate(positional):
            if a.default is not None and any(b.default is None for b in positional[k + 1 :]):
                a.default = None
        arguments = positional + keywords
        notes = [a.annotation() for a in (arguments[1:] if method else arguments)]
        if keywords:
            notes.insert(len(positional) - method, "nb::kw_only()")
        taken = ", ".join(
            f"{'const ' + a.type + '&' if a.type in ('Shape', 'std::string', 'Tensor', 'Tensors') else a.type} {a.name}"
            for a in arguments
        )
        call = f"{function.full}({', '.join(passed)})"
        if result == "value" or result is None:
            body = f"{' '.join(before)} {'return ' if result else ''}{call};"
            guard = ", Call()"
        else:
            body = f"auto value = run([&] {{ {' '.join(before)} return {call}; }}); return {result};"
            guard = ""
        notes = "".join(f", {n}" for n in notes)
        doc = ", " + (
            literal(docstring(function.comment))
            if function.comment
            else f'summary_of("{function.name}", {literal(docstring(function.fallback))})'
        )
        return f'  {target}.def("{python_name(function.name)}", []({taken}) {{ {body} }}{notes}{guard}{doc});'


NONE_ALLOWED = {"bias", "b_hh"}


# Layers: the name in Python, that in C++, the options, how they are constructed ("sizes": from input size, hidden size and
# options), the base, and how many options may be given without their names.
LAYERS = [
    ("Linear", "Linear", "LinearOptions", "", "_Layer", 2),
    ("Embedding", "Embedding", "EmbeddingOptions", "", "_Layer", 2),
    ("EmbeddingBag", "EmbeddingBag", "EmbeddingBagOptions", "", "_Layer", 2),
    ("LayerNorm", "LayerNorm", "LayerNormOptions", "", "_Layer", 1),
    ("RMSNorm", "RmsNorm", "RmsNormOptions", "", "_Layer", 1),
    ("GroupNorm", "GroupNorm", "GroupNormOptions", "", "_Layer", 2),
    *[
        (f"{k}Norm{n}d", f"{k}Norm{n}d", f"{k}NormOptions", "", "_Layer", 1)
        for k in ("Batch", "Instance")
        for n in (1, 2, 3)
    ],
    ("Dropout", "Dropout", "DropoutOptions", "", "_Layer", 1),
    ("Unflatten", "Unflatten", "UnflattenOptions", "", "_Layer", 2),
    ("ELU", "Elu", "AlphaOptions", "", "_Layer", 1),
    ("CELU", "Celu", "AlphaOptions", "", "_Layer", 1),
    ("LeakyReLU", "LeakyRelu", "SlopeOptions", "", "_Layer", 1),
    ("Hardtanh", "Hardtanh", "BoundsOptions", "", "_Layer", 2),
    ("Softshrink", "Softshrink", "LambdaOptions", "", "_Layer", 1),
    ("Hardshrink", "Hardshrink", "LambdaOptions", "", "_Layer", 1),
    ("Threshold", "Threshold", "ThresholdOptions", "", "_Layer", 2),
    ("GLU", "Glu", "AxisOptions", "", "_Layer", 1),
    ("PReLU", "Prelu", "PreluOptions", "", "_Layer", 1),
    *[(f"Conv{n}d", f"Conv{n}d", "ConvOptions", "", "_Layer", 3) for n in (1, 2, 3)],
    *[(f"ConvTranspose{n}d", f"ConvTranspose{n}d", "ConvTransposeOptions", "", "_Layer", 3) for n in (1, 2, 3)],
    ("CausalConv1d", "CausalConv1d", "CausalConv1dOptions", "", "_Layer", 3),
    *[
        (f"{k}Pool{n}d", f"{k}Pool{n}d", f"{k}PoolLayerOptions", "", "_Layer", 2 if k == "Lp" else 1)
        for k in ("Max", "Avg", "Lp")
        for n in (1, 2, 3)
    ],
    *[
        (f"Adaptive{k}Pool{n}d", f"Adaptive{k}Pool{n}d", "AdaptivePoolOptions", "", "_Layer", 1)
        for k in ("Avg", "Max")
        for n in (1, 2, 3)
    ],
    ("MultiheadAttention", "MultiheadAttention", "MultiheadAttentionOptions", "", "_Layer", 2),
    ("TransformerEncoderLayer", "TransformerEncoderLayer", "TransformerLayerOptions", "", "_Layer", 2),
    ("TransformerDecoderLayer", "TransformerDecoderLayer", "TransformerLayerOptions", "", "_Layer", 2),
    ("SinusoidalPositions", "SinusoidalPositions", "SinusoidalPositionsOptions", "", "_Layer", 1),
    ("LearnedPositions", "LearnedPositions", "LearnedPositionsOptions", "", "_Layer", 2),
    ("Standardize", "Standardize", "StandardizeOptions", "", "_Layer", 1),
    ("MelBands", "MelBands", "MelBandsOptions", "", "_Layer", 3),
    ("Stft", "Stft", "StftLayerOptions", "", "_Layer", 1),
    ("InverseStft", "InverseStft", "InverseStftOptions", "", "_Layer", 1),
    ("LastStep", "LastStep", "", "", "_Layer", 0),
    ("MeanOverTime", "MeanOverTime", "", "", "_Layer", 0),
    ("Flatten", "Flatten", "", "", "_Layer", 0),
    ("GRU", "Gru", "GruOptions", "sizes", "Recurrent", 0),
    ("LSTM", "Lstm", "LstmOptions", "sizes", "Recurrent", 0),
    ("RNN", "Rnn", "RnnOptions", "sizes", "Recurrent", 0),
    ("PeepholeLSTM", "PeepholeLstm", "PeepholeLstmOptions", "sizes", "Recurrent", 0),
    ("MinGRU", "MinGru", "MinGruOptions", "sizes", "SequenceLayer", 0),
    ("MinLSTM", "MinLstm", "MinLstmOptions", "sizes", "SequenceLayer", 0),
    ("LRU", "Lru", "LruOptions", "sizes", "SequenceLayer", 0),
    ("S5", "S5", "S5Options", "sizes", "SequenceLayer", 0),
    ("RGLRU", "RgLru", "RgLruOptions", "", "SequenceLayer", 1),
    ("Mamba", "Mamba", "MambaOptions", "", "SequenceLayer", 1),
    ("MLSTM", "MLstm", "MLstmOptions", "", "SequenceLayer", 1),
    ("SLSTM", "SLstm", "SLstmOptions", "", "SequenceLayer", 1),
]
# Options that a layer cannot do without, whatever their defaults are in C++.
SIZES = set(
    """in_features out_features vocabulary features num_features num_groups num_channels in_channels out_channels
    kernel_size n_fft n_mels n_frequencies sample_rate embed_dim num_heads d_model nhead embedding_dim capacity size
    sizes""".split()
)
# PyTorch's names of options, for all layers and optimisers, and for some of them.
RENAMED = {
    "epsilon": "eps",
    "layers": "num_layers",
    "probability": "p",
    "learning_rate": "lr",
    "lambda": "lambd",
    "slope": "negative_slope",
}
RENAMED_IN = {
    "Embedding": {"vocabulary": "num_embeddings", "features": "embedding_dim"},
    "EmbeddingBag": {"vocabulary": "num_embeddings", "features": "embedding_dim"},
    "LayerNorm": {"features": "normalized_shape"},
    "RMSNorm": {"features": "normalized_shape"},
    "Hardtanh": {"low": "min_val", "high": "max_val"},
    "Threshold": {"bound": "threshold"},
    "GLU": {"axis": "dim"},
    "Unflatten": {"axis": "dim", "sizes": "unflattened_size"},
    "Adagrad": {"learning_rate_decay": "lr_decay", "initial_accumulator": "initial_accumulator_value"},
    **{f"Adaptive{k}Pool{n}d": {"size": "output_size"} for k in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"LpPool{n}d": {"norm": "norm_type"} for n in (1, 2, 3)},
}
OPTIMISERS = [
    ("Adam", "Adam"),
    ("AdamW", "AdamW"),
    ("SGD", "Sgd"),
    ("RMSprop", "RmsProp"),
    ("Adagrad", "Adagrad"),
    ("Adadelta", "Adadelta"),
    ("Adamax", "Adamax"),
    ("NAdam", "NAdam"),
    ("RAdam", "RAdam"),
    ("Lion", "Lion"),
    ("Adafactor", "Adafactor"),
]


def renamed(arguments, statements, name):
    """Gives options PyTorch's names."""
    table = RENAMED | RENAMED_IN.get(name, {})
    for k, a in enumerate(arguments):
        own = a.name.rstrip("_")
        if own in table:
            statements[k + 1] = re.sub(rf"= {a.name};", f"= {table[own]};", statements[k + 1])
            a.name = table[own]
    names = [a.name for a in arguments]
    if "beta1" in names and "beta2" in names:  # PyTorch's betas
        k, j = names.index("beta1"), names.index("beta2")
        struct = arguments[k].default.split("{")[0]
        arguments[k] = Argument(
            "betas", "std::pair<double, double>", f"std::pair<double, double>({struct}{{}}.beta1, {struct}{{}}.beta2)"
        )
        statements[k + 1] = statements[k + 1].replace("= beta1;", "= betas.first;")
        statements[j + 1] = statements[j + 1].replace("= beta2;", "= betas.second;")
        del arguments[j]


def taken(arguments):
    return ", ".join(
        f"{'const ' + a.type + '&' if a.type in ('Shape', 'std::string', 'Tensor', 'Tensors', 'nb::list') else a.type} {a.name}"
        for a in arguments
    )


def library(headers):
    return [f"ferrite/{h}" for h in sorted(headers)]


def source(includes, function, statements):
    """Returns the text of a source that defines a function of these statements."""
    return "\n".join(
        [
            "// Written by python/bindings.py.",
            *[f'#include "{h}"' for h in includes],
            "",
            "namespace ferrite::python {",
            "using namespace ferrite::nn;",
            f"void {function} {{",
            *statements,
            "}",
            "}  // namespace ferrite::python",
            "",
        ]
    )


def layers(headers, writer, output):
    statements, includes = [], set()
    for name, cpp, options, how, base, positional in LAYERS:
        found = next(
            (
                c
                for c in headers.classes.values()
                if c.name
                in (
                    cpp,
                    re.sub(r"\dd$", "", cpp),
                    {"BatchNorm": "ChannelNorm", "InstanceNorm": "ChannelNorm"}.get(re.sub(r"\dd$", "", cpp)),
                )
                and c.space == "ferrite::nn"
            ),
            None,
        )
        if found is None:
            raise SystemExit(f"no class {cpp} in the headers")
        includes.add(found.header)
        arguments, before = [], []
        if options:
            arguments, before = writer.unfold(headers.struct_named(options, found), "o")
            renamed(arguments, before, name)
        for a in arguments[:positional]:
            if (a.default or "").rpartition(".")[2] in SIZES:
                a.default = None
        for k in range(positional):
            if any(a.default is None for a in arguments[k + 1 : positional]):
                arguments[k].default = None
        seeds = [
            Argument("seed", "std::optional<std::uint64_t>", "nb::none()", True),
            Argument("dtype", "Dtype", "Dtype::f32"),
        ]
        sizes = [Argument("input_size", "std::int64_t"), Argument("hidden_size", "std::int64_t")] if how else []
        every = [*sizes, *arguments, *seeds]
        notes = [a.annotation() for a in every]
        notes.insert(len(sizes) + positional, "nb::kw_only()")
        made = (
            f"new (self) ferrite::nn::{cpp}(input_size, hidden_size, o, init_of(seed, dtype));"
            if how
            else f"construct(self, o, init_of(seed, dtype));"
            if options
            else f"new (self) ferrite::nn::{cpp}(); (void)seed; (void)dtype;"
        )
        cls = f"ferrite::nn::{cpp}"
        parent = {
            "_Layer": "ferrite::nn::Layer",
            "Recurrent": "ferrite::nn::Recurrent",
            "SequenceLayer": "ferrite::nn::SequenceLayer",
        }[base]
        statements.append(
            f'  nb::class_<{cls}, {parent}>(m, "{name}", {literal(docstring(found.comment))})\n'
            f'      .def("__init__", []({cls}* self{", " if every else ""}{taken(every)}) {{ {" ".join(before)} {made} }}'
            f"{''.join(', ' + n for n in notes)});"
        )
    write(
        output / "layers_written.cpp",
        source(["layers.h", "enums.h", *library(includes)], "define_written_layers(nb::module_& m)", statements),
    )


def optimisers(headers, writer, output):
    statements, includes = [], set()
    for name, cpp in OPTIMISERS:
        found = headers.class_named(cpp)
        includes.add(found.header)
        options = "AdamOptions" if cpp == "AdamW" else f"{cpp}Options"
        arguments, before = writer.unfold(headers.struct_named(options, found), "o")
        renamed(arguments, before, name)
        notes = [a.annotation() for a in arguments]
        notes.insert(1, "nb::kw_only()")
        cls = f"ferrite::nn::{cpp}"
        extra = "".join(", " + n for n in notes)
        statements.append(
            f'  nb::class_<{cls}, ferrite::nn::Optimizer>(m, "{name}", {literal(docstring(found.comment))})\n'
            f'      .def("__init__", []({cls}* self, const std::vector<Parameter>& parameters, {taken(arguments)}) {{ {" ".join(before)} new (self) {cls}(parameters, o); }}, nb::arg("parameters"){extra})\n'
            f'      .def("add_group", []({cls}& self, const std::vector<Parameter>& parameters, {taken(arguments)}) {{ {" ".join(before)} self.add_group(parameters, o); }}, nb::arg("parameters"){extra}, '
            f'"Adds parameters with options of their own.");'
        )
    write(
        output / "optimisers_written.cpp",
        source(["casters.h", "enums.h", *library(includes)], "define_written_optimisers(nb::module_& m)", statements),
    )


def builder(headers, writer, output):
    """Writes the words of the builder; each returns the builder itself."""
    statements = []
    for f in headers.methods("ferrite::dsl::Builder"):
        if f.returns != "Builder&":
            continue
        arguments, before, passed, good = [], [], [], True
        f.space = "ferrite::nn"
        for p in f.parameters:
            name = python_name(p.name)
            bare = re.sub(r"^const |&$", "", p.type)
            struct = headers.struct_named(bare.removeprefix("nn::"), f)
            if p.type in PLAIN or p.type == "int":
                default = (
                    None
                    if p.default is None
                    else f"{bare}{p.default}"
                    if p.default.startswith("{")
                    else f"{bare}({p.default})"
                )
                arguments.append(Argument(name, "std::string" if bare == "std::string" else bare, default))
                passed.append(name)
            elif p.type == "const Sizes&":
                arguments.append(Argument(name, "Shape"))
                passed.append(f"sizes_of({name})")
            elif p.type == "const Part&":
                arguments.append(Argument(name, "nb::callable"))
                passed.append(f"part_of({name})")
            elif p.type == "const std::vector<Part>&":
                arguments.append(Argument(name, "nb::list"))
                passed.append(f"parts_of({name})")
            elif p.type == "std::unique_ptr<nn::Layer>":
                arguments.append(Argument(name, "nb::handle"))
                passed.append(f"owned({name})")
            elif struct is not None and struct.space == "ferrite::nn":
                more, statements_of = writer.unfold(struct, "o")
                known = {a.name for a in arguments} | {q.name for q in f.parameters}
                renamed(more, statements_of, struct.name.removesuffix("Options"))
                keep = [k for k, a in enumerate(more) if a.name not in known]
                arguments.append(more)
                before += [statements_of[0]] + [
                    s for s in statements_of[1:] if not any(f"= {a.name};" in s and a.name in known for a in more)
                ]
                arguments[-1] = [more[k] for k in keep]
                passed.append("o")
            else:
                good = False
        if not good:
            writer.refused.append(f"dsl/builder.h: {f.name}({', '.join(p.type for p in f.parameters)})")
            continue
        plain = [a for a in arguments if isinstance(a, Argument)]
        named = [a for group in arguments if isinstance(group, list) for a in group]
        for k, a in enumerate(plain):
            if a.default is not None and any(b.default is None for b in plain[k + 1 :]):
                a.default = None
        notes = [a.annotation() for a in plain] + (["nb::kw_only()"] if named else []) + [a.annotation() for a in named]
        every = plain + named
        statements.append(
            f'  c.def("{python_name(f.name)}", [](nb::object self{", " if every else ""}{taken(every)}) {{ {" ".join(before)} '
            f"made<dsl::Builder>(self)->{f.name}({', '.join(passed)}); return result_of(self); }}{''.join(', ' + n for n in notes)}, "
            f"{literal(docstring(f.comment))});"
        )
    write(
        output / "builder_written.cpp",
        source(["builder.h", "enums.h"], "define_written_words(nb::class_<dsl::Builder>& c)", statements),
    )


def operations(headers, writer, output):
    statements, seen = [], []
    for header in OPERATIONS:
        for f in headers.functions(header):
            if f.name in LEFT_OUT or f.name.startswith("operator"):
                continue
            statement = writer.function(f, "nn" if f.space == "ferrite::nn" else "m")
            if statement is None:
                continue
            # Keys of draws have two forms in C++ and one in Python.
            signature = f.name, re.findall(r'nb::arg\("(\w+)"\)', statement)
            if signature in seen:
                continue
            seen.append(signature)
            statements.append((header, statement))
            if f.name in METHODS and f.parameters and f.parameters[0].type == "const Tensor&":
                statements.append((header, writer.function(f, "tensor", True)))
    # A form that takes a number comes before one that takes a tensor, which a number converts to.
    first = {}
    for k, (_, statement) in enumerate(statements):
        first.setdefault(statement.split("[](")[0], k)
    order = lambda s: (first[s[1].split("[](")[0]], s[1].split("{")[0].count("const Tensor&"))  # noqa: E731
    statements.sort(key=order)
    size = (len(statements) + PARTS - 1) // PARTS
    for part in range(PARTS):
        chosen = statements[part * size : (part + 1) * size]
        includes = sorted({h for h, _ in chosen})
        text = [
            "// Written by python/bindings.py.",
            '#include "casters.h"',
            '#include "enums.h"',
            *[f'#include "ferrite/{h}"' for h in includes],
            "",
            "namespace ferrite::python {",
            "using namespace ferrite::nn;",
            "",
            f"void define_operations_{part + 1}(nb::module_& m, nb::module_& nn, nb::class_<Tensor>& tensor) {{",
            "  (void)m; (void)nn; (void)tensor;",
            *[s for _, s in chosen],
            "}",
            "",
            "}  // namespace ferrite::python",
            "",
        ]
        write(output / f"operations_{part + 1}.cpp", "\n".join(text))
    calls = "\n".join(f"  define_operations_{p + 1}(m, nn, tensor);" for p in range(PARTS))
    declared = "\n".join(
        f"void define_operations_{p + 1}(nb::module_&, nb::module_&, nb::class_<Tensor>&);" for p in range(PARTS)
    )
    write(
        output / "operations.cpp",
        f"""// Written by python/bindings.py.
#include "module.h"

namespace ferrite::python {{
{declared}

void define_operations(nb::module_& m, nb::module_& nn) {{
  nb::class_<Tensor> tensor = nb::borrow<nb::class_<Tensor>>(m.attr("Tensor"));
{calls}
}}

}}  // namespace ferrite::python
""",
    )


def enums(headers, output):
    """Writes the casters of enumerations, whose values are texts in Python."""
    chosen = [
        e
        for e in headers.enums.values()
        if e.full != "ferrite::Dtype" and e.header.startswith(("tensor/", "nn/", "autograd/", "train/"))
    ]
    used = sorted({e.header for e in chosen})
    text = [
        "#pragma once",
        "// Written by python/bindings.py.",
        '#include "option_casters.h"',
        *[f'#include "ferrite/{h}"' for h in used],
        "",
    ]
    for e in chosen:
        flat = e.full.replace("::", "_")
        values = ", ".join(f'{{{e.full}::{v}, "{v}"}}' for v in e.values)
        text += [
            f"namespace ferrite::python {{",
            f"struct {flat}_names {{",
            f'  static constexpr const char* what = "{e.name}";',
            f"  static constexpr auto of() {{ return std::to_array<std::pair<{e.full}, const char*>>({{{values}}}); }}",
            "};",
            "}  // namespace ferrite::python",
            "namespace nanobind::detail {",
            "template <>",
            f"struct type_caster<{e.full}> : text_caster<{e.full}, ferrite::python::{flat}_names> {{}};",
            "}  // namespace nanobind::detail",
            "",
        ]
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
    layers(headers, writer, output)
    optimisers(headers, writer, output)
    builder(headers, writer, output)
    write(output / "refused.txt", "\n".join(writer.refused) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
