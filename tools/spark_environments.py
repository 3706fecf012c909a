"""Makes an environment for each release of Spark that is supported and is not in .venv: `.work/spark/<release>`.

Each has a PySpark of its own, and takes all other packages, and Tailrace, from .venv.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pyspark

from tailrace.spark.versions import TRIED, release

PROJECT = Path(__file__).parents[1]


def make(version: str) -> None:
    """Make one that does not exist yet. Raises CalledProcessError."""
    folder = PROJECT / ".work" / "spark" / version
    if (folder / ".ready").exists():
        return
    print(f"Installing PySpark {version} into {folder.relative_to(PROJECT)}", flush=True)
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "-q", "--no-deps", f"pyspark=={version}.*", "py4j"]
    subprocess.run(command, check=True)
    printed = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(printed, check=True, capture_output=True, text=True).stdout.strip())
    # Python does not read the .pth files of a folder that a .pth file names, so this has what they have added.
    (own / "shared.pth").write_text("\n".join(each for each in sys.path[1:] if not _is_standard(each)) + "\n")
    (folder / ".ready").touch()


def _is_standard(folder: str) -> bool:
    return folder.endswith(".zip") or Path(folder).is_relative_to(sysconfig.get_path("stdlib"))


if __name__ == "__main__":
    for each in TRIED:
        if each != release(pyspark.__version__):
            make(".".join(map(str, each)))
