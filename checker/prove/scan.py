"""What a Z3 term is made of, each part looked at once: the library's own objects cost ten times the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any  # z3 is untyped

import z3

Term = Any


@dataclass
class Scanner:
    """parts: the numbers of a term's parts. named: the terms that are no built-in operation, by number. kept: holds
    what was looked at, so that no number is given twice."""

    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    named: dict[int, Term] = field(default_factory=dict)
    found: dict[int, tuple[int, ...]] = field(default_factory=dict)
    kept: list[Term] = field(default_factory=list)

    def within(self, root: Term) -> tuple[int, ...]:
        """The numbers of the constants and entries in a term, parts before wholes."""
        key = root.get_id()
        if key not in self.found:
            if key not in self.parts:
                self._look(root)
            seen: dict[int, None] = {}
            out: list[int] = []
            stack = [(key, False)]
            while stack:
                at, done = stack.pop()
                if done:
                    out.append(at)
                elif at not in seen:
                    seen[at] = None
                    if at in self.named:
                        stack.append((at, True))
                    stack.extend((p, False) for p in reversed(self.parts[at]))
            self.found[key] = tuple(out)
        return self.found[key]

    def _look(self, root: Term) -> None:
        self.kept.append(root)
        context, stack = root.ctx.ref(), [root.ast]
        while stack:
            ast = stack.pop()
            key = z3.Z3_get_ast_id(context, ast)
            if key in self.parts:
                continue
            if z3.Z3_get_ast_kind(context, ast) != z3.Z3_APP_AST:
                self.parts[key] = ()
                continue
            app = z3.Z3_to_app(context, ast)
            inner = [z3.Z3_get_app_arg(context, app, k) for k in range(z3.Z3_get_app_num_args(context, app))]
            self.parts[key] = tuple(z3.Z3_get_ast_id(context, p) for p in inner)
            if z3.Z3_get_decl_kind(context, z3.Z3_get_app_decl(context, app)) == z3.Z3_OP_UNINTERPRETED:
                self.named[key] = z3.z3._to_expr_ref(ast, root.ctx)
            stack += inner
