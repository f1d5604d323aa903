"""Programs with open extents at those of their arguments. The way in is internal to jax: the versions of requirements.txt
have it."""
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir

MLIR_NAMES = {"bool": "i1", "int8": "i8", "int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64"}


def at_extents_of(text, arguments):
    """A program with open extents at those of its arguments: called by a main with static types, as jax.export does."""
    def typed(array):
        return "tensor<" + "".join(f"{n}x" for n in array.shape) + MLIR_NAMES[str(array.dtype)] + ">"

    def listed(pattern, items):
        return ", ".join(pattern.format(i=i, item=item) for i, item in enumerate(items))

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        program, = module.body.operations
        takes, gives = ([str(t) for t in types] for types in (program.type.inputs, program.type.results))
        program.attributes["sym_name"] = ir.StringAttr.get("program")
        program.attributes["sym_visibility"] = ir.StringAttr.get("private")
        lines = [f"func.func public @main({listed('%a{i}: {item}', map(typed, arguments))}) -> ({', '.join(gives)}) {{"]
        lines += [f"%b{i} = stablehlo.convert %a{i} : ({typed(a)}) -> {takes[i]}" for i, a in enumerate(arguments)]
        lines += [f"%r:{len(gives)} = call @program({listed('%b{i}', takes)}) : ({', '.join(takes)}) -> "
                  f"({', '.join(gives)})",
                  f"return {listed('%r#{i}', gives)} : {', '.join(gives)}", "}"]
        text = str(module).rstrip()
        module = ir.Module.parse(text[:text.rindex("}")] + "\n".join(lines) + "\n}\n")
        return _jax.mlir.refine_polymorphic_shapes(
            mlir.module_to_bytecode(module), enable_shape_assertions=True, validate_static_shapes=True)


def text_at_extents_of(text, arguments):
    with mlir.make_ir_context():
        return str(ir.Module.parse(at_extents_of(text, arguments)))
