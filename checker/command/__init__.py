"""What the `kvsan` commands do, apart from how their options are written (`checker/cli`).

budget    how many blocks a design needs
check     logs in, one report out
listing   the rules with their labels, as text and as JSON
export    a design in the form of another tool; `export_model`: as the input of another model checker
lab       the capacity analogy, apart from ownership
mutants   what catches each design mistake, and what each require is there for
progress  the live line on a terminal
save      a way through a design in a file, in the form that its ending names
sink      where a report goes: a file, a terminal, a pipe that may close

What we refused: one exit code a log. Of several logs the worst counts, 1 over 2 over 3 over 0, because a violation is a
fact whatever could not be read besides. An interrupt is 130, as shells have it, whatever was found. A reader that goes
away (`| head`) changes no exit code: the logs are checked to the end in silence.
"""
