"""The ownership discipline: what a log of block events may show.

state        blocks, branches, pins, identities
rules        the rules, each with Source, Catches, Except, Deviates
ledger       moves that several events share
blocks       alloc, free, alloc_failed, pin, unpin, ref, pool
branches     admit, grow, reserve, fork, map, unmap, window, finish, preempt, propose, accept, second views
contents     write, read, copy, invalidate
identities   seal, hit, evict, the published stream
quiescence   quiescent
disciplines  which engine generation obeys which rules

Where the wording of a rule left a choice, this is what was chosen, and why:

- Sets of slots are values (`Set[Slot]`), so that a write costs the same whatever it covers. Without them a prefill
  would cost its slots, and agreement its owners.
- Agreement is one set of slots for each block: joins narrow it, and it begins anew with a sole owner. Keeping the
  owners' pairwise agreements would cost their number at every leave.
- `quiescent` looks at every block (`@settling`): leaks cannot be counted along without a counter for each way to leak.
- An obligation whose branch owes it later (a seal's writes, what a failed call took) is judged at the event that makes
  it due, against what stands then.
- What no event shows is unknown only where recorders are known to leave it out (`evidence`): a log without pins says
  that there were none, a log without writes says nothing of contents.
"""
