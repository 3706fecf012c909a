"""Resolves references in values, as Connect does: `${env:NAME}`, `${file:PATH:KEY}`, `${dir:PATH:FILE}`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tailrace.errors import ConfigError

Parse = Callable[[str, str], Mapping[str, str]]

_REFERENCE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_-]*):([^}]*)\}")
_FORMS = "write ${env:NAME}, ${file:/path/of.properties:key} or ${dir:/folder:file}"


def filled(name: str, value: str, parse: Parse) -> str:
    """The value of a property with its references replaced; `parse` reads a .properties text.

    Raises ConfigError for what cannot be read. No error shows a value.
    """
    providers = {"env": _variable, "file": lambda name, key: _entry(name, key, parse), "dir": _content}

    def replaced(match: re.Match[str]) -> str:
        provider, key = match.groups()
        if provider not in providers:
            what = f"${{{provider}:...}} needs a config provider of Kafka Connect, which is not here"
            raise ConfigError(what, where=name, remedy=_FORMS)
        return providers[provider](name, key)

    return _REFERENCE.sub(replaced, value)


def files_in(text: str) -> list[Path]:
    """The files of which references in a text take values."""
    paths = list[Path]()
    for provider, key in _REFERENCE.findall(text):
        path, _, entry = key.rpartition(":")
        if path and entry and provider in ("file", "dir"):
            paths.append(Path(path) / entry if provider == "dir" else Path(path))
    return paths


def _variable(name: str, key: str) -> str:
    if key not in os.environ:
        raise ConfigError(f"the environment variable {key} is not set", where=name, remedy=f"export {key}=...")
    return os.environ[key]


def _entry(name: str, key: str, parse: Parse) -> str:
    path, entry = _parts(name, key)
    entries = parse(_read(name, path), str(path))
    if entry not in entries:
        raise ConfigError(f"{path} has no entry {entry}", where=name, remedy=f"write {entry}=... into it")
    return entries[entry]


def _content(name: str, key: str) -> str:
    folder, file = _parts(name, key)
    # A line's end, which editors append, is no part of a secret.
    return _read(name, folder / file).removesuffix("\n")


def _parts(name: str, key: str) -> tuple[Path, str]:
    path, colon, entry = key.rpartition(":")
    if not colon or not path or not entry:
        raise ConfigError("the reference has no path, or nothing behind it", where=name, remedy=_FORMS)
    return Path(path), entry


def _read(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        remedy = "correct the path, and let the user that runs the pipeline read the file"
        raise ConfigError(f"{path} cannot be read: {why}", where=name, remedy=remedy) from error
