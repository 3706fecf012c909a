"""Editing a property in the files people write: nothing else may change, and where it would, nothing is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline.edit import edited, rewrite, stored

LIST = "table.include.list"

PIPELINE = """\
# My pipeline
name: shop
source:
  config:
    # The tables
    table.include.list: public\\.orders   # only these
    database.dbname: shop
    database.password: ${env:PGPASSWORD}
sink: console
checkpoint: state
"""
CONNECTOR = '{"name": "x", "config": {\n  "table.include.list": "public\\\\.orders",\n  "database.dbname": "shop"\n}}\n'
PROPERTIES = "# My connector\ntable.include.list = public\\\\.orders\ndatabase.dbname=shop\n"


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("p.yaml", PIPELINE, (r"public\.orders  ", r"public\.orders,public\.it's  ")),
        ("c.json", CONNECTOR, (r'public\\.orders"', r'''public\\.orders,public\\.it's"''')),
        ("c.properties", PROPERTIES, (" = public\\\\.orders", r"=public\\.orders,public\\.it's")),
    ],
)
def test_a_property_is_changed_and_added(tmp_path: Path, name: str, text: str, changed: tuple[str, str]) -> None:
    path = file(tmp_path, name, text)
    assert stored(path)[LIST] == r"public\.orders"
    assert edited(path, LIST, r"public\.orders,public\.it's") == text.replace(*changed)
    more = edited(path, "table.exclude.list", "x")
    assert more is not None
    assert [line for line in more.splitlines() if line not in text.splitlines()] != []
    path.write_text(more, encoding="utf-8")
    assert stored(path)["table.exclude.list"] == "x"
    assert all(line in more.splitlines() for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        PIPELINE.replace("public\\.orders   # only these", ">-\n      public\\.orders"),
        PIPELINE.replace("sink: console", "spark:\n  table.include.list: public\n"),
        "source: {config: {table.include.list: a, database.dbname: b}}\nsink: console\ncheckpoint: c\n",
    ],
)
def test_what_cannot_be_edited_safely_is_left(tmp_path: Path, text: str) -> None:
    assert edited(file(tmp_path, "p.yaml", text), LIST, "b") is None


def test_other_text_on_the_line_stays(tmp_path: Path) -> None:
    path = file(tmp_path, "c.json", '{"a": "b", "database.dbname": "shop", "c": "d"}')
    assert edited(path, LIST, "x") == '{"a": "b", "database.dbname": "shop", "table.include.list": "x", "c": "d"}'
    path = file(tmp_path, "p.yaml", PIPELINE.replace("public\\.orders   #", "'public\\.a #b'   #"))
    assert edited(path, LIST, "x") == PIPELINE.replace("public\\.orders   #", "x   #")


def test_a_property_finds_a_place_whatever_the_others_are(tmp_path: Path) -> None:
    """Not every database has database.dbname, and not each property can be found in the text."""
    path = file(tmp_path, "c.json", '{"database.names": "a", "poll.interval.ms": 5}')
    assert edited(path, LIST, "x") == '{"table.include.list": "x", "database.names": "a", "poll.interval.ms": 5}'
    block = "source:\n  config:\n    connection.string: h\n    x: >-\n      a\n      b\nsink: console\n"
    path = file(tmp_path, "p.yaml", block)
    assert edited(path, LIST, "x") == block.replace("    x: >-", f"    {LIST}: x\n    x: >-")
    path = file(tmp_path, "q.yaml", "source: {config: {connection.string: h}}\nsink: console\n")
    assert edited(path, LIST, "x") is None


LISTED = """\
source:
  config:
    table.include.list:  # what init writes
    - public\\.orders
    - odd\\, name
    database.dbname: shop
sink: console
"""


def test_a_list_stays_a_list(tmp_path: Path) -> None:
    text = LISTED.replace("  # what init writes", "")
    path = file(tmp_path, "p.yaml", text)
    more = edited(path, LIST, r"public\.orders,odd\, name,public\.items")
    assert more == text.replace("    database", "    - public\\.items\n    database").replace(
        r"odd\, name", "odd, name"
    )
    path.write_text(more, encoding="utf-8")
    assert edited(path, LIST, r"odd\, name") == text.replace("    - public\\.orders\n", "").replace(r"odd\,", "odd,")


def test_a_list_with_a_comment_is_left_to_people(tmp_path: Path) -> None:
    assert edited(file(tmp_path, "p.yaml", LISTED), LIST, "x") is None


def test_a_file_is_replaced_whole_behind_a_link_with_its_mode(tmp_path: Path) -> None:
    path = file(tmp_path, "p.yaml", PIPELINE)
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    rewrite(link, "name: other\n", "remedy")
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "name: other\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert {each.name for each in tmp_path.iterdir()} == {"p.yaml", "link.yaml"}


def test_a_file_that_cannot_be_replaced_stays_as_it_is(tmp_path: Path) -> None:
    path = file(tmp_path, "p.yaml", PIPELINE)
    (tmp_path / f".p.yaml.{os.getpid()}").mkdir()  # where the new text would be written first
    with pytest.raises(ConfigError) as raised:
        rewrite(path, "name: other\n", "set it by hand")
    assert "the file cannot be written: Is a directory" in str(raised.value)
    assert "set it by hand" in str(raised.value)
    assert path.read_text(encoding="utf-8") == PIPELINE
