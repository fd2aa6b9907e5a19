"""The specification: what is allowed, written once, in Python that reads like the sentence it formalises.

lang        the language: declare, parse, check, lower; and its meaning as ordinary Python
ownership   the ownership discipline: state, events, rules
designs     engine designs whose steps perform ownership events

Everything else is derived from it. It imports the standard library only, and nothing of the other packages.
"""
