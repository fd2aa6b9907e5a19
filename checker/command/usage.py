"""A command that cannot be carried out as it was given."""

from __future__ import annotations


class Refused(Exception):
    """Bad usage: the message says what is wrong and what to do. Exit code 2."""
