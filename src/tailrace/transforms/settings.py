"""The settings of a transform or a predicate: declared as options, read from the connector's properties or a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.faults import NO_FAULTS, Faults
from tailrace.config.kinds import InvalidValue, Kind, T, choice
from tailrace.config.option import Option, OptionTable
from tailrace.config.resolve import Problem
from tailrace.errors import ConfigError
from tailrace.javalike.date_format import DateFormat
from tailrace.override import override

Options = tuple[Option[object], ...]


class SettingsError(ConfigError):
    """Settings that a transform cannot take; `problems` are those by property."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n  - ".join(str(problem) for problem in problems))

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problems,)


def setting(name: str, kind: Kind[T], default: str | None = None, *, required: bool = False) -> Option[T]:
    """One setting."""
    return Option(name, kind, default, required=required)


def either(*values: str) -> Kind[str]:
    """One of some words, in any case."""
    return choice(*values)


@dataclass(frozen=True)
class Given:
    """Settings as given: `prefix` is the text before their names in the user's configuration.

    `faults` is compat.faults; a pipeline's own steps have none of the reference engine's.
    """

    prefix: str
    values: Mapping[str, str]
    faults: Faults = NO_FAULTS

    def problem(self, name: str, message: str, remedy: str | None = None) -> SettingsError:
        """A fault of one setting."""
        return SettingsError([Problem(self.prefix + name, message, remedy)])

    def date_format(self, name: str, pattern: str) -> DateFormat:
        """The pattern of one setting. Raises SettingsError."""
        try:
            return DateFormat.of(pattern)
        except ValueError as error:
            remedy = (
                "use the letters G, y, M, d, D, E, u, a, H, k, K, h, m, s, S, z, Z, X, and put texts in single quotes"
            )
            raise self.problem(name, str(error), remedy) from error

    def read(self, options: Iterable[Option[object]]) -> Config:
        """The settings by the options declared. Raises SettingsError."""
        table = OptionTable({"": tuple(options)})
        values = {option.name: option.unset() for option in table}
        problems: list[Problem] = []
        for name, text in self.values.items():
            declared = table.find(name)
            if declared is None:
                near = table.nearest(name)
                names = ", ".join(option.name for option in table) or "none"
                remedy = f"did you mean {near}?" if near else f"known settings: {names}"
                problems.append(Problem(self.prefix + name, "unknown setting of this transform", remedy))
            elif text.strip() or not declared[0].kind.blank_is_unset:
                try:
                    values[declared[0].name] = declared[0].kind.parse(text)
                except InvalidValue as invalid:
                    problems.append(Problem(self.prefix + name, invalid.message, invalid.remedy))
        faulty = {problem.name for problem in problems}
        problems += [
            Problem(self.prefix + option.name, "A value is required")
            for option in table
            if option.required
            and not str(values[option.name] or "").strip()
            and self.prefix + option.name not in faulty
        ]
        if problems:
            raise SettingsError(problems)
        return Config(values, dict(self.values))
