"""Engine designs: state machines whose steps perform ownership events, and the same designs with one decision wrong.

tail_copy    the smallest machine with a shared writable tail; the yardstick of every search
paged_cow    PagedAttention and vLLM V0: forks share partial tails, copies are ordered as a schedule says
prefix_append_only  vLLM 0.9.1 V1: full blocks shared through a prefix cache, tables that only grow
speculative  drafts written before they are verified, and rolled back, over paged and over append-only tables
prefix_cow   vLLM V1 from 0.26: partial tails are hit and copied on write, and frees wait for a step
transfers    connectors of vLLM V1: loads, sends and a second tier, each under pins that outlive their request
lookahead    the state of `speculative`, and what its steps are made of
tails        the same of `prefix_cow`
pinning      the same of `transfers`
attention    what a branch reads
contents     ghosts: for which branches a slot is right, and at which place
prompt_contents  the same where every request has the same prompt
returns      how blocks go back to a pool with a prefix cache
device       order in the state: work under way, and what it is ordered after
batches      a step of several branches: what it does, and what is held until it is done
handles      order in the state: transfers under way, on no stream
start        the first state
settings     the scope of one search, as `--set` names it, and what it means for the specification
catalog      every design, its named scopes and its mutants

A mutant is a value of the constant `mutant`, read in the one guard or statement that it changes, so that a design and
its mutants are one text. What we refused: mutants as patches of the lowered form, which no reader could see in place;
and a machine in parts: who reviews a design reads its steps from top to bottom, so that they stand in one file, be it
longer than others, and what they are made of beside it.
"""
