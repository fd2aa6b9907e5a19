"""Import a release's block manager without torch, ray and the rest of what its other parts need.

The modules named in `ABSENT` are served as empty stand-ins when they are not installed: any attribute is a class that
can be called, subclassed, subscripted and used as a decorator. They let `import torch` and annotations pass. Code that
computes with them gets nonsense, so only control-plane classes that hold no tensors are driven here. A package's own
`__init__` is skipped (`vllm/__init__.py` imports the whole engine); its submodules load as they are.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# fmt: off
ABSENT = frozenset({
    "aiohttp", "cachetools", "cbor2", "cloudpickle", "cpuinfo", "depyf", "fastapi", "filelock", "gguf",
    "huggingface_hub", "importlib_metadata", "numba", "numpy", "openai", "outlines", "pandas", "PIL",
    "prometheus_client", "psutil", "pynvml", "ray", "regex", "requests", "safetensors", "tokenizers", "torch",
    "torchvision", "tqdm", "transformers", "triton", "urllib3", "uvloop", "xxhash", "xformers", "yaml", "zmq",
})
# fmt: on


class StandInType(type):
    """Class-level attribute access, subscripts and unions all give stand-ins."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __getitem__(cls, key: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


class StandIn(metaclass=StandInType):
    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, *args: object, **kwargs: object) -> Any:
        # A decorator with arguments hands its function on; anything else gives another stand-in.
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else StandIn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()


def stand_in(name: str) -> Any:
    return StandInType(name, (StandIn,), {})


class StandInModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = stand_in(name)
        setattr(self, name, value)
        return value


class SkippedPackage(types.ModuleType):
    """A package without its `__init__`: its submodules are real, any other name is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            return stand_in(name)


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the modules named and everything below them."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parts = fullname.split(".")
        if not any(".".join(parts[:end]) in self._names for end in range(1, len(parts) + 1)):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def open_release(engine_dir: Path, packages: Iterable[str], unused: Iterable[str] = ()) -> None:
    """Make `engine_dir` importable, with the `__init__` of those of `packages` that it has skipped.

    `unused` are modules of the release itself that what is driven imports and never calls: stand-ins take their place.
    Raises FileNotFoundError when the folder has none of the packages, RuntimeError when another release is loaded
    already (two releases cannot share one process).
    """
    folders = {package: engine_dir.joinpath(*package.split(".")) for package in packages}
    if not any(folder.is_dir() for folder in folders.values()):
        raise FileNotFoundError(f"{engine_dir} holds none of {', '.join(folders)}: build it first")
    for package, folder in folders.items():
        if not folder.is_dir():
            continue
        loaded = sys.modules.get(package)
        if loaded is not None and list(getattr(loaded, "__path__", [])) != [str(folder)]:
            raise RuntimeError(f"another release of {package} is loaded: use one process per release")
        module = SkippedPackage(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
    sys.path.insert(0, str(engine_dir))
    sys.meta_path.insert(0, StandInFinder(frozenset(unused)))
    sys.meta_path.append(StandInFinder(ABSENT))  # last: an installed module wins
    importlib.invalidate_caches()
