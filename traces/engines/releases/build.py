"""Put the Python files of one released engine in a folder: `vllm-0.4.2` becomes `DIR/vllm-0.4.2/vllm/*.py`.

Only the control plane is wanted, so the wheel is fetched without its needs and everything but Python source is
dropped. pip chooses the wheel; a wheel for another platform or Python serves as well, because nothing compiled runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# Old releases have no wheel for a new Python, and none for another machine. Nothing compiled runs, so any wheel serves:
# what pip picks for this interpreter, else one for these.
TAGS = ("manylinux1", "manylinux2014", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34", "manylinux_2_35")
ELSEWHERE = [f"--platform={tag}_x86_64" for tag in TAGS]
ATTEMPTS: tuple[list[str], ...] = (
    [],
    ["--only-binary=:all:", "--python-version=3.11", *ELSEWHERE],
    ["--only-binary=:all:", "--python-version=3.12", *ELSEWHERE],
)


def split_release(release: str) -> tuple[str, str]:
    """`vllm-0.6.4.post1` is package `vllm`, version `0.6.4.post1`. Raises ValueError when there is no version."""
    package, dash, version = release.rpartition("-")
    if not dash or not version[:1].isdigit():
        raise ValueError(f"{release!r} names no release: write PACKAGE-VERSION, such as vllm-0.4.2")
    return package, version


def download(package: str, version: str, folder: Path) -> Path:
    """Fetch one archive with pip. Raises RuntimeError with pip's last words when no attempt succeeds."""
    problem = ""
    for attempt in ATTEMPTS:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *attempt]
        done = subprocess.run(
            [*command, "-d", str(folder), f"{package}=={version}"], capture_output=True, text=True, check=False
        )
        archives = [path for path in folder.iterdir() if path.is_file()]
        if done.returncode == 0 and archives:
            return archives[0]
        problem = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip said nothing"
    raise RuntimeError(f"{package}=={version} could not be fetched: {problem}")


def python_files(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Python sources of a wheel or a source archive, by their path inside it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield PurePosixPath(name), wheel.read(name)
        return
    with tarfile.open(archive) as source:
        for member in source:
            content = source.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
            if content is not None:
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), content.read()


def build(release: str, into: Path) -> Path:
    """Build `into/release` unless it is there; returns the folder to put on the import path."""
    package, version = split_release(release)
    target = into / release
    if target.is_dir():
        return target
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".building-") as scratch:
        downloads, unpacked = Path(scratch, "archive"), Path(scratch, "unpacked")
        downloads.mkdir()
        for path, content in python_files(download(package, version, downloads)):
            if path.is_absolute() or ".." in path.parts:
                raise RuntimeError(f"{release}: the archive names a file outside itself: {path}")
            file = unpacked / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        unpacked.rename(target)  # complete or absent: an interrupted build leaves nothing that looks finished
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", nargs="+", help="PACKAGE-VERSION, such as vllm-0.4.2")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="each release gets a folder here")
    arguments = parser.parse_args()
    for release in arguments.release:
        print(build(release, arguments.into))


if __name__ == "__main__":
    main()
