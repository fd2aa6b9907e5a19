"""Proofs: what holds of a design for any number of blocks and branches.

system     a design, its facts and what has a fixed size
terms      the functional form as Z3 terms; templates and their instances
step       one step as terms: guard, obligations, the state after by substitution
counts     counters, and the two lemmas on which they rest
induction  what holds before a step holds after it
example    a failed step, told with what matters
premise    its start, as a condition for the explorer
initial    the start states
reach      whether a failed step is a bug or a missing fact, by the explorer
prove      the one call

A second opinion, which is told none of the facts:

witness    one arbitrary block and branch: entries of the state, and the steps as Horn clauses
views      what the abstraction sees of a value
flat       terms without functions
alike      what of that is settled by how many steps were taken, or by something else that is seen
spacer     the question to Spacer
cover      what the abstraction reaches, one by one, where Spacer has no answer
stands     the check of the answer, and its words
second     the one call
bounded    a small scope, so many steps: one more oracle for the explorer

What we refused: one formula for a whole finite scope, which gave no answer where many small queries take milliseconds;
and a model of the designs written for the solver, which would prove something about itself.
"""
