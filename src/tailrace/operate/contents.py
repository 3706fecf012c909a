"""Tells when a pipeline file, or what it refers to, has changed: a connector's file, and files of `${file:...}`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tailrace.config.references import files_in
from tailrace.errors import ConfigError
from tailrace.pipeline.document import read_pipeline


class PipelineContents:
    """Follows pipeline files. Of contents, which may be secrets, only digests are kept."""

    def __init__(self) -> None:
        self._configs = dict[Path, tuple[str, Path | None]]()

    def digest(self, file: Path, content: bytes) -> str:
        """What is another text after a change of the file, which has this content now, or of what it refers to."""
        config = self._config(file, content)
        parts = [content] if config is None else [content, _bytes(config)]
        text = b"\n".join(parts).decode(errors="replace")
        parts += [_bytes(each) for each in files_in(text)]
        return _digest(*parts)

    def _config(self, file: Path, content: bytes) -> Path | None:
        """The connector's file that a pipeline file names. Only a new content is parsed."""
        digest = _digest(content)
        cached = self._configs.get(file)
        if cached is None or cached[0] != digest:
            cached = self._configs[file] = digest, _named(file)
        return cached[1]


def _named(file: Path) -> Path | None:
    try:
        source = read_pipeline(file).get("source")
    except ConfigError:  # it is reported when the pipeline is started
        return None
    config = source.get("config") if isinstance(source, dict) else None
    return file.parent / config if isinstance(config, str) else None


def _bytes(file: Path) -> bytes:
    """The content of a file; one that cannot be read has none, and is reported when the pipeline is started."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
