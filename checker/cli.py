"""The `kvsan` command: options and help. What the commands do is in `checker/command`, imported when one is run."""

from __future__ import annotations

import os
import sys
from _thread import interrupt_main
from pathlib import Path
from threading import Timer
from typing import Annotated, NoReturn

import typer
from kvsan.checker.command.sink import Color, Sink
from kvsan.checker.command.usage import Refused
from kvsan.checker.lab import Policy
from kvsan.checker.report.formats import Format, Plain

DEFECT = 3
"""Exit code where kvsan itself fails: there is no verdict, which is UNKNOWN and never success."""

app = typer.Typer(
    name="kvsan",
    help="Sanitizer and model checker for KV-cache block ownership in LLM engines.",
    epilog="""\b
Examples:
  kvsan record --out run.jsonl -- python serve.py    record an engine
  kvsan check run.jsonl                              check what it did
  kvsan rules exclusive_write                        what a rule says, and why
  kvsan explore tail_copy --set branches=3           search a design for a shortest counterexample
  kvsan export tail_copy --to tla                    the same design for another model checker""",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

CHECK_EXAMPLES = """\b
Examples:
  kvsan check run.jsonl                          replay a log against the rules
  kvsan check run.jsonl --until 42 --block 7     the life of block 7 up to line 42, and what is wrong with it
  kvsan check run.1.jsonl run.2.jsonl            segments of one log, or several logs
  zstd -dc run.jsonl.zst | kvsan check -         from standard input (.gz and .zst are also read as they are)
  kvsan check run.jsonl --require all            UNKNOWN unless every rule was checked
  kvsan check run.jsonl -f sarif -o run.sarif    for a code-scanning service

\b
Exit code: 0 HOLDS, 1 VIOLATED, 2 bad usage or unreadable or broken input, 3 UNKNOWN, 130 interrupted.
Of several logs the worst counts: 1 over 2 over 3 over 0.

\b
A suppression file has one suppression a line, with its reason:
  exclusive_write engine=vllm version=0.3.* branch=beam-* -- fixed upstream in vllm#1556
Keys: engine, version, file, block, branch (globs) and line (N or N-M)."""


@app.command(epilog=CHECK_EXAMPLES)
def check(
    logs: Annotated[list[str], typer.Argument(metavar="LOG", help="Logs: files, globs, or - for standard input.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="How the report is written.")] = Format.text,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report there, not to stdout.")
    ] = None,
    until: Annotated[
        int | None, typer.Option(min=1, metavar="LINE", help="Replay up to this line, counted through all segments.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(min=0, metavar="B", help="Show every event that touched this block, and its findings.")
    ] = None,
    pool: Annotated[str, typer.Option(metavar="POOL", help="The pool of --block.")] = "gpu",
    branch: Annotated[
        str | None, typer.Option(metavar="R", help="Show every event that names this branch, and its findings.")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE|all", help="UNKNOWN where this rule was never checked. Repeatable."),
    ] = None,
    suppress: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Findings to live with, see below. Repeatable.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress; in text, failures and verdicts only.")
    ] = False,
    color: Annotated[Color, typer.Option(help="Color the text report; auto heeds NO_COLOR.")] = Color.auto,
    witness: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save there, for each race, a log in which its accesses are turned round."),
    ] = None,
    no_order: Annotated[
        bool, typer.Option("--no-order", help="Do not judge the order of device work: faster on a huge log.")
    ] = False,
) -> None:
    """Replay logs against the rules, and say what holds.

    A violation is shown with both facts: the event, and the earlier event that it clashes with. What the log cannot
    show is said, not guessed.
    """
    from kvsan.checker.command.check import Request, run

    require_, suppress_ = tuple(require or ()), tuple(suppress or ())
    request = Request(
        tuple(logs),
        format,
        output,
        until,
        block,
        pool,
        branch,
        require_,
        suppress_,
        quiet,
        color,
        witness,
        not no_order,
    )
    raise typer.Exit(run(request))


@app.command(
    epilog="""\b
Examples:
  kvsan explore tail_copy                                every state of its default scope
  kvsan explore tail_copy --set branches=4 --set blocks=7 --symmetry none
  kvsan explore tail_copy --scope two_branches --mutant append_without_copy
  kvsan explore my_design.py:MyDesign                    a design of your own
  kvsan explore tail_copy --simulate 20 --save walk.jsonl    random walks; the last one as a log
  kvsan explore tail_copy --mutant free_twice --save cex.mmd    the counterexample as a sequence diagram

\b
Exit code: 0 HOLDS, 1 VIOLATED, 2 bad usage, 3 UNKNOWN (a limit was reached), 130 interrupted."""
)
def explore(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change the scope. Repeatable.")
    ] = None,
    scope: Annotated[str, typer.Option(metavar="NAME", help="A named scope of the design.")] = "",
    mutant: Annotated[str, typer.Option(metavar="NAME", help="The design with one decision wrong.")] = "",
    symmetry: Annotated[
        str, typer.Option(metavar="none|blocks|full", help="Members that stand for each other, where that is sound.")
    ] = "full",
    lints: Annotated[bool, typer.Option("--lints", help="Judge lints too.")] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Do not judge this rule. Repeatable.")
    ] = None,
    limit_states: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop at so many states.")] = None,
    limit_memory: Annotated[str, typer.Option(metavar="SIZE", help="Stop at so much memory for states.")] = "4G",
    limit_depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="Expand no deeper.")] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the counterexample there: .jsonl a log, .itf.json, .mmd.")
    ] = None,
    simulate: Annotated[int | None, typer.Option(min=1, metavar="N", help="N random walks instead.")] = None,
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Steps of a random walk at most.")] = 50,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the random walks.")] = 0,
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    liveness: Annotated[
        bool, typer.Option("--liveness", help="Whether whatever has begun ends, under weak fairness; small scopes.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Search by the interpreter: slow, and shares no code.")
    ] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Count what each require refuses and passes, and each obligation.")
    ] = False,
    threads: Annotated[
        int, typer.Option(min=0, metavar="N", help="Threads that expand states; 0: one a core. The report is the same.")
    ] = 0,
) -> None:
    """Explore every state of a design, or find a shortest way to break a rule.

    States are compared whole, and searched breadth first. The counterexample is a table of steps, with what each
    changes. What no rule, guard, invariant or witness depends on is left out of the states: where it goes past its
    range, only --simulate sees it, which performs whole steps.
    """
    from kvsan.checker.command.explore import Request, run

    limits = (limit_states, limit_memory, limit_depth)
    rest = (*limits, format == Plain.json, save, simulate, depth, seed, quiet, plain, liveness, coverage, threads)
    request = Request(design, tuple(set_ or ()), scope, mutant, symmetry, lints, tuple(without or ()), *rest)
    raise typer.Exit(run(request))


@app.command(
    epilog="""\b
Examples:
  kvsan mutants tail_copy                              the catalog, and every require dropped in named scopes
  kvsan mutants paged_cow --no-guards
  kvsan mutants my_design.py --set blocks=3            guards dropped in this scope only

\b
Exit code: 0 as the catalog says, 1 a difference or a guard that nothing explains, 2 bad usage, 3 UNKNOWN (a limit
was reached)."""
)
def mutants(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Drop guards in this scope. Repeatable.")
    ] = None,
    scope: Annotated[str, typer.Option(metavar="NAME", help="Drop guards in this named scope only.")] = "",
    guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Drop each require in turn.")] = True,
    symmetry: Annotated[
        str, typer.Option(metavar="none|blocks|full", help="Members that stand for each other, where that is sound.")
    ] = "full",
    limit_states: Annotated[int, typer.Option(min=1, metavar="N", help="Stop each search at so many.")] = 1_000_000,
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Search every mutant of a design, and the design without each of its guards.

    A guard is caught by a rule, or redundant where the same states are reached, be it by more transitions. What no
    rule notices is said.
    """
    from kvsan.checker.command.mutants import Request, run

    json = format == Plain.json
    raise typer.Exit(run(Request(design, tuple(set_ or ()), scope, symmetry, guards, limit_states, json, quiet)))


@app.command(
    epilog="""\b
Examples:
  kvsan review tail_copy                       tail_copy.html and tail_copy.md here
  kvsan review paged_cow --out reviews
  kvsan review my_design.py:MyDesign --no-proof

\b
Exit code: 0 all that was asked holds, 1 a rule is broken or a wrong decision is not caught, 2 bad usage, 3 UNKNOWN (a
limit was reached, or a step is not proved). The files are written in each case but 2."""
)
def review(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the two files go.")] = Path(),
    limit_states: Annotated[int, typer.Option(min=1, metavar="N", help="Stop each search at so many.")] = 5_000_000,
    proof: Annotated[
        bool | None,
        typer.Option(
            "--proof/--no-proof",
            help="Prove it too; needs the extra `prove`. Default: where facts stand beside the design.",
            show_default=False,
        ),
    ] = None,
    mutants: Annotated[bool, typer.Option(help="Search its wrong decisions too.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Write the review of a design: one page for a browser, and the same as Markdown.

    What it is, the rules in force, what was explored and proved, its wrong decisions with their shortest
    counterexamples, the blocks it needs, and what is not covered.
    """
    from kvsan.checker.command.review import Request, run

    raise typer.Exit(run(Request(design, out, limit_states, proof, mutants, quiet)))


@app.command(
    epilog="""\b
Examples:
  kvsan budget tail_copy
  kvsan budget paged_cow --set branches=3 --set blocks=6"""
)
def budget(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change the scope. Repeatable.")
    ] = None,
    scope: Annotated[str, typer.Option(metavar="NAME", help="A named scope of the design.")] = "",
    symmetry: Annotated[
        str, typer.Option(metavar="none|blocks|full", help="Members that stand for each other, where that is sound.")
    ] = "full",
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure how many blocks a design needs, over all reachable states.

    Peak, transient copies, the steady state, copies made, and the smallest pool in which branches never all wait for a
    block until one of them gives up.
    """
    from kvsan.checker.command.budget import Request, run

    raise typer.Exit(run(Request(design, tuple(set_ or ()), scope, symmetry, format == Plain.json, quiet)))


@app.command(
    epilog="""\b
Examples:
  kvsan export tail_copy --to dot --scope two_branches | dot -Tsvg > states.svg
  kvsan export tail_copy --to mermaid --depth 3
  kvsan export tail_copy --to graphml -o states.graphml      a networkx graph; needs the extra `graph`
  kvsan export tail_copy --to tla --out models               models/TailCopy.tla and models/TailCopy.cfg, for TLC
  kvsan export tail_copy --to promela --scope two_branches   tail_copy.pml here, for SPIN
  kvsan export tail_copy --to tla --mutant copy_too_few      a wrong design: TLC names the rule that it breaks

\b
A model has the steps that `kvsan explore` compiles, its docstrings as comments, and its rules and invariants by their
names. Where no rule is broken, expect
  TLC    distinct states = states, states generated = transitions + starts, as in explore with the same symmetry
  SPIN   states stored = states + 1 (before the start is set), as in explore --symmetry none
A step that breaks a rule is reported, as the invariant of that name in TLA+ and as the assertion !(breaks_NAME) in
Promela, and nothing follows it. Lints count as rules there, where --lints asks for them.

\b
Exit code: 0 written, 2 bad usage, or the form cannot hold it."""
)
def export(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    to: Annotated[str, typer.Option("--to", metavar="dot|graphml|mermaid|tla|promela", help="The form.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change the scope. Repeatable.")
    ] = None,
    scope: Annotated[str, typer.Option(metavar="NAME", help="A named scope of the design.")] = "",
    mutant: Annotated[str, typer.Option(metavar="NAME", help="The design with one decision wrong.")] = "",
    symmetry: Annotated[
        str, typer.Option(metavar="none|blocks|full", help="One state of each orbit, where that is sound.")
    ] = "full",
    depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="States of so many steps at most.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", metavar="PATH", help="The file of a graph, or the folder of a model (here)."
        ),
    ] = None,
    lints: Annotated[bool, typer.Option("--lints", help="Judge lints in a model too, as rules.")] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Leave a rule out of a model. Repeatable.")
    ] = None,
) -> None:
    """Write a design in a scope for other tools: its state graph, or a model for another checker.

    The graph is of a small scope: what no reader could follow is refused, with what to narrow. A model checks the
    design again with a program that shares nothing with this one: TLC, or SPIN.
    """
    from kvsan.checker.command.export import Request, run

    rest = (mutant, symmetry, depth, output, lints, tuple(without or ()))
    raise typer.Exit(run(Request(design, to, tuple(set_ or ()), scope, *rest)))


@app.command(
    epilog="""\b
Examples:
  kvsan prove tail_copy                              for any number of blocks and branches
  kvsan prove tail_copy --mutant append_without_copy     a step that is not inductive, and why
  kvsan prove tail_copy --without writer_is_alone    what one fact is needed for
  kvsan prove ownership --spacer                     a second opinion, which finds its own invariants

\b
Exit code: 0 HOLDS (proved), 1 VIOLATED, 2 bad usage, 3 UNKNOWN (not proved)."""
)
def prove(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="A design of ours, or path/to/file.py:Class.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change the scope. Repeatable.")
    ] = None,
    scope: Annotated[str, typer.Option(metavar="NAME", help="A named scope of the design.")] = "",
    mutant: Annotated[str, typer.Option(metavar="NAME", help="The design with one decision wrong.")] = "",
    without: Annotated[list[str] | None, typer.Option(metavar="FACT", help="Leave a fact out. Repeatable.")] = None,
    action: Annotated[list[str] | None, typer.Option(metavar="ACTION", help="Only this step. Repeatable.")] = None,
    spend: Annotated[
        int, typer.Option(min=1000, metavar="COUNT", help="For one query, in Z3's count, alike on every machine.")
    ] = 20_000_000,
    budget: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="By the clock, for everything; the rest is left.")
    ] = 600.0,
    spacer: Annotated[bool, typer.Option("--spacer", help="Ask Spacer, which is told no fact.")] = False,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="With --spacer, only this, and the counters it rests on. Repeatable."),
    ] = None,
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Prove the rules of a design by induction, for any number of blocks and branches.

    Positions, slots and the prompt are those of the scope. A step that is not inductive is shown with what matters, and
    the explorer looks for it in the scope.
    """
    from kvsan.checker.command.prove import Request, run

    rest = (spend, budget, format == Plain.json, quiet, spacer, tuple(rule or ()))
    request = Request(design, tuple(set_ or ()), scope, mutant, tuple(without or ()), tuple(action or ()), *rest)
    raise typer.Exit(run(request))


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  kvsan record -- python serve.py --model tiny
  kvsan record --out logs/run.jsonl.zst -- pytest tests/test_scheduler.py""",
)
def record(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The command, after --, unchanged.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="LOG", help="The log: .jsonl, .jsonl.gz or .jsonl.zst.")
    ] = Path("run.jsonl"),
) -> None:
    """Run a command with the recorder on. Its exit code is handed on; 2 where it succeeded and recorded nothing.

    kvsan has to be installed in the engine's own environment. One block manager makes one log: further ones go to
    run.2.jsonl and so on.
    """
    from kvsan.traces.engines.record_command import record as run

    raise typer.Exit(run(command, out))


@app.command(
    epilog="""\b
Examples:
  kvsan rules                  all of them
  kvsan rules free_once        one of them
  kvsan rules --format json    for programs"""
)
def rules(
    names: Annotated[list[str] | None, typer.Argument(metavar="RULE", help="Rules; default: all.")] = None,
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
) -> None:
    """Print the rules, with their sources.

    Each is a fact, with where it comes from, what it catches, where it does not hold, and what the model leaves out.
    """
    from kvsan.checker.command.listing import as_json, as_text, chosen

    found = chosen(names or ())
    Sink(None, format == Plain.text, Color.never).write((as_text if format == Plain.text else as_json)(found))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a log's lines.

    It is made from the records that the reader itself uses: version 1 of the trace format.
    """
    import json

    from kvsan.traces.schema import line_schema

    Sink(None, False, Color.never).write(json.dumps(line_schema(), indent=2) + "\n")


@app.command(
    epilog="""\b
Examples:
  kvsan lab --capacity 4 --stride 2              the cycle is larger than the cache: no hit
  kvsan lab --capacity 8 --stride 2 --time 60    it fits: every request hits after the first round"""
)
def lab(
    capacity: Annotated[int, typer.Option(min=0, metavar="C", help="Identities that the cache holds.")],
    stride: Annotated[int, typer.Option(min=1, metavar="S", help="The cycle has 4 S identities.")],
    time: Annotated[
        float, typer.Option(metavar="T", help="Seconds so far: 16 + floor(2 T) requests, 4096 at most.")
    ] = 0,
    policy: Annotated[Policy, typer.Option(help="What makes room.")] = Policy.lru,
    format: Annotated[Plain, typer.Option("--format", "-f", help="For people, or for programs.")] = Plain.text,
) -> None:
    """Run the cyclic working-set lab: an analogy for capacity, without ownership.

    Every run starts from an empty cache.
    """
    from kvsan.checker.command.lab import as_json, as_text
    from kvsan.checker.command.lab import lab as run

    done = run(capacity, stride, time, policy)
    Sink(None, format == Plain.text, Color.never).write((as_text if format == Plain.text else as_json)(done))


def show_version(wanted: bool) -> None:
    if wanted:
        from kvsan.checker.report.version import version

        print(f"kvsan {version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Sanitizer and model checker for KV-cache block ownership in LLM engines."""


def interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """An interrupt that comes while a term of the solver is given back is lost there: it comes again a moment later."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        Timer(0.05, interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)


def main() -> None:
    """The entry point. Every failure is a sentence and an exit code; KVSAN_DEBUG=1 shows the traceback of a defect."""
    sys.unraisablehook = interrupt_again
    try:
        app()
    except Refused as refused:
        fail(str(refused), 2)
    except SystemExit as done:
        # typer makes of an interrupt an exit that says nothing; a command that reports what it has exits by itself
        if isinstance(getattr(done.__context__, "__cause__", None), KeyboardInterrupt):
            fail("interrupted: there is no verdict", 130)
        raise
    except Exception as error:
        if os.environ.get("KVSAN_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        fail(
            f"a defect of kvsan, no verdict: {what}\n  fix       report it with the log; KVSAN_DEBUG=1 shows where",
            DEFECT,
        )


def fail(what: str, code: int) -> NoReturn:
    print(f"kvsan: {what}", file=sys.stderr)
    sys.exit(code)
