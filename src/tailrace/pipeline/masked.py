"""Shows the properties of a pipeline without secrets, and takes secrets out of texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tailrace.config import Config
from tailrace.config.option import HIDDEN
from tailrace.errors import TailraceError
from tailrace.pipeline.definition import Definition, KafkaTarget, ReplicaTarget

# Names of properties that may hold a secret although no connector declares them, and user names with passwords in URLs.
_SECRET = re.compile(
    r".*(password|secret|token|credential|api\.?key|private|jaas|(account|access|sas)[._-]?key|keystore\.key|user\.info"
    r"|request\.headers?\.).*",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
# A shorter secret would be found in every text.
_LEAST = 3


def is_secret_name(name: str) -> bool:
    """Whether a property of that name may hold a secret."""
    return _SECRET.fullmatch(name) is not None


def shown(definition: Definition, config: Config) -> dict[str, str]:
    """The connector's properties without secrets; a reference such as `${env:NAME}` is shown as it is written."""
    written = {name.lower(): value for name, value in definition.written().items()}
    # Under another name than the written one, a property is known by what the reference stands for.
    referenced = {value for name, value in definition.properties().items() if "${" in written.get(name.lower(), "")}
    classes = definition.entry.classes
    properties = {"name": definition.name, "connector.class": classes[0] if classes else definition.entry.name}
    for name, value in config.shown().items():
        raw = written.get(name.lower(), "")
        if value == HIDDEN or is_secret_name(name) or ("${" not in raw and value in referenced):
            properties[name] = HIDDEN
        else:
            properties[name] = _USER_INFO.sub(f"{HIDDEN}@", raw if "${" in raw else value)
    return properties


def without_secrets(text: str, definition: Definition, config: Config) -> str:
    """A text without the values of all secrets of a pipeline, and without what stands before an @ in URLs."""
    return _without(text, secrets(definition, config))


def secrets(definition: Definition, config: Config) -> list[str]:
    """The values of all secrets of a pipeline. Raises ConfigError if their files cannot be read."""
    return sorted(set(_secrets(definition, config)), key=len, reverse=True)


def masked(error: TailraceError, hidden: Sequence[str]) -> TailraceError:
    """The same error without some secrets: of Spark's and of Java's nobody knows what they quote."""
    parts = [None if text is None else _without(text, hidden) for text in (error.where, error.remedy)]
    return TailraceError(_without(error.what, hidden), where=parts[0], remedy=parts[1])


def _without(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    return _USER_INFO.sub(f"{HIDDEN}@", text)


def _secrets(definition: Definition, config: Config) -> Iterator[str]:
    visible = shown(definition, config)
    target = definition.sink.target
    others: Mapping[str, object] = {}
    if isinstance(target, KafkaTarget):
        others = target.properties
    elif isinstance(target, ReplicaTarget):
        others = {**target.options, **target.catalog}
    pairs = [
        *((value, visible.get(name, HIDDEN) == HIDDEN) for name, value in config.given.items()),
        *((str(value), is_secret_name(name)) for name, value in others.items()),
    ]
    for value, is_hidden in pairs:
        if is_hidden and len(value) >= _LEAST:
            yield value
