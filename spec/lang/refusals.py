"""Python that the language leaves out, and what to write instead."""

from __future__ import annotations

import ast

_LOOP = "loop over row(s.variable, first), or keep a counter"

UNSUPPORTED: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: ("`while`", _LOOP),
    ast.Break: ("`break`", "put an `if` around the rest of the loop's body"),
    ast.Continue: ("`continue`", "put an `if` around the rest of the loop's body"),
    ast.Lambda: ("a lambda", "write a @helper function"),
    ast.FunctionDef: ("a function inside a step (a closure)", "write a @helper function at module level"),
    ast.AsyncFunctionDef: ("an async function", "write a plain function"),
    ast.ClassDef: ("a class inside a step", "declare it at module level"),
    ast.Try: ("`try`", "guard with `require`, or test with `if`"),
    ast.Raise: ("`raise`", "use `require` for a guard, `obey` for an obligation"),
    ast.With: ("`with`", "write the statements one after the other"),
    ast.Assert: ("`assert`", "use `require` for a guard, `obey` for an obligation"),
    ast.Import: ("an import inside a step", "import at module level"),
    ast.ImportFrom: ("an import inside a step", "import at module level"),
    ast.Global: ("`global`", "declare a state variable"),
    ast.Nonlocal: ("`nonlocal`", "declare a state variable"),
    ast.Delete: ("`del`", "assign the default value, or reset(s, member) for all its entries"),
    ast.Match: ("`match`", "use if / elif"),
    ast.ListComp: ("a list comprehension", "loop over row(s.variable, first) as a statement"),
    ast.SetComp: ("a set comprehension", "build sets with span, only, |, & and -"),
    ast.DictComp: ("a dict comprehension", "declare a Map in the state class"),
    ast.GeneratorExp: ("a bare generator", "use it inside all(...) or any(...)"),
    ast.List: ("a list", "use a Map with a range as index, and its length"),
    ast.Tuple: ("a tuple as a value", "bind the parts: a, b = x, y"),
    ast.Dict: ("a dict", "declare a Map in the state class"),
    ast.Set: ("a set display", "write only(x), span(low, high) or empty()"),
    ast.JoinedStr: ("an f-string", "messages are literal; `{name}` in them is filled in later"),
    ast.NamedExpr: ("`:=`", "bind the name on a line of its own"),
    ast.Await: ("`await`", "a step is atomic"),
    ast.Yield: ("`yield`", "a step is atomic"),
    ast.YieldFrom: ("`yield from`", "a step is atomic"),
    ast.Starred: ("`*`", "write each argument"),
    ast.Slice: ("a slice", "name one entry, or use a Set built with span(low, high)"),
    ast.UnaryOp: ("this operator", "use `not` on bools; numbers are naturals"),
    ast.AnnAssign: ("a typed local name", "write name = value; its type follows"),
}
