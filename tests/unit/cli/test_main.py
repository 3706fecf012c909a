"""The command line as a process: fast help, sentences instead of tracebacks, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path


def tailrace(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    code = "from tailrace.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=folder, check=False
    )


@cache
def helped() -> subprocess.CompletedProcess[str]:
    return tailrace("--help")


def test_help_names_every_command() -> None:
    done = helped()
    assert done.returncode == 0
    for command in ("run", "check", "init", "status", "signal", "add", "remove", "drop", "demo"):
        assert f"  {command} " in done.stdout


def test_help_names_each_command_in_a_whole_sentence() -> None:
    listed = helped().stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) >= 10
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['tailrace', '--help']\n"
        "from tailrace.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pydantic', 'psycopg', 'deltalake', 'confluent_kafka'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_error_is_a_sentence_with_its_remedy(tmp_path: Path) -> None:
    done = tailrace("run", "none.yaml", folder=tmp_path)
    assert done.returncode == 1
    assert "Error none.yaml: cannot be read: No such file or directory" in done.stderr
    assert "Remedy `tailrace init` writes a pipeline file" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback_wherever_it_stands(tmp_path: Path) -> None:
    for arguments in (("--debug", "status", "none.yaml"), ("status", "none.yaml", "--debug")):
        assert "Traceback" in tailrace(*arguments, folder=tmp_path).stderr


def test_wrong_usage_is_exit_code_2() -> None:
    assert tailrace("run").returncode == 2
    assert tailrace("fly").returncode == 2


def completed(shell: str, words: str) -> list[str]:
    """What a shell is offered for the last word of a line."""
    code = "import sys; sys.argv[0] = 'tailrace'\nfrom tailrace.cli.main import main; main()"
    line = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": words}
    environment = {**os.environ, **line, "_TAILRACE_COMPLETE": f"complete_{shell}", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    return done.stdout.split()


def test_a_shell_completes_commands_and_options() -> None:
    assert completed("bash", "tailrace st") == ["status"]
    assert completed("bash", "tailrace status --wa") == ["--watch"]
    assert '"reconcile":' in " ".join(completed("zsh", "tailrace rec")).replace("\\", "")


def test_the_script_for_a_shell_names_the_command() -> None:
    code = "import sys; sys.argv[0] = 'tailrace'\nfrom tailrace.cli.main import main; main()"
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", code, "--show-completion", "bash"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "_TAILRACE_COMPLETE=complete_bash" in done.stdout
