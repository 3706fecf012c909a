"""Installs Tailrace with each Python that this machine has, 3.10 to 3.14, and runs unit tests there.

    python tools/python_versions.py [3.10 3.12 ...]

Each has an environment below .work/python, with the versions of requirements.lock and the wheel of this clone. A Python
comes from the path (python3.12), from pyenv or from uv; one that is nowhere is named, and is no failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
WORK = PROJECT / ".work" / "python"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# What depends on Python and takes a minute or two: no servers, no pages.
PARTS = ("capture", "config", "connectors", "events", "model", "mongodb", "postgres", "snapshot", "spark", "transforms")


def program(version: str) -> str | None:
    """A Python of this version that starts, None if there is none."""
    roots = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    roots.append(Path.home() / ".local" / "share" / "uv" / "python")
    places = [shutil.which(f"python{version}")]
    places += [str(file) for root in roots for file in sorted(root.glob(f"*{version}*/bin/python{version}"))]
    for place in filter(None, places):
        if subprocess.run([place, "-c", "import venv, ssl"], capture_output=True, check=False).returncode == 0:
            return place
    return None


def environment(version: str, program_: str) -> Path:
    """The Python of an environment with the locked packages and the wheel. Raises CalledProcessError."""
    folder, lock = WORK / version, PROJECT / "requirements.lock"
    python, ready = folder / "bin" / "python", folder / "ready"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    if not ready.exists() or ready.read_bytes() != lock.read_bytes():
        print(f"Installing the packages of requirements.lock for Python {version}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([program_, "-m", "venv", str(folder)], check=True)
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        ready.write_bytes(lock.read_bytes())
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(PROJECT)], check=True)
    return python


def main(*wanted: str) -> int:
    """Try each; 1 if one that is here fails."""
    said, failed = [], False
    for version in wanted or VERSIONS:
        found = program(version)
        if found is None:
            said.append(f"Python {version}: not on this machine, not tried")
            continue
        python = environment(version, found)
        command = [
            str(python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *(f"tests/unit/{part}" for part in PARTS),
        ]
        passed = subprocess.run(command, cwd=PROJECT, check=False).returncode == 0
        said.append(f"Python {version}: installed, the unit tests have {'passed' if passed else 'failed'}")
        failed = failed or not passed
    print("\n".join(said))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
