"""Run one scenario inside an engine's virtual environment and record it.

python -m kvsan.traces.engines.scenarios_vllm fork_three --out fork_three.jsonl
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from kvsan.traces.engines.output import HEADER, PATH, recording
from kvsan.traces.engines.plugin import release

FAMILIES = ("v0", "v1", "live", "live_v1", "v1_cow", "live_v1_cow")


def scenarios() -> dict[str, Callable[[], None]]:
    """Every scenario by its full name, as `v0.fork_three`."""
    found: dict[str, Callable[[], None]] = {}
    for family in FAMILIES:
        module = importlib.import_module(f"kvsan.traces.engines.scenarios_{family}")
        found |= {f"{family}.{name}": scenario for name, scenario in module.SCENARIOS.items()}
    return found


def main(argv: list[str] | None = None) -> int:
    known = scenarios()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=known, metavar="NAME", help=f"one of {', '.join(known)}")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="the log to write, for one scenario")
    where.add_argument("--into", type=Path, help="the folder to write vllm-VERSION-NAME.jsonl into, for several")
    args = parser.parse_args(argv)
    if args.out and len(args.names) > 1:
        parser.error("--out takes one scenario; use --into for several")
    for name in args.names:
        record(name, known[name], args.out or args.into / log_name(name))
    return 0


def log_name(name: str) -> str:
    """`v0.fork_three` under vLLM 0.6.2 -> `vllm-0.6.2-v0-fork-three.jsonl`."""
    return f"vllm-{release()}-{name.replace('.', '-').replace('_', '-')}.jsonl"


def record(name: str, scenario: Callable[[], None], out: Path) -> None:
    """Run one scenario with the plugin on, as vLLM itself loads it.

    Raises: RuntimeError where the engine wrote no event.
    """
    out.unlink(missing_ok=True)
    os.environ[PATH] = str(out)
    os.environ[HEADER] = json.dumps(_header(name, scenario))
    importlib.import_module("vllm.plugins").load_general_plugins()
    with recording():
        scenario()
    if not out.exists():
        raise RuntimeError(f"{name}: the engine wrote no event")


def _header(name: str, scenario: Callable[[], None]) -> dict[str, object]:
    return {
        "x_command": f"python -m kvsan.traces.engines.scenarios_vllm {name}",
        "x_scenario": " ".join((scenario.__doc__ or name).split()),
        "x_expect": "HOLDS",
    } | rejected().get(name, {})


def rejected() -> dict[str, dict[str, object]]:
    """Header fields of the scenarios that show a fault, by full name."""
    modules = {family: importlib.import_module(f"kvsan.traces.engines.scenarios_{family}") for family in FAMILIES}
    return {
        f"{family}.{name}": fields
        for family, module in modules.items()
        for name, fields in getattr(module, "REJECTED", {}).items()
    }


if __name__ == "__main__":
    sys.exit(main())
