"""Find and read the modules of a specification, without running them.

A specification is one file, or a package with every module in it; modules imported from there that use the language
are part of it too. Names are resolved through the imports, so a rule may live beside its events or in another module.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from kvsan.spec.lang.diagnostics import Report, Span, nearest

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Imported:
    """`name` of another module (None: the module itself)."""

    module: Path | None  # None: outside the specification
    name: str | None
    surface: bool  # a word of the language
    span: Span


@dataclass
class Module:
    """One parsed source file. names: what its top level binds, to the statement that binds it or to an import."""

    name: str  # dotted where known, else the stem of the file
    path: Path
    tree: ast.Module
    lines: list[str]
    names: dict[str, ast.AST | Imported] = field(default_factory=dict)

    def span(self, node: ast.AST) -> Span:
        """The source span of a node of this module."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_column = getattr(node, "end_col_offset", None) or column + 1
        return Span(
            str(self.path), line, self._characters(line, column), end_line, self._characters(end_line, end_column)
        )

    def _characters(self, line: int, column: int) -> int:
        """A column of `ast`, which counts bytes, in characters."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))


def files_of(source: str | Path | ModuleType, report: Report) -> tuple[str, list[tuple[str, Path]]]:
    """The name of a specification and its (dotted name, file) pairs. An unknown source is reported."""
    if isinstance(source, ModuleType):
        name, origin = source.__name__, getattr(source, "__file__", None)
    elif isinstance(source, Path) or source.endswith(".py") or "/" in source:
        name, origin = Path(source).stem, str(source)
    else:
        name = source
        try:
            found = importlib.util.find_spec(source)
        except ModuleNotFoundError:
            found = None
        origin = found.origin if found else None
    path = Path(origin) if origin else None
    if path is not None and path.is_dir():
        path = path / "__init__.py"
    if path is None or not path.is_file():
        report.add(
            "source-not-found",
            f"the source of {name} is not on disk",
            Span(str(path or name), 1, 0, 1, 1),
            "a module whose source file can be read",
            "write the specification in a .py file and load that file or its module name",
        )
        return name, []
    if path.name != "__init__.py":
        return name, [(name, path)]
    inner = sorted(p for p in path.parent.glob("*.py") if p.name != "__init__.py")
    return name, [(name, path), *((f"{name}.{p.stem}", p) for p in inner)]


def _target(module: Module, node: ast.ImportFrom) -> tuple[str | None, Path | None]:
    """The dotted name (where known) and the file, or package folder, that a `from` import names."""
    if node.level:
        folder = module.path.parent
        package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
        for _ in range(node.level - 1):
            folder, package = folder.parent, package.rpartition(".")[0]
        parts = (node.module or "").split(".") if node.module else []
        dotted = ".".join([*([package] if package else []), *parts]) or None
        return dotted, _file(folder.joinpath(*parts))
    name = node.module or ""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name, None
    sibling = module.path.parent.joinpath(*name.split(".")).with_suffix(".py")
    if sibling.is_file():
        return name, sibling
    try:
        found = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        return name, None
    return name, Path(found.origin) if found and found.origin else None


def _file(base: Path) -> Path | None:
    for path in (base.with_name(base.name + ".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _is_surface(path: Path | None) -> bool:
    return path is not None and path.resolve().parent == HERE


def _bind_import(module: Module, node: ast.ImportFrom, pending: list[tuple[str, Path]], report: Report) -> None:
    dotted, path = _target(module, node)
    for alias in node.names:
        if alias.name == "*":
            report.add(
                "star-import", "a star import hides where names come from", module.span(node), fix="import each name"
            )
            continue
        bound = alias.asname or alias.name
        inner = _file(path.parent / alias.name) if path is not None and path.name == "__init__.py" else None
        if inner is not None and not _is_surface(path):
            module.names[bound] = Imported(inner.resolve(), None, False, module.span(alias))
            pending.append((f"{dotted}.{alias.name}", inner))
        elif path is None or _is_surface(path):
            module.names[bound] = Imported(None, alias.name, _is_surface(path), module.span(alias))
        else:
            module.names[bound] = Imported(path.resolve(), alias.name, False, module.span(alias))
            pending.append((dotted or path.stem, path))


def _bind(module: Module, pending: list[tuple[str, Path]], report: Report) -> None:
    for node in module.tree.body:
        match node:
            case ast.ImportFrom():
                _bind_import(module, node, pending, report)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                if isinstance(module.names.get(node.name), ast.FunctionDef | ast.ClassDef):
                    report.add(
                        "duplicate-name",
                        f"`{node.name}` is defined twice in this module",
                        module.span(node),
                        fix="give one of them another name",
                    )
                module.names[node.name] = node
            case ast.Assign(targets=[target]):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for name in names:
                    if isinstance(name, ast.Name):
                        module.names[name.id] = node
            case ast.AnnAssign(target=ast.Name(id=name)):
                module.names[name] = node
            case _:
                pass


def read_modules(source: str | Path | ModuleType, report: Report) -> tuple[str, dict[Path, Module]]:
    """Every module of a specification, by resolved path, in load order: the named ones, then what they import."""
    name, pending = files_of(source, report)
    modules: dict[Path, Module] = {}
    while pending:
        dotted, path = pending.pop(0)
        key = path.resolve()
        if key in modules or _is_surface(path):
            continue
        try:
            text = path.read_text(encoding="utf-8-sig")  # with a mark of byte order, as some editors write it
            tree = ast.parse(text, filename=str(path))
        except (UnicodeDecodeError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            span = Span(str(path), 1, 0, 1, 1)
            report.add("not-python", f"this cannot be read: {why}", span, fix="save it as UTF-8 where you may read it")
            continue
        except SyntaxError as error:
            span = Span(str(path), error.lineno or 1, (error.offset or 1) - 1, error.lineno or 1, error.offset or 1)
            report.add("not-python", f"this is not Python: {error.msg}", span, fix="correct the syntax")
            continue
        module = Module(dotted, path, tree, text.splitlines())
        modules[key] = module
        _bind(module, pending, report)
    for module in modules.values():
        _check_imports(modules, module, report)
    return name, modules


def _words() -> set[str]:
    """What the language's own package offers, read as source like everything else."""
    found: set[str] = set()
    for file in ("surface.py", "__init__.py"):
        for node in ast.parse((HERE / file).read_text(encoding="utf-8")).body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    found.add(name)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    found.add(name)
                case ast.ImportFrom(names=names):
                    found |= {alias.asname or alias.name for alias in names}
                case _:
                    pass
    return found


def _check_imports(modules: dict[Path, Module], module: Module, report: Report) -> None:
    words: set[str] = set()
    for bound in module.names.values():
        if not isinstance(bound, Imported) or bound.name is None:
            continue
        if bound.surface:
            words = words or _words()
            known = words
        elif bound.module in modules:
            known = set(modules[bound.module].names)
        else:
            continue
        if bound.name not in known:
            close = nearest(bound.name, known)
            report.add(
                "unknown-import",
                f"there is no `{bound.name}` to import",
                bound.span,
                "a word of the language, or a name that the module binds",
                f"did you mean `{close}`?" if close else "",
            )


def defined_name(modules: dict[Path, Module], module: Module, name: str) -> str:
    """What a name is called where it is defined (imports may rename it)."""
    while isinstance(bound := module.names.get(name), Imported) and bound.module in modules and bound.name is not None:
        module, name = modules[bound.module], bound.name
    return name


def resolve(modules: dict[Path, Module], module: Module, name: str) -> tuple[Module, ast.AST] | Imported | None:
    """What a name of a module stands for: (defining module, statement), an outside import, or None where unbound.

    A module of the specification imported as a whole is an Imported with name None.
    """
    seen = 0
    while True:
        bound = module.names.get(name)
        if bound is None:
            return None
        if not isinstance(bound, Imported):
            return module, bound
        if bound.module is None or bound.name is None or bound.module not in modules or seen > 20:
            return bound
        module, name, seen = modules[bound.module], bound.name, seen + 1
