"""Proofs: what holds of a design for any number of blocks and branches.

system     a design, its facts and what has a fixed size
terms      the functional form as Z3 terms; templates and their instances
step       one step as terms: guard, obligations, the state after by substitution
counts     counters, and the two lemmas on which they rest
induction  what holds before a step holds after it
example    a failed step, told with what matters
initial    the start states
reach      whether a failed step is a bug or a missing fact, by the explorer
prove      the one call

What we refused: one formula for a whole finite scope, which gave no answer where many small queries take milliseconds;
and a model of the designs written for the solver, which would prove something about itself.
"""
