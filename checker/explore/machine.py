"""Machine code from generated text: a small language with the syntax of Python, through LLVM.

Its values are 64-bit signed numbers that wrap, and arrays of them. A function has assignments, `if`, `while`, `for`
over `range` or `unrolled`, `break`, `continue`, `return` and calls of the functions above it; an array is a parameter
that is indexed, or a local `words(n)`. `and`, `or` and `x if c else y` evaluate all their parts, which is safe and
without branches: the generated text divides by nothing that may be zero. numba infers types first, which for the 5,000
lines of a large design takes it minutes; here there is nothing to infer, and LLVM's part takes seconds.

    unrolled(n)         a range whose turns are written out one after the other, for a small constant n
    words(n)            a local array of n numbers, not cleared
    array(a), halves(a) what lies at an address, as an array of words or of 32-bit halves
    lshr(a, n)          a shift that brings in zeros
    prefetch(array, i)  call an entry into the cache; never a fault
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from llvmlite import ir as llvm

WORD, BIT, HALF = llvm.IntType(64), llvm.IntType(1), llvm.IntType(32)
WIDTHS = {"Word": WORD, "Half": HALF}
"""What an array parameter may be annotated with; `Word` is meant where nothing stands."""


class NotInLanguage(Exception):
    """Text that the language does not have: an error of a generator of ours."""


@dataclass(frozen=True)
class Signature:
    """arrays: the width of each parameter that is an array, None for a number. results: numbers returned."""

    arrays: tuple[llvm.IntType | None, ...]
    results: int
    function: llvm.Function


@dataclass
class Module:
    """Functions and constants so far."""

    module: llvm.Module
    constants: dict[str, int] = field(default_factory=dict)
    tables: dict[str, llvm.GlobalVariable] = field(default_factory=dict)
    functions: dict[str, Signature] = field(default_factory=dict)
    written_out: int = 0

    def unrolled(self) -> llvm.MDValue:
        """A node of its own for a loop; see LOOP_NODE."""
        self.written_out += 1
        full = self.module.add_metadata(["llvm.loop.unroll.full"])
        return self.module.add_metadata([full, HALF(self.written_out)])

    def add(self, text: str, public: frozenset[str] = frozenset()) -> None:
        """Translate a text. public: functions that are called from outside."""
        for node in ast.parse(text).body:
            match node:
                case ast.FunctionDef():
                    _function(self, node, node.name in public)
                case ast.Assign([ast.Name(name)], ast.List(items)):
                    self._table(name, [int(ast.literal_eval(i)) for i in items])
                case ast.Assign([ast.Name(name)], value):
                    self.constants[name] = int(ast.literal_eval(value))
                case ast.Expr(ast.Constant()):
                    pass
                case _:
                    raise NotInLanguage(ast.unparse(node))

    def _table(self, name: str, numbers: list[int]) -> None:
        kind = llvm.ArrayType(WORD, len(numbers))
        made = llvm.GlobalVariable(self.module, kind, name)
        made.linkage, made.global_constant = "internal", True
        made.initializer = llvm.Constant(kind, [llvm.Constant(WORD, n) for n in numbers])
        self.tables[name] = made


LOOP_NODE = re.compile(r"^!(\d+) = !\{ (!\d+), i32 \d+ \}$", re.MULTILINE)
"""LLVM heeds the metadata of a loop where their first operand is the node itself, which llvmlite cannot write."""


def translate(name: str, text: str, public: frozenset[str]) -> str:
    """The text as an LLVM module. Raises NotInLanguage."""
    module = Module(llvm.Module(name))
    module.add(text, public)
    return LOOP_NODE.sub(r"!\1 = distinct !{ !\1, \2 }", str(module.module))


def _function(module: Module, node: ast.FunctionDef, public: bool) -> None:
    arrays = _arrays(module, node)
    results = max((_returned(n) for n in ast.walk(node) if isinstance(n, ast.Return)), default=0)
    out = llvm.VoidType() if not results else WORD if results == 1 else llvm.LiteralStructType([WORD] * results)
    kind = llvm.FunctionType(out, [WORD if a is None else a.as_pointer() for a in arrays])
    made = llvm.Function(module.module, kind, node.name)
    made.attributes.add("nounwind")
    inline = any(isinstance(d, ast.Name) and d.id == "inline" for d in node.decorator_list)
    made.attributes.add("alwaysinline" if inline else "noinline")
    if not public:
        made.linkage = "internal"
    for argument, array in zip(made.args, arrays, strict=True):
        if array is not None:
            argument.add_attribute("noalias")
    module.functions[node.name] = Signature(arrays, results, made)
    _Body(module, made, node, arrays, results).write()


def _arrays(module: Module, node: ast.FunctionDef) -> tuple[llvm.IntType | None, ...]:
    """Which parameters are arrays: those indexed, or passed on as one."""
    indexed = {n.value.id for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
        assert isinstance(call.func, ast.Name)
        if call.func.id == "prefetch" and isinstance(call.args[0], ast.Name):
            indexed.add(call.args[0].id)
        called = module.functions.get(call.func.id)
        for argument, array in zip(call.args, called.arrays if called else (), strict=False):
            if array is not None and isinstance(argument, ast.Name):
                indexed.add(argument.id)
    widths = []
    for a in node.args.args:
        given = a.annotation.id if isinstance(a.annotation, ast.Name) else "Word" if a.arg in indexed else ""
        widths.append(WIDTHS[given] if given else None)
    return tuple(widths)


def _returned(node: ast.Return) -> int:
    return 0 if node.value is None else len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1


@dataclass
class _Loop:
    onward: llvm.Block
    end: llvm.Block


class _Body:
    """The statements of one function. Names live on the stack here; LLVM puts them into registers."""

    def __init__(
        self,
        module: Module,
        function: llvm.Function,
        node: ast.FunctionDef,
        arrays: tuple[llvm.IntType | None, ...],
        results: int,
    ) -> None:
        self.module, self.function, self.node, self.results = module, function, node, results
        self.entry = function.append_basic_block("entry")
        self.places = llvm.IRBuilder(self.entry)
        self.out = llvm.IRBuilder(function.append_basic_block("body"))
        self.names: dict[str, llvm.Value] = {}
        self.arrays: dict[str, llvm.Value] = dict(module.tables)
        self.loops: list[_Loop] = []
        for argument, array, given in zip(node.args.args, arrays, function.args, strict=True):
            if array is not None:
                self.arrays[argument.arg] = given
            else:
                self.out.store(given, self._place(argument.arg))

    def write(self) -> None:
        first = self.out.block
        self.block(self.node.body)
        if not self.out.block.is_terminated:
            if self.results:
                self.out.unreachable()
            else:
                self.out.ret_void()
        self.places.branch(first)

    def _place(self, name: str) -> llvm.Value:
        if name not in self.names:
            self.names[name] = self.places.alloca(WORD, name=name)
        return self.names[name]

    # --- statements ---------------------------------------------------------------------------------------------------

    def block(self, block: list[ast.stmt]) -> None:
        for statement in block:
            if self.out.block.is_terminated:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("words"), [size])):
                count = self.module.constants.get(size.id) if isinstance(size, ast.Name) else ast.literal_eval(size)
                self.arrays[name] = self.places.alloca(WORD, int(count or 0), name=name)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("array" | "halves" as kind), [address])):
                width = WORD if kind == "array" else HALF
                self.arrays[name] = self.out.inttoptr(self.number(address), width.as_pointer(), name)
            case ast.Assign([target], value):
                self._assign(target, value)
            case ast.AugAssign(target, op, value):
                self._set(target, self._arith(op, self.number(target), self.number(value)))
            case ast.If(test, body, orelse):
                self._if(test, body, orelse)
            case ast.While(ast.Constant(True), body):
                self._while(None, body)
            case ast.While(test, body):
                self._while(test, body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range" | "unrolled" as kind), bounds), body):
                back = self._for(name, bounds, body)
                if kind == "unrolled":
                    back.set_metadata("llvm.loop", self.module.unrolled())
            case ast.Break():
                self.out.branch(self.loops[-1].end)
            case ast.Continue():
                self.out.branch(self.loops[-1].onward)
            case ast.Return(value):
                self._return(value)
            case ast.Expr(ast.Call() as call):
                self._call(call)
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case _:
                raise NotInLanguage(ast.unparse(node))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Tuple):
            self._set(target, self.number(value))
        elif isinstance(value, ast.Tuple):
            made = [self.number(v) for v in value.elts]
            for part, one in zip(target.elts, made, strict=True):
                self._set(part, one)
        else:
            assert isinstance(value, ast.Call)
            found = self._call(value)
            for n, part in enumerate(target.elts):
                self._set(part, self.out.extract_value(found, n))

    def _set(self, target: ast.expr, value: llvm.Value) -> None:
        match target:
            case ast.Name(name):
                self.out.store(value, self._place(name))
            case ast.Subscript(ast.Name(name), index):
                at = self._at(name, index)
                kind = at.type.pointee
                self.out.store(value if kind == WORD else self.out.trunc(value, kind), at)
            case _:
                raise NotInLanguage(ast.unparse(target))

    def _at(self, name: str, index: ast.expr) -> llvm.Value:
        array, number = self.arrays[name], self.number(index)
        if isinstance(array, llvm.GlobalVariable):
            return self.out.gep(array, [WORD(0), number], inbounds=True)
        return self.out.gep(array, [number], inbounds=True)

    def _if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then = self.function.append_basic_block("then")
        other = self.function.append_basic_block("else") if orelse else None
        end = self.function.append_basic_block("end")
        self.out.cbranch(self.truth(test), then, other or end)
        for arm, statements in ((then, body), (other, orelse)):
            if arm is not None:
                self.out.position_at_end(arm)
                self.block(statements)
                if not self.out.block.is_terminated:
                    self.out.branch(end)
        self.out.position_at_end(end)

    def _while(self, test: ast.expr | None, body: list[ast.stmt]) -> None:
        head, inside, end = (self.function.append_basic_block(n) for n in ("while", "turn", "done"))
        self.out.branch(head)
        self.out.position_at_end(head)
        if test is None:
            self.out.branch(inside)
        else:
            self.out.cbranch(self.truth(test), inside, end)
        self._turn(_Loop(head, end), inside, body)
        self.out.position_at_end(end)

    def _turn(self, loop: _Loop, inside: llvm.Block, body: list[ast.stmt]) -> None:
        self.loops.append(loop)
        self.out.position_at_end(inside)
        self.block(body)
        if not self.out.block.is_terminated:
            self.out.branch(loop.onward)
        self.loops.pop()

    def _for(self, name: str, bounds: list[ast.expr], body: list[ast.stmt]) -> llvm.Instruction:
        """The bounds are read once; the name is set at the head of each turn. Returns the way back to the head."""
        first = self.number(bounds[0]) if len(bounds) > 1 else WORD(0)
        stop = self.number(bounds[1 if len(bounds) > 1 else 0])
        step = self.number(bounds[2]) if len(bounds) > 2 else WORD(1)
        head, inside, onward, end = (self.function.append_basic_block(n) for n in ("for", "turn", "next", "done"))
        before = self.out.block
        self.out.branch(head)
        self.out.position_at_end(head)
        count = self.out.phi(WORD, name)
        count.add_incoming(first, before)
        self.out.store(count, self._place(name))
        self.out.cbranch(self.out.icmp_signed("<", count, stop), inside, end)
        self._turn(_Loop(onward, end), inside, body)
        self.out.position_at_end(onward)
        count.add_incoming(self.out.add(count, step, flags=("nsw",)), onward)
        back = self.out.branch(head)
        self.out.position_at_end(end)
        return back

    def _return(self, value: ast.expr | None) -> None:
        if value is None:
            self.out.ret_void()
        elif isinstance(value, ast.Tuple):
            made: llvm.Value = llvm.Constant(self.function.function_type.return_type, llvm.Undefined)
            for n, part in enumerate(value.elts):
                made = self.out.insert_value(made, self.number(part), n)
            self.out.ret(made)
        else:
            self.out.ret(self.number(value))

    # --- expressions --------------------------------------------------------------------------------------------------

    def number(self, node: ast.expr) -> llvm.Value:
        """The value as a number; a truth is 0 or 1."""
        value = self.value(node)
        return self.out.zext(value, WORD) if value.type == BIT else value

    def truth(self, node: ast.expr) -> llvm.Value:
        value = self.value(node)
        return value if value.type == BIT else self.out.icmp_signed("!=", value, WORD(0))

    def value(self, node: ast.expr) -> llvm.Value:
        match node:
            case ast.Constant(bool(value)):
                return BIT(int(value))
            case ast.Constant(int(value)):
                return WORD(_wrapped(value))
            case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
                return WORD(_wrapped(-value))
            case ast.Name(name):
                if name in self.module.constants and name not in self.names:
                    return WORD(_wrapped(self.module.constants[name]))
                return self.out.load(self._place(name))
            case ast.Subscript(ast.Name(name), index):
                found = self.out.load(self._at(name, index))
                return found if found.type == WORD else self.out.zext(found, WORD)
            case ast.UnaryOp(ast.Not(), operand):
                return self.out.not_(self.truth(operand))
            case ast.UnaryOp(ast.Invert(), operand):
                return self.out.not_(self.number(operand))
            case ast.UnaryOp(ast.USub(), operand):
                return self.out.neg(self.number(operand))
            case ast.BinOp(left, op, right):
                return self._arith(op, self.number(left), self.number(right))
            case ast.BoolOp(op, items):
                return self._junction(isinstance(op, ast.And), items)
            case ast.Compare(left, [op], [right]):
                return self.out.icmp_signed(SIGNS[type(op)], self.number(left), self.number(right))
            case ast.IfExp(test, body, orelse):
                return self.out.select(self.truth(test), self.number(body), self.number(orelse))
            case ast.Call():
                return self._call(node)
            case _:
                raise NotInLanguage(ast.unparse(node))

    def _junction(self, conjunction: bool, items: list[ast.expr]) -> llvm.Value:
        """By selection: a part that the others make meaningless does not count."""
        found = self.truth(items[-1])
        for item in reversed(items[:-1]):
            truth = self.truth(item)
            found = self.out.select(truth, found, BIT(0)) if conjunction else self.out.select(truth, BIT(1), found)
        return found

    def _arith(self, op: ast.operator, a: llvm.Value, b: llvm.Value) -> llvm.Value:
        """Naturals divide without a correction of signs; a shift counts modulo 64, as in the machine."""
        if isinstance(op, ast.LShift | ast.RShift) and not isinstance(b, llvm.Constant):
            b = self.out.and_(b, WORD(63))
        make = {
            ast.Add: self.out.add,
            ast.Sub: self.out.sub,
            ast.Mult: self.out.mul,
            ast.FloorDiv: self.out.udiv,
            ast.Mod: self.out.urem,
            ast.LShift: self.out.shl,
            ast.RShift: self.out.ashr,
            ast.BitAnd: self.out.and_,
            ast.BitOr: self.out.or_,
            ast.BitXor: self.out.xor,
        }[type(op)]
        return make(a, b)

    def _call(self, node: ast.Call) -> llvm.Value:
        assert isinstance(node.func, ast.Name)
        name, arguments = node.func.id, node.args
        match name:
            case "lshr":
                return self.out.lshr(self.number(arguments[0]), self.out.and_(self.number(arguments[1]), WORD(63)))
            case "min" | "max":
                a, b = map(self.number, arguments)
                return self.out.select(self.out.icmp_signed("<" if name == "min" else ">", a, b), a, b)
            case "prefetch":
                return self._prefetch(arguments)
        called = self.module.functions.get(name)
        if called is None:
            raise NotInLanguage(f"there is no function {name}")
        given = []
        for argument, array in zip(arguments, called.arrays, strict=True):
            if array is None:
                given.append(self.number(argument))
            else:
                assert isinstance(argument, ast.Name)
                given.append(self.arrays[argument.id])
        return self.out.call(called.function, given)

    def _prefetch(self, arguments: list[ast.expr]) -> llvm.Value:
        assert isinstance(arguments[0], ast.Name)
        at = self.out.gep(self.arrays[arguments[0].id], [self.number(arguments[1])])
        pointer = llvm.IntType(8).as_pointer()
        kind = llvm.FunctionType(llvm.VoidType(), [pointer, HALF, HALF, HALF])
        name = "llvm.prefetch.p0"
        found = self.module.module.globals.get(name) or llvm.Function(self.module.module, kind, name)
        return self.out.call(found, [self.out.bitcast(at, pointer), HALF(0), HALF(3), HALF(1)])


SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def _wrapped(number: int) -> int:
    low = number & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low
