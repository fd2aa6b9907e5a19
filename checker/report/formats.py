"""The formats by name. A format's module is imported when it is chosen, so that the command starts quickly."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .view import View


class Format(StrEnum):
    """How an outcome is written."""

    text = "text"
    json = "json"
    sarif = "sarif"
    junit = "junit"
    html = "html"


class Plain(StrEnum):
    """How what is no outcome of a log is written."""

    text = "text"
    json = "json"


def render(chosen: Format, views: Sequence[View], brief: bool = False) -> str:
    """The outcomes in the format. brief: failures and verdicts alone, where the format is for people."""
    rendered: str = import_module(f"kvsan.checker.report.{chosen.value}").render(views, brief)
    return rendered
