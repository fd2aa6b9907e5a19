"""Machine code of generated texts, kept in a folder of the user's so that a second run need not compile.

The folder is `$KVSAN_CACHE`, else `kvsan` below the user's cache folder; where it cannot be written, a temporary one.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any  # llvmlite and numpy carry no types that help here

PUBLIC = ("sweep", "spread", "store", "keep", "rehash", "canonical")


class NoCompiler(Exception):
    """llvmlite or numpy is not installed: `pip install kvsan[explore]`."""


def folder() -> Path:
    """Where machine code lies."""
    given = os.environ.get("KVSAN_CACHE")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvsan"
    target = base / "explore"
    try:
        target.mkdir(parents=True, exist_ok=True)
        if os.access(target, os.W_OK):
            return target
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="kvsan-explore-"))


class Module:
    """The functions of one text, on numpy arrays and numbers. They run without the interpreter's lock."""

    def __init__(self, code: bytes) -> None:
        import numpy as np
        from llvmlite import binding as llvm

        self.np: Any = np
        empty = llvm.parse_assembly("")
        self._engine: Any = llvm.create_mcjit_compiler(empty, _machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.sweep, self.spread, self.store, self.keep, self.rehash, self.canonical = map(self._function, PUBLIC)

    def _function(self, name: str) -> Callable[..., int]:
        engine = self._engine  # the code lives as long as what may call it
        address = engine.get_function_address(name)
        array = self.np.ndarray

        kinds: dict[int, Callable[..., int]] = {}

        def call(*arguments: Any) -> int:
            assert engine is not None
            given = [a.ctypes.data if isinstance(a, array) else int(a) for a in arguments]
            known = kinds.get(len(given))
            if known is None:
                known = kinds[len(given)] = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))(address)
            return known(*given)

        return call


def _machine() -> Any:
    """This machine as a target; an engine takes it for its own."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True, reloc="pic"
    )


def build(source: str) -> Module:
    """The module of this text. Raises NoCompiler."""
    try:
        compiler = version("llvmlite")
        from llvmlite import binding as llvm

        version("numpy")
    except ModuleNotFoundError as error:
        raise NoCompiler("llvmlite and numpy are not installed") from error
    here = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    translator = Path(__file__).with_name("machine.py").read_bytes()
    digest = hashlib.sha256(f"{compiler} {here}\n{source}".encode() + translator).hexdigest()[:20]
    path = folder() / f"{digest}.o"
    if not path.exists():
        code = compiled(source)
        written = path.with_suffix(f".{os.getpid()}.tmp")
        written.write_bytes(code)
        written.replace(path)  # never half a file, whoever else writes it
    return Module(path.read_bytes())


def compiled(source: str, level: int = 2) -> bytes:
    """The object code of a text."""
    from kvsan.checker.explore.machine import translate
    from llvmlite import binding as llvm

    machine = _machine()
    module = llvm.parse_assembly(translate("explore", source, frozenset(PUBLIC)))
    module.verify()
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code = machine.emit_object(module)
    assert isinstance(code, bytes)
    return code
