"""How often each rule was judged, and what a log lacks for the rules it could not show."""

from __future__ import annotations

from kvsan.spec.ownership.accesses import SHOWN_BY

from .outcome import RuleCoverage
from .recorded import kinds_of
from .replay import Replay


def coverage_of(replay: Replay, occurring: frozenset[str]) -> dict[str, RuleCoverage]:
    """Per rule: checked, not exercised though its events occur, or not checkable for want of `needs`."""
    return {name: rule_coverage(replay, name, occurring) for name in replay.rules}


def rule_coverage(replay: Replay, name: str, occurring: frozenset[str]) -> RuleCoverage:
    checked, unknown = replay.checked[name], replay.unknown[name]
    if checked:
        return RuleCoverage(checked, "checked", unknown)
    if name in SHOWN_BY:
        lacking = [group for group in SHOWN_BY[name] if not occurring & set(group)]
        if not lacking:
            return RuleCoverage(0, "not_exercised", unknown)
        return RuleCoverage(0, "not_checkable", unknown, tuple(sorted({kind for group in lacking for kind in group})))
    needs: set[str] = set()
    for obligation in replay.machine.obligations:
        if obligation.rule != name:
            continue
        if obligation.silenced:
            needs |= {kind for variable in obligation.silenced for kind in replay.silenced[variable]}
        elif not set(kinds_of(obligation.event)) & occurring:
            needs |= set(kinds_of(obligation.event))
        else:
            return RuleCoverage(0, "not_exercised", unknown)
    return RuleCoverage(0, "not_checkable", unknown, tuple(sorted(needs)))
