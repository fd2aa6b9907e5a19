"""A design in a scope as the input of another model checker: the same states, the same steps, the same verdict.

subject        what is exported: the sliced steps of one scope, its start states, what is exchangeable in it
names          one name for each thing, apart from the words of the target language
promela        a Promela model for SPIN: `promela_expr`, `promela_step`
tla            a TLA+ module and its configuration for TLC: `tla_expr`, `tla_step`, `tla_let`, `tla_types`
bounds         how large a value can be: what needs no check; `pointwise`: loops that TLA+ says in one expression

Both are made from the lowered form that the explorer compiles, after the slice, so that a count that differs is a
mistake of one of the three checkers and never a difference of models. We refused to export the design before the slice:
it reads better, but has variables that no verdict depends on, and other counts. What a target cannot hold exactly (a
set wider than its integers) is refused, never cut.

A step that breaks a rule is reported and not expanded, as in the explorer. A step that leaves its domain (an index out
of range, `some` of None) is an error of the checker that runs it, under whatever name it has there; the explorer calls
it `defined`.
"""
