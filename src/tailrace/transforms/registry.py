"""Finds transforms and predicates by name: by Debezium's or Kafka Connect's class, or by a step's short name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any, TypeVar

from tailrace.config import Config
from tailrace.config.kinds import FLAG, TEXT, optional
from tailrace.config.options.events import PREDICATE_NAMES, PREDICATES_FAMILY, TRANSFORM_NAMES, TRANSFORMS_FAMILY
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.resolve import Problem
from tailrace.model.change import ChangeBatch
from tailrace.transforms.classes import APACHE, CONNECTOR, PREDICATES, SHORT, TRANSFORMS
from tailrace.transforms.route import Route
from tailrace.transforms.settings import Given, SettingsError, setting
from tailrace.transforms.transform import Predicate, Stage, Transform

_T = TypeVar("_T")
# Entry points of transforms that a connector or an installed package has: a class name, and a function of Given.
GROUP = "tailrace.transforms"
_OF_A_CONNECTOR = re.compile(r"io\.debezium\.connector\.\w+\.")

_WRAPPING = (
    _TYPE := setting("type", TEXT, required=True),
    _PREDICATE := setting("predicate", optional(TEXT)),
    _NEGATE := setting("negate", FLAG, "false"),
)
_WRAPPING_NAMES = frozenset(option.name for option in _WRAPPING)


def stages(config: Config) -> list[Stage]:
    """The transforms of the connector's properties `transforms`, `transforms.*`, `predicates`, `predicates.*`.

    Raises SettingsError naming every problem.
    """
    outcomes = [
        _tried(_given(config, TRANSFORMS_FAMILY.named(alias).name + "."), config) for alias in config[TRANSFORM_NAMES]
    ]
    problems = [problem for each in outcomes if isinstance(each, SettingsError) for problem in each.problems]
    if problems:
        raise SettingsError(problems)
    return [each for each in outcomes if isinstance(each, Stage)]


def _tried(given: Given, config: Config) -> Stage | SettingsError:
    try:
        return _stage(given, config)
    except SettingsError as error:
        return error


def is_router(transform: Transform) -> bool:
    """Whether a transform may give records of several tables one topic; one of a package may do so, too."""
    from tailrace.transforms.logical_table import ToLogicalTopicRouter
    from tailrace.transforms.scripting import ContentBasedRouter

    return isinstance(transform, Route | ToLogicalTopicRouter | ContentBasedRouter) or not is_known(transform)


def is_known(transform: Transform) -> bool:
    """Whether it is one of ours, and not one of an installed package."""
    return type(transform).__module__.startswith(f"{__package__}.")


def check(config: Config) -> Iterator[Problem]:
    """What is wrong with the transforms of a configuration; nothing is connected or read."""
    try:
        stages(config)
    except SettingsError as error:
        yield from error.problems


# Checks of properties that are added to a connector's own where events are made of its changes.
CHECKS = (check,)


@dataclass(frozen=True)
class Single:
    """A transform as a step of a pipeline."""

    stage: Stage

    @staticmethod
    def of(**settings: Any) -> Single:
        """From `type`, a class or a short name, and the transform's own settings. Raises ConfigError.

        `predicate` is a mapping here: the predicate's type, and its settings.
        """
        condition = settings.pop("predicate", None)
        stage = _stage(Given("", {name: _text(value) for name, value in settings.items()}), None)
        if condition is None:
            return Single(stage)
        given = Given("predicate.", {name: _text(value) for name, value in dict(condition).items()})
        negate = _text(settings.get("negate", "false")).strip().lower() == "true"
        return Single(Stage(stage.transform, _predicate_of(given), negate))

    def keep(self, batch: ChangeBatch) -> ChangeBatch:
        """A transform sees records, not changes."""
        return batch

    def topic(self, topic: str) -> str:
        """A transform sees records, not topics alone."""
        return topic


def staged(steps: Iterable[object]) -> Iterator[Stage]:
    """A pipeline's steps that act on records; filters have acted on changes before."""
    for step in steps:
        if isinstance(step, Single):
            yield step.stage
        elif isinstance(step, Route):
            yield Stage(step)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(config: Config, prefix: str) -> Given:
    low = prefix.lower()
    values = {name[len(low) :]: text for name, text in config.given.items() if name.lower().startswith(low)}
    return Given(prefix, values, config[COMPAT_FAULTS])


def _stage(given: Given, config: Config | None) -> Stage:
    wrapping = Given(given.prefix, {n: text for n, text in given.values.items() if n.lower() in _WRAPPING_NAMES})
    read = wrapping.read(_WRAPPING)
    own = {name: text for name, text in given.values.items() if name.lower() not in _WRAPPING_NAMES}
    settings = replace(given, values=own)
    transform = _made(TRANSFORMS, read[_TYPE], settings, "transform")
    name = read[_PREDICATE]
    if not name:
        return Stage(transform)
    return Stage(transform, _predicate(given, name, config), read[_NEGATE])


def _predicate(given: Given, name: str, config: Config | None) -> Predicate:
    if config is None or name not in config[PREDICATE_NAMES]:
        all_names = "" if config is None else ", ".join(config[PREDICATE_NAMES])
        remedy = (
            f"known predicates: {all_names}" if all_names else f"name it in predicates and set predicates.{name}.type"
        )
        raise given.problem("predicate", f"there is no predicate {name!r}", remedy)
    return _predicate_of(_given(config, PREDICATES_FAMILY.named(name).name + "."))


def _predicate_of(settings: Given) -> Predicate:
    kind = next((text for key, text in settings.values.items() if key.lower() == "type"), None)
    if not kind:
        raise settings.problem("type", "A value is required")
    rest = {key: text for key, text in settings.values.items() if key.lower() != "type"}
    return _made(PREDICATES, kind, Given(settings.prefix, rest), "predicate")


def _installed(name: str, what: str) -> Callable[[Given], Any] | None:
    """The transform that a package, or one of our connectors, offers under this name."""
    entries = [] if what != "transform" else [*entry_points(group=GROUP, name=name)]
    return entries[0].load() if entries else None


def _made(makers: Mapping[str, Callable[[Given], _T]], name: str, given: Given, what: str) -> _T:
    name = name.strip()
    name = SHORT.get(name, f"{APACHE}predicates.{name}" if f"{APACHE}predicates.{name}" in makers else name)
    made = makers.get(_OF_A_CONNECTOR.sub(CONNECTOR, name)) or _installed(name, what)
    if made is None:
        names = {each.rpartition(".")[2]: each for each in makers}
        near = difflib.get_close_matches(name.rpartition(".")[2], names, n=1, cutoff=0.6)
        remedy = f"did you mean {names[near[0]]}?" if near else f"known are {', '.join(makers)}"
        raise given.problem("type", f"unknown {what} {name!r}; Java classes cannot be loaded", remedy)
    return made(given)
