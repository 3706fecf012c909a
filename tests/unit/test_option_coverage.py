"""Every property of the specification is declared, and each that works is read by code and named by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace.config.kinds import FLAG
from tailrace.config.option import Option, OptionStatus
from tailrace.config.options.converter_families import is_of_delegate
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.mongodb.options import CURSOR_PIPELINE
from tailrace.connectors.postgres.options import OPTIONS, SLOT_NAME
from tailrace.connectors.registry import BUILT_IN, imported
from tests.unit.option_reads import unread

TESTS = Path(__file__).parents[1]
SECTIONS = {
    "postgresql.md": ("\n## 4. Properties", "### Validation messages"),
    "common.md": ("\n## 15. Common property", "\n## 16."),
}
# Where the tables of the specification shorten names, what goes around them.
SHORTENED = [
    *("{}", "table.{}", "p.{}", "schema.history.internal.{}", "{}.md5.with.salt.s"),
    "snapshot.mode.configuration.based.{}",
]
NOTATION = {"schema.table", "schema.table.column"}


def test_properties_without_effect_or_refused_have_a_reason() -> None:
    silent = [
        option.name
        for option in OPTIONS
        if option.status in (OptionStatus.CONNECT, OptionStatus.REFUSED) and not option.note
    ]
    assert silent == []


# Whatever they may be set to is what is done, or they are looked at before a connector's properties are resolved.
ALIKE = {
    *("connector.class", "name"),
    *("plugin.name", "snapshot.query.mode"),
    *("driver.authentication", "driver.integratedSecurity"),
}


@pytest.mark.parametrize("connector", BUILT_IN)
def test_each_that_works_is_read_by_the_connector_that_says_so(connector: str) -> None:
    options = [option for option in imported(BUILT_IN[connector].options or "") if option.status is OptionStatus.WORKS]
    assert set(unread(connector, options)) <= ALIKE, "make it work, or give its true status"


def test_what_nobody_reads_is_found() -> None:
    """Of properties: one that nobody reads, two that a connector of another database reads alone, and one of all."""
    nobody = Option("read.by.nobody", FLAG, "false")
    options = [nobody, SLOT_NAME, CURSOR_PIPELINE, TOPIC_PREFIX]
    assert unread("sqlserver", options) == ["read.by.nobody", "slot.name", "cursor.pipeline"]
    assert unread("postgres", options) == ["read.by.nobody", "cursor.pipeline"]


def spoken() -> set[str]:
    """The dotted words of all tests, where two underscores stand for a dot."""
    files = [file for kind in ("*.py", "connector.json") for file in TESTS.rglob(kind) if file != Path(__file__)]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files).replace("__", ".").lower()
    # Names of Apicurio's have hyphens; elsewhere these are signs.
    return {word.rstrip(".") for form in (r"[\w.]+", r"[\w.\-]+") for word in re.findall(form, text)}


def is_named(option: Option[object], words: set[str]) -> bool:
    """Whether a test names the property, or one of its family; as an argument it has underscores for dots."""
    for name in (option.name, *(alias.name for alias in option.aliases)):
        parts = re.split(r"(<[^>]+>|\*)", name.lower())
        family = re.compile("".join(re.escape(part) if at % 2 == 0 else r"[\w.\-]+" for at, part in enumerate(parts)))
        alone = name.lower()
        if {alone, alone.replace(".", "_")} & words or (len(parts) > 1 and any(map(family.fullmatch, words))):
            return True
    return False


def test_each_that_works_is_named_by_a_test() -> None:
    words = spoken()
    works = [option for option in OPTIONS if option.status is OptionStatus.WORKS and not is_of_delegate(option)]
    assert [option.name for option in works if not is_named(option, words)] == []


def test_the_converter_that_another_one_calls_has_the_settings_of_it_alone() -> None:
    names = {option.name for option in OPTIONS}
    inner = [name for name in names if ".delegate.converter.type." in name]
    assert len(inner) > 200
    assert {name.replace(".delegate.converter.type", "") for name in inner} <= names


@pytest.mark.parametrize("page", SECTIONS)
def test_the_specifications_properties_are_declared(shared: Path, page: str) -> None:
    begin, end = SECTIONS[page]
    text = (shared / "spec" / page).read_text(encoding="utf-8")
    section = text[text.index(begin) :].split(end)[0]
    names = re.findall(r"(?<![\w./$<-])[a-z]+(?:\.[a-zA-Z0-9]+)+(?![\w./(])", section)
    names = [name for name in names if name not in NOTATION and not name.startswith("io.debezium.")]
    assert len(names) > 50
    assert [name for name in names if not any(OPTIONS.find(form.format(name)) for form in SHORTENED)] == []
