"""Without the wing its models are no models, and all others run as before: it is deleted in a copy of the package."""

import shutil
import subprocess
import sys
from pathlib import Path

from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.gliner25 import write_gliner25
from helpers.package_copy import copy_package
from helpers.terminal import bertcli as command

SCRIPT = """
import contextlib, io, sys
import bertcli
from bertcli.cli.app import application
from importlib import import_module
from pkgutil import walk_packages
for module in walk_packages(bertcli.__path__, "bertcli."):
    if not module.name.startswith("bertcli.__main__"):
        import_module(module.name)
assert bertcli.__file__.startswith(sys.argv[1])
for name in sys.argv[2:]:
    try:
        bertcli.load(name)
    except bertcli.BertcliError as error:
        print(error)
try:
    bertcli.load("bert-mini-mlm").tag(["Ann Lee"], labels=["person"])
except bertcli.BertcliError as error:
    print(error)
print(bertcli.load("bert-mini-sentence").encode(["hot tea"]).shape)
for words in (["tag", "--help"], ["trace", "--help"], ["classify", "--help"]):
    with contextlib.suppress(SystemExit):
        application(words[0])(words, prog_name="bertcli")
"""


def test_all_else_runs_without_the_wing(tmp_path: Path) -> None:
    copy_package(tmp_path)
    shutil.rmtree(tmp_path / "bertcli" / "wings" / "gliner")
    written = {"first": write_gliner, "second": write_gliner2, "third": write_gliner25}
    folders = [write(tmp_path / name) for name, write in written.items()]
    words = [sys.executable, "-c", SCRIPT, str(tmp_path), *map(str, folders)]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env={"COLUMNS": "100"})
    first, second, third, refused, shape, *help = ran.stdout.splitlines()
    assert "no config.json" in first, ran.stderr
    assert "extractor" in second
    assert "extractor" in third
    assert refused.startswith(
        "tag --labels needs a model that finds entities of types that you name, and bert-mini-mlm"
    )
    assert refused.endswith("Choose one that does.")
    assert shape == "(1, 256)"
    # The help is that with the wing, which names none of its models.
    whole = [command(name, "--help", environment={"COLUMNS": "100"}).out for name in ("tag", "trace", "classify")]
    assert "\n".join(help) + "\n" == "".join(whole)
    assert "gliner" not in "".join(whole).lower()
