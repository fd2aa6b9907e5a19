"""Every mistake has its exact text: a bad specification beside what the compiler says of it.

`python tests/lang/test_diagnostics.py` writes the texts anew; read the difference before you keep it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from kvsan.spec.lang.diagnostics import SpecError, render
from kvsan.spec.lang.load import load

GOLDEN = Path(__file__).parents[1] / "golden" / "lang"
BAD = sorted(GOLDEN.glob("*.py"))


def mistakes(path: Path) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load(path)
    return caught.value


def text(path: Path) -> str:
    return "\n\n".join(render(d, path.name) for d in mistakes(path).diagnostics) + "\n"


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_a_bad_specification_gets_its_exact_text(path: Path) -> None:
    assert text(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_the_file_is_named_after_its_mistake(path: Path) -> None:
    assert any(path.stem.startswith(d.code) for d in mistakes(path).diagnostics)


def test_every_kind_of_mistake_that_the_compiler_names_has_a_golden_pair() -> None:
    """Found in the sources: a code is the first argument of a report."""
    import re

    lang = Path(load.__code__.co_filename).parent
    source = "\n".join(p.read_text(encoding="utf-8") for p in lang.glob("*.py"))
    named = set(re.findall(r"(?:error|add)\(\s*\n?\s*\"([a-z-]+)\"", source))
    seen = {d.code for path in BAD for d in mistakes(path).diagnostics}
    assert named - seen - {"source-not-found"} == set()
    assert len(seen) >= 35


def test_a_module_without_a_source_file_is_refused() -> None:
    with pytest.raises(SpecError, match="the source of made_up is not on disk"):
        load(ModuleType("made_up"))
    with pytest.raises(SpecError, match="the source of no_such_module is not on disk"):
        load("no_such_module")


def test_a_caret_counts_characters_not_bytes(tmp_path: Path) -> None:
    text = (GOLDEN / "unknown-variable.py").read_text(encoding="utf-8")
    path = tmp_path / "wide.py"
    path.write_text(
        text.replace("s.hled[b] = False", 'advise(alloc_from_free, "größer" == s.hled[b], "")'), encoding="utf-8"
    )
    lines = next(render(d) for d in mistakes(path).diagnostics if d.code == "unknown-variable").splitlines()
    assert lines[4].index("^") == lines[3].index("s.hled")


def test_all_mistakes_of_a_file_are_reported_in_source_order() -> None:
    spans = [d.span for d in mistakes(GOLDEN / "unsupported-syntax.py").diagnostics]
    assert len(spans) > 15
    assert spans == sorted(spans)


if __name__ == "__main__":
    for bad in BAD:
        bad.with_suffix(".txt").write_text(text(bad), encoding="utf-8")
    sys.stdout.write(f"{len(BAD)} texts written\n")
