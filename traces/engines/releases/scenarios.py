"""Record one scenario of the catalogue in one release.

python -m kvsan.traces.engines.releases.scenarios vllm-4764 --engine-dir DIR/vllm-0.4.2 --out LOG
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvsan.traces.engines.releases.build import split_release
from kvsan.traces.engines.releases.catalogue import SCENARIOS
from kvsan.traces.engines.releases.standins import open_release
from kvsan.traces.record import Recorder


@dataclass(frozen=True)
class Log:
    """One log of the corpus: a scenario in one release, as it is or corrected."""

    scenario: str
    release: str
    corrected: bool = False

    @property
    def broken(self) -> bool:
        return self.release in SCENARIOS[self.scenario].faulty and not self.corrected

    @property
    def path(self) -> Path:
        """Its place in `traces/corpus`."""
        version = split_release(self.release)[1]
        name = f"{self.scenario}-{version}{'-corrected' if self.corrected else ''}.jsonl"
        return Path("reject" if self.broken else "accept", name)


def logs() -> list[Log]:
    """Every log that is recorded from a release. A fault that no release is without is corrected by hand beside it."""
    found = []
    for name, scenario in SCENARIOS.items():
        found += [Log(name, release) for release in scenario.faulty + scenario.fixed]
        found += [Log(name, release, corrected=True) for release in scenario.faulty if scenario.corrected]
    return found


def record(log: Log, engine_dir: Path, out: Path) -> None:
    """Drive the scenario in the release at `engine_dir` and write its log.

    Raises ValueError when the folder is no release this scenario is about, or has nothing to correct.
    """
    scenario = SCENARIOS[log.scenario]
    if log not in logs():
        about = ", ".join(scenario.faulty + scenario.fixed)
        raise ValueError(f"{log.scenario} is about {about}, not {log.release}{' corrected' if log.corrected else ''}")
    engine, version = split_release(log.release)
    open_release(engine_dir, scenario.packages, scenario.unused)
    module = __spec__.name if __spec__ else __name__
    flag = " --corrected" if log.corrected else ""
    provenance: dict[str, Any] = {
        "x_provenance": scenario.issue,
        "x_command": f"python -m {module} {log.scenario}{flag} --engine-dir {log.release} --out {out.name}",
        "x_expect": "VIOLATED" if log.broken else "HOLDS",
        "x_rule": scenario.rule,
        "x_by": "recorded, then corrected" if log.corrected else "recorded",
    }
    if log.broken:
        provenance["x_line"] = scenario.line
    header = {"started": "empty", **scenario.header, **provenance}
    with Recorder(out, engine=engine, version=version, **header) as recorder:
        drive = scenario.corrected if log.corrected else scenario.drive
        assert drive is not None
        drive(recorder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Record one public fault, or its fix, from a release.")
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--engine-dir", type=Path, required=True, help="folder made by the build command")
    parser.add_argument("--out", type=Path, required=True, help="log to write: .jsonl, .jsonl.gz or .jsonl.zst")
    parser.add_argument("--corrected", action="store_true", help="without the fault, where no release is")
    arguments = parser.parse_args()
    log = Log(arguments.scenario, arguments.engine_dir.name, arguments.corrected)
    record(log, arguments.engine_dir, arguments.out)


if __name__ == "__main__":
    main()
