"""Replay: a recorded log against the rules.

check      one log in, one outcome out
replay     the loop: events are performed on the ledger, failures become findings, findings taint
feed       from the lists of a log to single events; `names`, `ids`: from its names to dense ids
recorded   which facts a log can show at all; `kinds` looks which events occur
because    the earlier facts that clash with a finding
coverage   how often each rule was judged, and what a log lacks for the others
taint      what is not trusted any more after a breach
life       every event about one block or branch; `again`: the command that shows a finding again
suppress   findings that somebody lives with
program, emit*, layout   the lowered events as Python source, and the state that it runs on
terms, unknown           three-valued judgement, where a log's past is unknown
outcome, wording         what was found, as data, and events in words

Chosen: events become generated straight-line Python over lists and small dicts, because a log's events are many and
each is cheap. Refused: interpreting the lowered form for each event, and a compiled replay now: it would need a
compiler on the machine of whoever checks a log of ten lines. Dense ids keep that way open.
"""
