"""Types in TLA+: the set of a type's values, and how a value is written."""

from __future__ import annotations

from kvsan.checker.explore.replay import LETTERS
from kvsan.checker.export.names import Names
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Value
from kvsan.spec.lang.symbolic import Sizes


class Types:
    """sorts: the constant of each sort that has members. members: their constants. limits: the constants of the ranges
    that were asked for."""

    def __init__(self, sorts: tuple[str, ...], sizes: Sizes, names: Names) -> None:
        self.names = names
        self.sorts = names.all(s for s in sorts if sizes.sorts.get(s))
        self.members = {
            s: [names.new(f"{LETTERS.get(s, s.lower())}{n}") for n in range(sizes.sorts[s])] for s in self.sorts
        }
        self.limits: dict[str, str] = {}

    def limit(self, parameter: str) -> str:
        if parameter not in self.limits:
            self.limits[parameter] = self.names.new("".join(p.capitalize() for p in parameter.split("_")))
        return self.limits[parameter]

    def domain(self, type_: ir.Type) -> str:
        """The set of a type's values."""
        match type_:
            case ir.BoolType():
                return "BOOLEAN"
            case ir.SortType(name):
                return self.sorts.get(name, "{}")
            case ir.ChoiceType(names=names):
                return "{" + ", ".join(f'"{n}"' for n in names) + "}"
            case ir.NatType(str(parameter), inclusive):
                return f"0 .. {self.limit(parameter)}" if inclusive else f"0 .. {self.limit(parameter)} - 1"
            case ir.SetType(element):
                assert element is not None
                inner_ = self.domain(element)
                return f"SUBSET {inner_}" if inner_.isidentifier() else f"SUBSET ({inner_})"
            case ir.OptionType(inner):
                return f"{self.domain(inner)} \\cup {{None}}"
            case _:
                raise AssertionError(f"{type_} has no set of values")

    def value(self, value: Value, type_: ir.Type) -> str:
        match type_:
            case _ if value is None:
                return "None"
            case ir.OptionType(inner):
                return self.value(value, inner)
            case ir.SetType(element):
                assert isinstance(value, frozenset) and element is not None
                return "{" + ", ".join(self.value(m, element) for m in sorted(value)) + "}"
            case ir.SortType(name):
                assert isinstance(value, int)
                return self.members[name][value]
            case ir.BoolType():
                return "TRUE" if value else "FALSE"
            case ir.ChoiceType(names=names):
                assert isinstance(value, int)
                return f'"{names[value]}"'
            case _:
                return str(value)
