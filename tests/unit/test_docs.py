"""What README, docs and examples show is true: links lead somewhere, files parse, commands and messages exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tailrace.cli.main import app
from tailrace.config.dialects import read
from tailrace.config.options.filters import TABLES
from tailrace.connectors.db2.options import OPTIONS as DB2
from tailrace.connectors.mongodb.options import OPTIONS as MONGODB
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.options import DATABASE_PASSWORD, OPTIONS
from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.connectors.registry import BUILT_IN
from tailrace.connectors.sqlserver.options import OPTIONS as SQLSERVER
from tailrace.events.record import KAFKA
from tailrace.events.shapes import event_schema
from tailrace.pipeline.definition import Definition, FileTarget, KafkaTarget, ReplicaTarget, from_content, load
from tailrace.pipeline.targets import Sink
from tailrace.spark.schemas import ARROW_SCHEMA, COUNT_SCHEMA
from tailrace.transforms import STEPS
from tests.unit.source_code import MODULES, nodes

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CONNECTORS = ROOT / "docs" / "connectors"
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("deploy/**/*.md")]
)
COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `marker` is what a comment `<!-- runnable: marker -->` before it says."""

    page: Path
    line: int
    language: str
    text: str
    marker: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


_BLOCK = re.compile(
    r"^(?:[ ]*<!-- runnable: (?P<name>\w+) -->\n)?"
    r"(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(language: str = "", pages: list[Path] = PAGES) -> list[Block]:
    """The blocks of a language, of all without one."""
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("text"))
            body = textwrap.dedent(match["text"])
            found.append(Block(page, line, match["language"], body, match["name"]))
    return [block for block in found if not language or block.language == language]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable the examples take the password from."""
    monkeypatch.setenv("PGPASSWORD", "secret")


def test_blocks_are_of_known_languages() -> None:
    assert {block.language for block in blocks()} <= {"", "python", "yaml", "json", "sh", "sql", "js"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def anchors(page: Path) -> set[str]:
    """The anchors that headings get."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_pipelines_in_pages_are_whole(block: Block) -> None:
    from_content(yaml.safe_load(block.text), base=EXAMPLES, where=str(block)).config()


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_example_pipelines_are_whole(file: Path) -> None:
    assert not load(file).config().warnings


@pytest.mark.parametrize(
    "file", sorted([*EXAMPLES.glob("*.json"), *EXAMPLES.glob("*.properties")]), ids=lambda file: file.name
)
def test_example_connectors_resolve(file: Path) -> None:
    config = resolve(read(file))
    assert config.need(DATABASE_PASSWORD) == "secret"
    assert [pattern.pattern for pattern in config[TABLES.include]] == [
        r"public\.orders",
        r"public\.customers",
    ]
    assert not config.warnings


def test_each_pipeline_that_is_shown_has_a_slot_of_its_own() -> None:
    """Whoever tries two of them at one database must not find the second one refused."""
    # The connector's other file shows the same one.
    files = [file for file in EXAMPLES.iterdir() if file.name != "connector.properties"]
    shown = [file.read_text(encoding="utf-8") for file in files] + [block.text for block in blocks()]
    slots = [name for text in shown for name in re.findall(r"""\bslot\.name["']?\s*[,:=]\s*["']?(\w+)""", text)]
    assert len(slots) >= 4
    assert len(slots) == len(set(slots)), slots


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_parses(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_commands_exist(block: Block) -> None:
    for line in block.text.splitlines():
        for words in commands(line):
            known_command(words)


def test_inline_commands_exist() -> None:
    for page in PAGES:
        for span in re.findall(r"`((?:make|tailrace) [^`]+)`", prose(page)):
            for words in commands(span):
                known_command([word for word in words if word not in ("FILE", "...")])


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line as words, without its comment."""
    words = shlex.split(line, comments=True)
    if words:
        yield words


def known_command(words: list[str]) -> None:
    """Fails for a command, an option or a target there is not."""
    program, *arguments = words
    if program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        assert {word for word in arguments if "=" not in word} <= targets
    elif program == "tailrace":
        name, *rest = arguments
        assert {word for word in rest if word.startswith("-")} <= {*options(name), "--debug"}
    elif program == "pip":
        extras = re.search(r"\[([\w,]+)\]", arguments[-1])
        assert extras is not None
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras[1].split(","))
    elif program in ("docker", "helm"):
        assert all((ROOT / word).exists() for word in arguments if word.startswith("deploy/"))
    else:
        assert program in ("export", "kubectl", "python", "spark-submit", "spark-class", "curl"), (
            f"{program}: say here what may be checked of it"
        )


def options(name: str) -> list[str]:
    """The options of a command of the command line."""
    return [option for parameter in COMMANDS[name].params for option in parameter.opts if option.startswith("-")]


def test_properties_with_values_exist() -> None:
    checked = 0
    for page in PAGES:
        for name, value in re.findall(r"`([a-z]+(?:\.[a-z]+)+)[=:] ?([^`\s.]+)`", prose(page)):
            if name.startswith(("spark.", "rds.")):
                continue
            found = {"mongodb.md": MONGODB, "sqlserver.md": SQLSERVER, "db2.md": DB2}.get(page.name, OPTIONS).find(name)
            assert found is not None, f"{page.name}: {name}"
            found[0].kind.parse(value)
            checked += 1
    assert checked > 50


def test_every_command_and_option_is_described() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert section is not None, name
        assert [option for option in options(name) if option.startswith("--") and option not in section[1]] == []


def test_every_key_of_a_pipeline_is_described() -> None:
    text = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
    keys: list[str] = [*STEPS]
    for model in (Definition, Sink, KafkaTarget, ReplicaTarget, FileTarget):
        keys += [field.alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if f"`{key}" not in text and f".{key}`" not in text] == []


SHAPES: dict[str, set[str]] = {
    "kafka": set(KAFKA.names),
    "event": set(event_schema(SOURCE).names),
    "table": {"op", "before", "after", "source", "ts"},
    "arrow": set(ARROW_SCHEMA.names),
    "count": set(COUNT_SCHEMA.names),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_row_shapes_are_described_as_they_are(shape: str) -> None:
    columns = described(shape)
    assert set(columns) == SHAPES[shape]
    if shape == "event":
        assert re.findall(r"`(\w+)`", columns["source"]) == [
            field.name for field in event_schema(SOURCE).field("source").type
        ]
    if shape == "table":
        assert re.findall(r"`(\w+)`", columns["source"]) == [field.name for field in SOURCE_TYPE]


def described(shape: str) -> dict[str, str]:
    """The columns that the page lists for a shape, each with the rest of its line."""
    text = (ROOT / "docs" / "row-shapes.md").read_text(encoding="utf-8")
    section = re.search(rf"^\*\*`{shape}`\*\*(.*?)^(?:\*\*`|Rows of one|## )", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines = re.findall(r"^\| (`[^|]+) \|(.*)$", section[1], re.MULTILINE)
    return {name: rest for names, rest in lines for name in re.findall(r"`(\w+)`", names)}


def headings(page: Path) -> list[str]:
    """The headings of a page's sections."""
    return re.findall(r"^## (.+)$", prose(page), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_connector_has_a_page_with_the_same_headings(name: str) -> None:
    assert headings(CONNECTORS / f"{name}.md") == [
        *("Prepare the server", "Snapshot", "Stream", "Types", "Offsets", "Differences", "Errors"),
    ]


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+\.md)", index.read_text("utf-8"))}
    decisions = {*(ROOT / "docs" / "decisions").glob("0*.md")}
    missing = {*(ROOT / "docs").rglob("*.md")} - linked - decisions - {index}
    assert not missing


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_quoted_messages_are_those_of_the_code(name: str) -> None:
    pages = [CONNECTORS / f"{name}.md", ROOT / "docs" / "pipelines.md"]
    sections = [page.read_text(encoding="utf-8").partition("\n## Errors\n")[2].partition("\n## ")[0] for page in pages]
    quoted = [message for section in sections for message in re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)]
    assert len(quoted) > 10
    said = texts()
    unknown = [message for message in quoted if not all(part in said for part in re.split(r" ?\.\.\. ?|%d", message))]
    assert not unknown


@cache
def texts() -> str:
    """Every text of the source code, an f-string's variable parts left out."""
    return "\n".join(_texts())


def _texts() -> Iterator[str]:
    for module in MODULES:
        for node in nodes(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_pages_name_no_paths_of_a_developers_machine() -> None:
    """Paths and addresses of one machine are of no use to anybody else."""
    for page in PAGES:
        found: list[Any] = re.findall(r"/work/|/root/|/home/\w+|\.\./shared", page.read_text(encoding="utf-8"))
        assert not found, page
