"""The files of deploy/: their pipelines are whole, their jobs give known properties, and one run has a checkpoint."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tailrace.connectors.postgres.options import OPTIONS
from tailrace.pipeline.definition import from_content
from tailrace.sinks.replica.iceberg.index import FOLDER
from tailrace.version import __version__

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "tailrace"
STATE = "/var/lib/tailrace"


def objects() -> dict[str, Any]:
    """The objects of the manifest by their kinds."""
    text = (DEPLOY / "kubernetes" / "tailrace.yaml").read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def values() -> dict[str, Any]:
    """The chart's values."""
    content: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return content


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that the Secret brings."""
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")


def test_the_pipeline_of_the_manifest_is_whole() -> None:
    content = yaml.safe_load(objects()["ConfigMap"]["data"]["pipeline.yaml"])
    assert not from_content(content, base=DEPLOY, where="manifest").config().warnings
    assert Path(content["checkpoint"]).is_relative_to(STATE)


def test_the_pipeline_of_the_chart_is_whole() -> None:
    content = {**values()["pipeline"], "checkpoint": f"{STATE}/checkpoint"}
    assert not from_content(content, base=DEPLOY, where="values").config().warnings


def test_a_checkpoint_has_one_pod() -> None:
    spec = objects()["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    template = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    assert "replicas: 1\n" in template
    assert "type: Recreate\n" in template


def test_a_pod_is_asked_where_the_run_answers() -> None:
    (container,) = objects()["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--http", f"0.0.0.0:{container['ports'][0]['containerPort']}"]
    paths = [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
    assert paths == ["/health", "/ready"]
    template = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    assert all(f"path: {path}\n" in template for path in paths)
    assert json.dumps(container["args"][-1]) in template


def test_images_run_without_rights() -> None:
    for file in DEPLOY.rglob("Dockerfile"):
        users = [line.split()[1] for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("USER")]
        assert int(users[-1].partition(":")[0]) > 0, file
    pod = objects()["Deployment"]["spec"]["template"]["spec"]["securityContext"]
    assert pod["runAsNonRoot"]
    assert f"USER {pod['runAsUser']}:{pod['runAsGroup']}\n" in (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")


def test_jars_and_indexes_are_not_written_into_a_file_system_that_is_read_only() -> None:
    (container,) = objects()["Deployment"]["spec"]["template"]["spec"]["containers"]
    content = yaml.safe_load(objects()["ConfigMap"]["data"]["pipeline.yaml"])
    mounted = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    for place in (
        content["spark"]["spark.jars.ivy"],
        {each["name"]: each["value"] for each in container["env"]}[FOLDER],
    ):
        assert Path(place).is_relative_to(STATE)
        assert any(Path(place).is_relative_to(each) for each in mounted)
    helpers = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    assert '(printf "%s/ivy" (include "tailrace.cache" .))' in helpers
    template = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    assert re.search(rf"name: {FOLDER}\n +value: {{{{ include \"tailrace.cache\" . }}}}/index\n", template)
    unit = (DEPLOY / "systemd" / "tailrace@.service").read_text(encoding="utf-8")
    assert f"{FOLDER}=/var/cache/tailrace/%i/index" in unit


def test_versions_are_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    (container,) = objects()["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"tailrace:{__version__}"
    for name in ("glue/template.yaml", "spark-submit/Dockerfile"):
        assert f"tailrace-{__version__}-py3-none-any.whl" in (DEPLOY / name).read_text(encoding="utf-8")


def test_the_values_of_the_chart_have_the_schema_of_the_chart() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(values()) <= set(schema["properties"])
    assert schema["properties"]["pipeline"]["properties"]["checkpoint"] is False


JOBS = sorted(DEPLOY.rglob("changes.py"))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.relative_to(DEPLOY).as_posix())
def test_a_job_gives_properties_that_the_connector_has(job: Path) -> None:
    given = [
        call.args[0].value
        for call in ast.walk(ast.parse(job.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "option"
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    ]
    sinks = {"path", "checkpointLocation"}
    assert len(given) > 8
    assert [name for name in given if OPTIONS.find(name) is None and name not in sinks] == []


def test_each_job_and_pipeline_has_a_slot_of_its_own() -> None:
    texts = [file.read_text("utf-8") for file in DEPLOY.rglob("*") if file.suffix in (".py", ".yaml")]
    slots = [name for text in texts for name in re.findall(r"""slot\.name["']?\s*[,:]\s*["']?(\w+)""", text)]
    assert len(slots) == len(JOBS) + 2
    assert len(set(slots)) == len(slots), slots
