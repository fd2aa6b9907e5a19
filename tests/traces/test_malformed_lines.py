"""Each error has its golden pair: the bad line beside the exact text."""

import io
import json
from pathlib import Path

import pytest
from kvsan.traces.events import Quiescent
from kvsan.traces.read import open_log

GOLDEN = Path(__file__).parents[1] / "golden" / "traces"
HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "toy",
    "version": "1",
    "discipline": "paged_cow",
    "block_size": 4,
    "blocks": 8,
    "pools": {"cpu": {"blocks": 2}},
    "groups": {"1": {"block_size": 8}},
}
GOOD = '{"ev":"quiescent"}'


def pairs(name: str) -> list[tuple[str, str]]:
    """(line, text) of a golden file: a line, the text below it, an empty line."""
    entries = (GOLDEN / name).read_text("utf-8").split("\n\n")
    return [(line, text.strip("\n")) for line, _, text in (entry.lstrip("\n").partition("\n") for entry in entries)]


LINES = pairs("malformed_lines.txt")
HEADERS = pairs("malformed_headers.txt")


def problem_of(log: bytes, lines_before: int) -> str:
    """The text of a log's problem; so many events come before it."""
    stream = io.BytesIO(log)
    stream.name = "run.jsonl"
    opened = open_log(stream)
    events = [event for batch in opened.batches() for _, event in batch]
    assert events == [Quiescent()] * lines_before
    return str(opened.problem)


@pytest.mark.parametrize(("line", "text"), LINES, ids=[line[:60] for line, _ in LINES])
def test_a_malformed_line_is_explained_with_its_place_and_its_remedy(line: str, text: str) -> None:
    log = "\n".join([json.dumps(HEADER), GOOD, line, GOOD, ""])
    assert problem_of(log.encode(), 1) == text


@pytest.mark.parametrize(("line", "text"), HEADERS, ids=[line[:60] for line, _ in HEADERS])
def test_a_malformed_header_is_explained_with_its_place_and_its_remedy(line: str, text: str) -> None:
    assert problem_of(f"{line}\n{GOOD}\n".encode(), 0) == text


def test_there_are_at_least_25_kinds_of_malformed_lines() -> None:
    assert len({text.splitlines()[0] for _, text in LINES}) >= 25


BYTES = {
    b'{"ev":"free","block":3,"note":"\xff"}\n': "byte 0xff in column 32 is not UTF-8",
    b"\0\0\0\0\n": "the line is nothing but NUL bytes",
    b'{"ev":"free",\0"block":3}\n': "the line has a NUL byte in column 14",
    b"[" * 100_000 + b"\n": "the line is nested too deeply",
    b'{"ev":"free","block":' + b"9" * 5000 + b"}\n": "the line has a number that is out of range",
    b'{"ev":"free","block":3': "the file ends in the middle of this line",
    b'{"ev":"free","block":3}}': "something follows the event in column 24",
}


@pytest.mark.parametrize(("line", "what"), BYTES.items(), ids=list(BYTES.values()))
def test_a_line_that_is_no_text_is_explained(line: bytes, what: str) -> None:
    text = problem_of(json.dumps(HEADER).encode() + b"\n" + GOOD.encode() + b"\n" + line, 1)
    assert text.splitlines()[0].endswith(": " + what)
    assert "run.jsonl:3" in text.splitlines()[1]


def test_a_later_good_line_is_not_yielded_after_a_break() -> None:
    log = f"{json.dumps(HEADER)}\n{GOOD}\n{GOOD}\nnonsense\n{GOOD}\n"
    assert "run.jsonl:4" in problem_of(log.encode(), 2)
