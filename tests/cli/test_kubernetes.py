"""`plinth kubernetes`: objects that Kubernetes' own schemas accept, and experiments that no Pod can run."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kubernetes_validate import validate

from plinth.cli import main
from plinth.experiment import template

CLASSES = ("--storage-class", "gp3", "--storage-class", "io2.fast")
VERSION = "1.31"


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(template("mine", str(file)))
    return file


def objects(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert main(["kubernetes", *map(str, words)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["apiVersion"], printed["kind"]) == ("v1", "List")
    return printed["items"]


def test_every_object_is_valid(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = objects(capsys, experiment, *CLASSES)
    for one in made:
        validate(one, VERSION, strict=True)
    assert [one["kind"] for one in made] == [
        "ConfigMap",
        *["PersistentVolumeClaim", "PersistentVolumeClaim", "Job"] * 2,
    ]
    pods = objects(capsys, experiment, *CLASSES, "--copy")
    for one in pods:
        validate(one, VERSION, strict=True)
    assert [one["metadata"]["name"] for one in pods] == ["plinth-mine-gp3-copy", "plinth-mine-io2-fast-copy"]


def test_the_schemas_find_a_planted_fault(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = objects(capsys, experiment, *CLASSES)[3]
    job["spec"]["backofLimit"] = job["spec"].pop("backoffLimit")
    with pytest.raises(Exception, match="backofLimit"):
        validate(job, VERSION, strict=True)


def test_a_job_runs_the_experiment_on_a_volume_of_its_class(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*CLASSES, "--size", "50GiB", "--cpus", "2", "--memory", "8GiB", "--set", "measure.repeats=3")
    config_map, volume, bundle, job, *_ = objects(capsys, experiment, *words)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == [
        *("run", "/experiment/experiment.toml", "--bundle", "/bundle/mine-gp3"),
        *("--set", "measure.repeats=3"),
    ]
    assert volume["spec"]["storageClassName"] == "gp3"
    assert volume["spec"]["resources"]["requests"]["storage"] == str(50 << 30)
    assert "storageClassName" not in bundle["spec"], "the bundle's writes are not measured"
    claims = {one["name"]: one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"][1:3]}
    assert claims == {"volume": "plinth-mine-gp3", "bundle": "plinth-mine-gp3-bundle"}
    (state,) = container["env"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert state["value"].startswith(mounts["volume"])
    assert container["resources"]["limits"] == {"cpu": "2", "memory": str(8 << 30)}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    (item,) = pod["volumes"][0]["configMap"]["items"]
    assert tomllib.loads(config_map["data"][item["key"]]) == tomllib.loads(experiment.read_text())


def test_scripts_come_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(template("mine", str(file)))
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "one.sql").write_text("SELECT 1;\n")
    made = objects(capsys, file, *CLASSES, "--set", 'workload={clients=1,script="sql/one.sql"}')
    config_map, job = made[0], made[3]
    items = job["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"]
    assert {one["path"]: config_map["data"][one["key"]] for one in items}["sql/one.sql"] == "SELECT 1;\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no storage class"),
        (("--storage-class", "GP3"), "lower-case"),
        (("--storage-class", "a.b", "--storage-class", "a-b"), "the same Job"),
        (("--storage-class", "x" * 60), "at most 52"),
        ((*CLASSES, "--image", "a b"), "no name of an image"),
        ((*CLASSES, "--size", "-1GiB"), "--size"),
        ((*CLASSES, "--size", "0GiB"), "above 0"),
        ((*CLASSES, "--memory", "much"), "--memory"),
        ((*CLASSES, "--cpus", "0"), "above 0"),
        ((*CLASSES, "--cpus", "nan"), "above 0"),
        ((*CLASSES, "--set", 'storage.disk={kind="loop",size="1GiB"}'), "of kind loop"),
        ((*CLASSES, "--set", 'storage.disk.path="/srv"'), "has a path"),
        ((*CLASSES, "--set", 'measure.cache="cold"'), "page cache"),
        ((*CLASSES, "--set", 'server.bindir="/opt/pg/bin"'), "server.bindir"),
    ],
)
def test_what_no_pod_can_have(
    experiment: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["kubernetes", str(experiment), *words]) == 2
    caught = capsys.readouterr()
    assert said in caught.err
    assert caught.out == ""
