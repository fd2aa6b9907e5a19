"""Search a design: every state of a scope, or a shortest way to break a rule. Compiled, exact, breadth first.

design   find a design, say what a scope of it means
slice    leave out what no verdict depends on
rest     variables that have their default between steps; with `known` and `facts`
recount  counters that no state stores, counted again
layout   where each variable lies in the words of a state; `packed` goes between words and plain states
words    those words in generated text, a name each or an array
emit     the step functions as text: `emit_expr`, `emit_step`, `anywhere`, `writer`; `kernel` is the loop around them
machine  the language of that text, made into machine code by LLVM
symmetry the symmetry that a model has, or what breaks it
canon    one state for each orbit under renaming: `colours` for branches, `sorting` for blocks; `raw` reads entries
module   the machine code, kept between runs
search   the search: levels, limits, statistics; `pieces` of a level in several threads, `store` of all states
path     the way to a state, found again
replay   a way performed on whole states by the interpreter
log      a way as a log in the trace format; `itf` for viewers of state machines, `sequence` as a diagram
coverage what each guard refuses and lets pass
mutants  the catalog searched; `guards`: each require dropped in turn
budget   peak, transient and steady blocks, copies, the smallest pool
graph    the state graph of a small scope, for networkx; `draw` as DOT, GraphML and Mermaid
plain    the same search by the interpreter; `simulate` random walks by it
explore  all of it in one call

We chose machine code from the lowered form, in words held in registers where they are few, and otherwise found by their
numbers, so that a text is as long in a wide scope as in a small one; stored nothing for counterexamples, which a
second look at the levels finds again; and generated loops instead of unrolled steps. The text goes to LLVM by a small
translator of our own: numba spends minutes on the types of a text that has one type. We refused hashing states to less
than themselves: an exploration that may have missed one proves nothing. An engine that needs scopes beyond memory would
change our mind about storing states whole, not about saying so.
"""
