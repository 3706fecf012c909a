"""The calls that a connector gets, in order, are those that its tutorial shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tailrace.capture.capture import Capture
from tests.conformance.folder import TOY, FolderSource
from tests.conformance.subject import KEY, NOTE, VALUE, Insert

PAGE = Path(__file__).parents[3] / "docs" / "connector-tutorial.md"
FOLDER = str(TOY / "tailrace_folder")


@contextmanager
def calls(seen: list[str]) -> Iterator[None]:
    """Note what code outside the toy calls in it, in order, what comes several times once."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        name, caller = frame.f_code.co_qualname, frame.f_back
        is_entered = event == "call" and frame.f_code.co_filename.startswith(FOLDER)
        if not is_entered or caller is None or caller.f_code.co_filename.startswith((FOLDER, "<")):
            return
        if not any(part.startswith(("_", "<")) for part in name.split(".")) and name not in seen:
            seen.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def read(capture: Capture, splits: Sequence[Any]) -> None:
    for split in splits:
        for _ in capture.read(split):
            pass


def observed(source: FolderSource) -> Iterator[tuple[str, list[str]]]:
    """Each step of a pipeline's first two batches, with the calls that it makes."""
    from tailrace_folder.package import FolderPackage

    def step(do: Callable[[], Any]) -> tuple[Any, list[str]]:
        seen: list[str] = []
        with calls(seen):
            return do(), seen

    package, properties = FolderPackage(), {**source.properties("p"), "topic.prefix": "t"}
    capture, seen = step(lambda: Capture(package.connector(package.resolve(properties))))
    yield "start", seen
    offset = capture.begin()
    for batch in ("first snapshot", "log"):
        start = offset
        offset, seen = step(partial(capture.head, start, None))
        yield f"{batch}: head", seen
        splits, seen = step(partial(capture.plan, start, offset))
        yield f"{batch}: plan", seen
        _, seen = step(partial(read, capture, splits))
        yield f"{batch}: read", seen
        source.commit(Insert("t", {KEY: 2, VALUE: 0, NOTE: None}))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames have no qualified names before Python 3.11")
def test_the_calls_of_a_connector_are_those_that_its_tutorial_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOY))
    source = FolderSource(tmp_path / "folder")
    source.create("t")
    source.commit(Insert("t", {KEY: 1, VALUE: 0, NOTE: None}))
    lines = [f"| {name} | {', '.join(f'`{call}`' for call in seen) or '-'} |" for name, seen in observed(source)]
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8")
