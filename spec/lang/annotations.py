"""Read type annotations: sorts, ranges, choices, sets, options, and the marks of a state variable."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.source import Imported, Module, resolve
from kvsan.spec.lang.world import World

KNOWN = "a Sort, a Choice, int, bool, a range alias, Set[...], or one of these `| None`"


@dataclass(frozen=True)
class Declared:
    """A state variable's annotation, taken apart."""

    keys: tuple[ir.Type, ...]
    value: ir.Type
    const: bool = False
    derived: bool = False
    ghost: bool = False


def surface_word(world: World, module: Module, node: ast.AST) -> str:
    """The word of the language that a name stands for, or ''."""
    if not isinstance(node, ast.Name):
        return ""
    found = resolve(world.modules, module, node.id)
    return found.name or "" if isinstance(found, Imported) and found.surface else ""


def type_of(world: World, module: Module, node: ast.expr) -> ir.Type:
    """The type that an annotation names; BAD after a report."""
    match node:
        case ast.Constant(value=None):
            return ir.NONE
        case ast.Constant(value=str(text)):
            return type_of(world, module, ast.copy_location(ast.parse(text, mode="eval").body, node))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _option(world, module, node, type_of(world, module, left), type_of(world, module, right))
        case ast.Name(id=name):
            return _named(world, module, node, name)
        case ast.Subscript(value=head, slice=inner):
            word = surface_word(world, module, head)
            if word == "Set":
                return _set(world, module, node, type_of(world, module, inner))
            if _is_annotated(world, module, head):
                return _annotated(world, module, node, inner)
            if word in ("Map", "Const", "Derived", "Ghost"):
                return _bad(
                    world, module, node, f"{word}[...] belongs to state variables", "declare it in the state class"
                )
        case _:
            pass
    return _bad(world, module, node, f"`{ast.unparse(node)}` is not a type of the language")


def _bad(world: World, module: Module, node: ast.AST, what: str, fix: str = "") -> ir.Type:
    world.report.add("unknown-type", what, module.span(node), KNOWN, fix)
    return ir.BAD


def _is_annotated(world: World, module: Module, head: ast.expr) -> bool:
    if not isinstance(head, ast.Name):
        return False
    found = resolve(world.modules, module, head.id)
    return isinstance(found, Imported) and found.name == "Annotated"


def _option(world: World, module: Module, node: ast.AST, left: ir.Type, right: ir.Type) -> ir.Type:
    if left == ir.NONE:
        left, right = right, left
    if ir.BAD in (left, right):
        return ir.BAD
    if right != ir.NONE or isinstance(left, ir.OptionType | ir.NoneType):
        return _bad(world, module, node, "a union here is an option: one type and None")
    return ir.OptionType(left)


def _set(world: World, module: Module, node: ast.AST, element: ir.Type) -> ir.Type:
    if isinstance(element, ir.SortType | ir.NatType | ir.BadType):
        return ir.SetType(element)
    return _bad(world, module, node, f"a Set holds members of a sort or a range, not {element}")


def _named(world: World, module: Module, node: ast.Name, name: str) -> ir.Type:
    simple: dict[str, ir.Type] = {"int": ir.NAT, "bool": ir.BOOL}
    if name in simple and name not in module.names:
        return simple[name]
    found = resolve(world.modules, module, name)
    match found:
        case (defined, ast.ClassDef(name=known)):
            if known in world.sorts:
                return ir.SortType(known)
            if known in world.choices:
                return world.choices[known]
        case (defined, ast.Assign(value=value)):
            return type_of(world, defined, value)
        case (defined, ast.AnnAssign(value=ast.expr() as value)):
            return type_of(world, defined, value)
        case _:
            pass
    known_names = [*world.sorts, *world.choices, *module.names, "int", "bool"]
    close = nearest(name, [n for n in known_names if n != name])
    return _bad(
        world, module, node, f"`{name}` is not a type of the language", f"did you mean `{close}`?" if close else ""
    )


def _annotated(world: World, module: Module, node: ast.AST, inner: ast.expr) -> ir.Type:
    match inner:
        case ast.Tuple(elts=[base, ast.Call(func=mark, args=[ast.Constant(value=str(parameter))])]):
            word = surface_word(world, module, mark)
            if word in ("Below", "UpTo") and type_of(world, module, base) == ir.NAT:
                world.parameters.setdefault(parameter)
                return ir.NatType(parameter, word == "UpTo")
    return _bad(world, module, node, 'a range is Annotated[int, Below("name")] or Annotated[int, UpTo("name")]')


def variable_of(world: World, module: Module, node: ast.expr) -> Declared:
    """The annotation of a state variable: marks, then a map or a scalar."""
    if isinstance(node, ast.Subscript):
        word = surface_word(world, module, node.value)
        if word in ("Const", "Derived", "Ghost"):
            inner = variable_of(world, module, node.slice)
            return replace(
                inner,
                const=inner.const or word == "Const",
                derived=inner.derived or word == "Derived",
                ghost=inner.ghost or word == "Ghost",
            )
        if word == "Map":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            types = [type_of(world, module, p) for p in parts]
            for key, part in zip(types[:-1], parts, strict=False):
                _check_key(world, module, part, key)
            return Declared(tuple(types[:-1]), types[-1])
    return Declared((), type_of(world, module, node))


def _check_key(world: World, module: Module, node: ast.AST, key: ir.Type) -> None:
    match key:
        case ir.SortType() | ir.ChoiceType() | ir.BadType() | ir.BoolType():
            return
        case ir.NatType(parameter=str()):
            return
        case _:
            world.report.add(
                "bad-index-type",
                f"a map cannot be indexed by {key}",
                module.span(node),
                "a Sort, a Choice, bool, or a range (Below or UpTo)",
                'declare a range: Pos = Annotated[int, Below("positions")]' if key == ir.NAT else "",
            )
