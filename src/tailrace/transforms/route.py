"""The route step: rename topics by a regular expression, as Kafka Connect's RegexRouter does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tailrace.model.change import ChangeBatch


@dataclass(frozen=True)
class Route:
    """Renames a topic that `pattern` matches as a whole; any other keeps its name. Schema names stay as they are."""

    pattern: re.Pattern[str]
    template: str

    @staticmethod
    def of(regex: str, replacement: str) -> Route:
        """A route from Java's forms: `$1` or `${name}` in the replacement, `(?<name>...)` in the expression.

        Raises ValueError.
        """
        try:
            pattern = re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", regex))
            template = _template(replacement)
            # A template is only checked against its groups when it is expanded: do that now, not on the first event.
            re.compile(f"{pattern.pattern}|").sub(template, "")
        except (re.error, IndexError) as error:
            raise ValueError(f"regex {regex!r} with replacement {replacement!r}: {error}") from error
        return Route(pattern, template)

    def keep(self, batch: ChangeBatch) -> ChangeBatch:
        """A route drops nothing."""
        return batch

    def topic(self, topic: str) -> str:
        """The new name of a topic."""
        match = self.pattern.fullmatch(topic)
        return match.expand(self.template) if match else topic


def _template(replacement: str) -> str:
    literal = replacement.replace("\\", "\\\\")
    return re.sub(r"\$(?:(\d+)|\{(\w+)\})", lambda match: f"\\g<{match[1] or match[2]}>", literal)
