"""Resolves given properties to a Config: parses every value, and reports all problems in one error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import cast

from tailrace.config.dialects import from_mapping
from tailrace.config.kinds import InvalidValue, T
from tailrace.config.misspelt import Elsewhere, Foreign, meant
from tailrace.config.option import HIDDEN, Option, OptionStatus, OptionTable, without_salt
from tailrace.config.options.runtime import CUSTOM_SANITIZE_PATTERN
from tailrace.errors import ConfigError, without_passwords
from tailrace.javalike.patterns import compile_pattern
from tailrace.model.table_id import TableNaming
from tailrace.override import override

log = logging.getLogger(__name__)

SANITIZE = (
    r".*secret$|.*password$|.*sasl\.jaas\.config$|.*basic\.auth\.user\.info|.*registry\.auth\.client-secret"
    # Beyond the reference's: what families without effect may hold.
    r"|.*token$|.*api\.?key$|.*\.keystore\.key$|.*request\.headers?\..*"
)
_PLAIN = TableNaming()
_NEVER = "what selects or hides data is never ignored"
_said: set[str] = set()


@dataclass(frozen=True)
class Problem:
    """What is wrong with a property, in Debezium's words if it has any, and how to fix it."""

    name: str
    message: str
    remedy: str | None = None

    @override
    def __str__(self) -> str:
        return f"{self.name}: {self.message}" + (f" ({self.remedy})" if self.remedy else "")


Check = Callable[["Config"], Iterable[Problem]]


@dataclass(frozen=True, repr=False)
class Config:
    """A connector's resolved properties. A property that the connector does not have is a KeyError.

    `given` holds the properties as given under their canonical names, secrets included; `warnings` what is said
    of them, `secrets` the names never to show whatever the sanitize pattern says. `tables` are captured or not
    whatever the filters say: what was added or removed since the start. `steps` are the pipeline's, as text. `naming`
    is how names of tables are read.
    Picklable; repr hides secrets.
    """

    values: Mapping[str, object]
    given: dict[str, str] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    secrets: frozenset[str] = frozenset()
    _: KW_ONLY
    tables: tuple[tuple[str, bool], ...] = ()
    steps: str = "[]"
    naming: TableNaming = _PLAIN

    def __getitem__(self, option: Option[T]) -> T:
        """The value of a property; of one that is not given, the default or what its kind has without a value."""
        return cast(T, self.values[option.name])

    def __contains__(self, option: Option[object]) -> bool:
        """Whether the connector has the property, and, of a family, whether it is given."""
        return option.name in self.values

    def get(self, option: Option[T], otherwise: T) -> T:
        """The value of a property, `otherwise` where the connector has no such property."""
        return cast(T, self.values.get(option.name, otherwise))

    def need(self, option: Option[T | None]) -> T:
        """The value of a property that others require. Raises TypeError if it has none: a check let that through."""
        value = self[option]
        if value is None:
            raise TypeError(f"{option.name} has no value")
        return value

    def is_given(self, option: Option[object]) -> bool:
        """Whether the configuration has the property, be it with its default."""
        return option.name in self.given

    def members(self, family: Option[T]) -> dict[str, T]:
        """The values of a family's properties by their names, which have the case that they are given in."""
        head = family.head
        # Of several hundred names few begin so, and a look at the beginning takes a tenth of that at the whole.
        named = [name for name in self.values if name[: len(head)].lower() == head]
        return {name: cast(T, self.values[name]) for name in named if family.matches(name)}

    def within(self, prefix: str) -> Config:
        """The settings of a part, which its options name without the prefix. Families have it as it is given."""
        if prefix not in self._parts:
            start, size = f"{prefix}.".lower(), len(prefix) + 1
            values, given = (
                {name[size:]: each for name, each in of.items() if name[:size].lower() == start}
                for of in (self.values, self.given)
            )
            self._parts[prefix] = Config(values, cast("dict[str, str]", given))
        return self._parts[prefix]

    @cached_property
    def _parts(self) -> dict[str, Config]:
        """Parts that were asked for: each encoder asks for some, and there are several hundred properties."""
        return {}

    def shown(self) -> dict[str, str]:
        """`given` with every secret masked, for logs."""
        masked = compile_pattern(self[CUSTOM_SANITIZE_PATTERN] or SANITIZE)
        return {
            without_salt(name): HIDDEN if name in self.secrets or masked.fullmatch(name) else without_passwords(value)
            for name, value in self.given.items()
        }

    @override
    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.shown().items())})"


def resolve(
    properties: Mapping[str, object],
    table: OptionTable,
    checks: Iterable[Check] = (),
    naming: TableNaming = _PLAIN,
    elsewhere: Elsewhere = lambda name: None,
) -> Config:
    """The checked Config of a connector's properties.

    `checks` look at properties together and run only when each is valid alone. `elsewhere` knows the properties of
    other connectors. Raises ConfigError naming every problem.
    """
    reading = _Reading(table, elsewhere)
    for name, value in from_mapping(properties).items():
        reading.take(name, value)
    values = reading.values()
    config = Config(
        values,
        {name: text for name, (_, text) in reading.given.items()},
        tuple(reading.warnings),
        frozenset(name for name, (option, _) in reading.given.items() if option.secret),
        naming=naming,
    )
    if not reading.problems:
        reading.problems += [problem for check in checks for problem in check(config)]
    if reading.problems:
        raise ConfigError(_report(reading.problems))
    for note in reading.notes:
        _say(logging.INFO, str(note))
    return config


def log_warnings(config: Config) -> None:
    """Log what the properties are warned of, for who runs a query; commands print it."""
    for warning in config.warnings:
        _say(logging.WARNING, str(warning))


class _Reading:
    """The given properties under their canonical names, and what is to be said about them."""

    def __init__(self, table: OptionTable, elsewhere: Elsewhere) -> None:
        self.table = table
        self._elsewhere = elsewhere
        self.given: dict[str, tuple[Option[object], str]] = {}
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.notes: list[Problem] = []
        self._old_names: dict[str, str] = {}

    def take(self, name: str, value: str) -> None:
        named, protecting = self.table.find(name), meant(name, self.table)
        if named is None or protecting is not None:
            foreign = self._elsewhere(name)
            if foreign is not None:
                self._take_foreign(name, foreign, protecting)
                return
        if protecting is not None:
            remedy = f"did you mean {protecting.name}? {_NEVER}: correct or remove it"
            self.problems.append(Problem(_shown(name, protecting), "unknown property", remedy))
            return
        if named is None:
            near = self.table.nearest(name)
            remedy = f"did you mean {near}?" if near else "remove it"
            self.warnings.append(Problem(without_salt(name), "unknown property, ignored", remedy))
            return
        option, alias = named
        canonical = name if option.is_family else option.name
        if alias is not None:
            value = alias.form(alias.values.get(value.strip().lower(), value))
            self.warnings.append(Problem(alias.name, "deprecated property", f"use {option.name}"))
            if canonical in self.given:
                return
            self._old_names[canonical] = alias.name
        else:
            self._old_names.pop(canonical, None)
        self.given[canonical] = (option, self._today(option, value))

    def _take_foreign(self, name: str, foreign: Foreign, protecting: Option[object] | None) -> None:
        """What is like a property that protects, or means the same as one here, is an error as a misspelt name is."""
        counterpart = foreign.counterpart(self.table)
        remedy = f"here it is {counterpart.name}" if counterpart else "remove it"
        if protecting is None and (counterpart is None or not counterpart.protects):
            self.warnings.append(Problem(without_salt(name), f"{foreign.whose}, ignored", remedy))
            return
        self.problems.append(Problem(_shown(name, protecting), foreign.whose, f"{remedy}; {_NEVER}"))

    def _today(self, option: Option[object], value: str) -> str:
        today = option.old_values.get(value.strip().lower())
        if today is None:
            return value
        self.warnings.append(Problem(option.name, f"deprecated value {value.strip()}", f"use {today}"))
        return today

    def values(self) -> dict[str, object]:
        """The value of every property: parsed from the text given, else from the default."""
        values = dict(self.table.unset)
        for name, (option, text) in self.given.items():
            if text.strip() or not option.kind.blank_is_unset:
                self._read(name, option, text, values)
        for option in self.table:
            if option.required and not str(values[option.name] or "").strip() and not self._is_faulty(option.name):
                self.problems.append(Problem(option.name, "A value is required", option.note))
        return values

    def _read(self, name: str, option: Option[object], text: str, values: dict[str, object]) -> None:
        shown = self._old_names.get(name) or option.shown(name)
        if option.status is OptionStatus.REFUSED:
            self.problems.append(Problem(shown, "this property is not supported", option.note))
            return
        try:
            value = option.kind.parse(text)
        except InvalidValue as invalid:
            self.problems.append(Problem(shown, invalid.message, invalid.remedy))
            return
        if option.excluded_by in self.given and self.given[option.excluded_by][1].strip():
            self.problems.append(Problem(shown, f'"{option.excluded_by}" is already specified', "give one of the two"))
        if option.status is OptionStatus.CONNECT:
            ignored = Problem(shown, f"has no effect, {option.note}", option.instead)
            matters = option.instead is not None and text.strip() != option.default
            (self.warnings if matters else self.notes).append(ignored)
        values[name] = value

    def _is_faulty(self, name: str) -> bool:
        return any(problem.name == self._old_names.get(name, name) for problem in self.problems)


def _shown(name: str, protecting: Option[object] | None) -> str:
    """An unknown name as a text may show it: a salt may be part of one like that of a secret family."""
    return ".".join(name.split(".")[:3]) + "..." if protecting is not None and protecting.secret else without_salt(name)


def _report(problems: list[Problem]) -> str:
    if len(problems) == 1:
        return str(problems[0])
    return f"{len(problems)} properties are wrong" + "".join(f"\n  - {problem}" for problem in problems)


def _say(level: int, text: str) -> None:
    """Log a text once in a process: a source is resolved again for every batch."""
    if text not in _said:
        _said.add(text)
        log.log(level, text)
