"""What GitHub runs is what the README says, word for word; what is released, and what an image is built from."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def first_command() -> str:
    """The first fenced command of the README: it installs and runs the main job."""
    found = re.search(r"^```sh\n(python3 -m venv .*)\n```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def jobs(name: str) -> dict[str, Any]:
    """The jobs of a workflow."""
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / name).read_text("utf-8"))["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    """What the steps of a job run."""
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_runs_what_has_to_be_green_on_the_oldest_and_the_newest_python() -> None:
    job = jobs("ci.yml")["tests"]
    assert commands(job)[-1] == "bash .ci/run"
    versions = [row["python"] for row in job["strategy"]["matrix"]["include"]]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert versions[0] == supported[0]
    assert versions[-1] == supported[-1]
    assert f'requires-python = ">={supported[0]}"' in project


def test_ci_runs_the_readmes_first_command_on_other_systems() -> None:
    job = jobs("ci.yml")["first-command"]
    assert job["strategy"]["matrix"]["os"] == ["macos-latest", "windows-latest"]
    posix, windows = commands(job)
    assert posix == first_command()
    assert windows == posix.replace("python3", "python").replace(".venv/bin", ".venv/Scripts")


def test_a_release_is_checked_and_runs_the_main_job_before_it_is_published() -> None:
    found = jobs("release.yml")
    steps = "\n".join(commands(found["build"]))
    main_job = first_command().rpartition("bertcli ")[2]
    assert "twine check" in steps
    assert steps.endswith(f"bertcli {main_job}")
    assert found["publish"]["needs"] == "build"
    assert found["publish"]["permissions"] == {"id-token": "write"}


def test_actions_are_pinned_by_digest_and_name_their_version() -> None:
    lines = [
        line.partition("uses: ")[2]
        for file in (ROOT / ".github/workflows").glob("*.yml")
        for line in file.read_text("utf-8").splitlines()
        if "uses: " in line
    ]
    pinned = re.compile(r"(actions|pypa)/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+(, .*)?")
    assert lines
    assert [line for line in lines if not pinned.fullmatch(line)] == []


def test_a_release_has_a_bill_of_materials_that_is_not_published_with_the_wheel() -> None:
    steps = jobs("release.yml")["build"]["steps"]
    (command,) = (step["run"] for step in steps if "cyclonedx-py environment" in step.get("run", ""))
    assert "venv --without-pip" in command  # else the bill lists pip and setuptools, which the wheel does not bring
    kept = [step["with"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert kept == [{"name": "dist", "path": "dist"}, {"name": "materials", "path": "bertcli.cdx.json"}]


def test_links_of_the_released_readme_lead_to_the_repository(tmp_path: Path) -> None:
    (command,) = (step for step in commands(jobs("release.yml")["build"]) if "README.md" in step)
    readme = Path(shutil.copy(ROOT / "README.md", tmp_path))
    environment = {**os.environ, "GITHUB_REPOSITORY": "someone/bertcli", "GITHUB_REF_NAME": "v1.0.0"}
    subprocess.run(["bash", "-e", "-c", command], cwd=tmp_path, env=environment, check=True)
    before, text = (ROOT / "README.md").read_text("utf-8"), readme.read_text("utf-8")
    shown = {
        r'src="(.*?)"': "https://raw.githubusercontent.com/someone/bertcli/v1.0.0/",
        r"\]\((.*?)\)": "https://github.com/someone/bertcli/blob/v1.0.0/",
    }
    for pattern, address in shown.items():
        named = re.findall(pattern, before)
        assert len(named) > 1
        assert re.findall(pattern, text) == [address + name for name in named]
        assert all((ROOT / name).exists() for name in named)
    assert len(text.splitlines()) == len(before.splitlines())


def test_an_image_is_built_from_what_the_wheel_needs() -> None:
    lines = [line.split() for line in (ROOT / ".github/Containerfile").read_text("utf-8").splitlines()]
    copied = {name for words in lines if words[:1] == ["COPY"] and "--from=build" not in words for name in words[1:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    of_project = (project["project"]["readme"], *project["project"]["license-files"])
    needed = {"pyproject.toml", *of_project, *wheel["packages"], *wheel["force-include"]}
    assert {name.partition("/")[0] for name in needed} == copied
