"""A hook sees every call, changes none, and fails alone."""

from __future__ import annotations

import pytest
from kvsan.traces.engines import hooks
from kvsan.traces.engines.hooks import Names, after, wrap


class Engine:
    def add(self, left: int, right: int = 1) -> int:
        return left + right


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[Engine]:
    monkeypatch.setattr(hooks.WATCH, "broken", False)
    return type("Fresh", (), {"add": Engine.add})


def test_a_hook_sees_the_arguments_and_the_result(engine: type[Engine]) -> None:
    seen = []
    after(engine, "add", lambda self, result, *args, **kwargs: seen.append((result, args, kwargs)))
    assert engine().add(2, right=3) == 5
    assert seen == [(5, (2,), {"right": 3})]


def test_a_failing_hook_ends_the_recording_and_not_the_engine(
    engine: type[Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def hook(self: object, result: int, *args: int) -> None:
        calls.append(result)
        raise RuntimeError("ours")

    after(engine, "add", hook)
    assert (engine().add(1), engine().add(2)) == (2, 3)
    assert calls == [2]
    assert capsys.readouterr().err.count("the recorder failed and has stopped; the engine goes on") == 1


def test_a_method_is_hooked_once(engine: type[Engine]) -> None:
    for _ in range(2):
        wrap(engine, "add", lambda original, self, *args: original(self, *args) + 10)
    assert engine().add(1) == 12


def test_the_engines_own_error_passes_through(engine: type[Engine]) -> None:
    after(engine, "add", lambda self, result, *args: None)
    with pytest.raises(TypeError):
        engine().add("a", 1)  # type: ignore[arg-type]


def test_a_forgotten_name_is_given_out_anew() -> None:
    names = Names("r")
    assert [names.of(7), names.of(8), names.of(7)] == ["r0", "r1", "r0"]
    names.forget(7)
    assert (names.known(7), names.of(7)) == (None, "r2")
