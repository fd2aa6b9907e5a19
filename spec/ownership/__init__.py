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
"""
