"""What a model gives is one object: nobody outside asks which kind it is, and a kind goes with its file and line."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from conftest import Made
from helpers.bge_m3 import write_bge_m3
from helpers.checkpoints import make
from helpers.late_folders import write_late
from helpers.modular import write_cross_encoder
from helpers.near import assert_near
from helpers.package_copy import copy_package
from helpers.static_models import write_static

import bertcli
from bertcli import extensions
from bertcli.capabilities import uses
from bertcli.extensions.of_kinds import brought_kinds
from bertcli.folder.folder_types import folder_types
from bertcli.kinds import KINDS
from bertcli.kinds.kind import Kind
from bertcli.models.registry import family
from bertcli.wings.gliner.boundary.family import with_boundaries
from bertcli.wings.gliner.schema.family import with_schema
from bertcli.wings.gliner.spans.family import with_spans

HOME = Path(bertcli.__file__).parent
# The kinds of the house and of wings, as their modules are called; and the folders that they lie in.
MODULES = (*brought_kinds(), *(f"bertcli.kinds.{name}" for name in KINDS))
INSIDE = (HOME / "kinds", *(HOME / "wings" / wing.name for wing in extensions.wings() if wing.kind_folders))
PACKAGES = tuple(f"bertcli.{'.'.join(folder.relative_to(HOME).parts)}." for folder in INSIDE)
OUTSIDE = [path for path in HOME.rglob("*.py") if not {*INSIDE} & {*path.parents}]


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The nodes of a file's syntax tree, parsed once for all tests."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def kind_classes(name: str) -> list[type[Kind]]:
    """The kinds that a file defines."""
    module: Any = import_module(name)
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Kind)]
    return [kind for kind in classes if kind.__module__ == module.__name__]


def test_every_kind_is_a_file_with_a_line() -> None:
    files = [path for folder in INSIDE for path in folder.rglob("*.py") if "\ndef read(layout" in path.read_text()]
    assert {"bertcli." + ".".join(path.relative_to(HOME).with_suffix("").parts) for path in files} == {*MODULES}
    for name in {*MODULES} - {"bertcli.kinds.brought"}:  # whose kinds are the others'
        (kind,) = kind_classes(name)
        assert kind.__doc__
        # Every question has an answer of the base, so that no caller needs to know who is asked.
        own = {question for question in vars(kind) if not question.startswith("_")}
        assert own - {item.name for item in fields(kind)} <= {*dir(Kind)}, kind


def flags(base: type[Kind], kinds: list[type[Kind]]) -> set[str]:
    """The questions that ask which kind it is: answered by yes or no, or with something by a single kind.

    A text is no flag, since it is shown as it is: a refusal, a note.
    """
    names = set()
    for name, question in vars(base).items():
        is_property = isinstance(question, property)
        if name.startswith("_") or not (is_property or callable(question)):
            continue
        answer = get_type_hints(question.fget if is_property else question)["return"]
        answering = [kind for kind in kinds if name in vars(kind)]
        answers_nothing = is_property and answer != str | None and getattr(base(), name) is None
        if answer is bool or (answers_nothing and len(answering) == 1):
            names.add(name)
    return names


def test_no_question_asks_which_kind_it_is() -> None:
    kinds = [kind for name in MODULES for kind in kind_classes(name)]
    assert flags(Kind, kinds) == set()

    class Asked(Kind):
        def ranks(self) -> bool:
            return False

        @property
        def interaction(self) -> Mapping[str, int] | None:
            return None

    class Late(Asked):
        @property
        def interaction(self) -> Mapping[str, int]:
            return {}

    assert flags(Asked, [Late]) == {"ranks", "interaction"}


def test_nobody_outside_asks_which_kind_it_is() -> None:
    classes = {kind.__name__ for name in MODULES for kind in kind_classes(name)}
    own_fields = {item.name for name in MODULES for kind in kind_classes(name) for item in fields(kind)}
    own_fields -= {item.name for item in fields(Kind)}
    assert {"late", "weights_layer", "next_token", "gliner"} <= own_fields
    for path in OUTSIDE:
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES):
                assert node.module not in MODULES, f"{path} imports a kind"
                assert not classes & {alias.name for alias in node.names}, f"{path} imports a kind"
            if isinstance(node, ast.Attribute) and node.attr in own_fields:
                asked = ast.unparse(node.value)
                assert asked.rpartition(".")[2] not in ("kind", "readable_kind"), (
                    f"{path}, line {node.lineno}: {asked}.{node.attr}"
                )


def test_nobody_outside_asks_by_a_head_or_a_file_that_one_kind_has() -> None:
    """`"spans" in model.heads` asks which kind it is, and so do `isinstance` and the name of a kind's file."""
    bert = family("bert")
    made = (with_spans(bert), with_schema(bert), with_boundaries(bert))
    own_heads = {head for member in made for head in member.head_names} - {*bert.head_names}
    assert own_heads == {"spans", "instances", "candidate_scores", "absence"}
    files = {file for folder_type in folder_types() for file in folder_type.files}
    assert {"gliner_config.json", "encoder_config/config.json", "colbert_linear.pt", "artifact.metadata"} <= files
    classes = {kind.__name__ for name in MODULES for kind in kind_classes(name)}
    for path in OUTSIDE:
        for node in nodes(path):
            at = f"{path}, line {getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Compare):
                compared = {term.value for term in (node.left, *node.comparators) if isinstance(term, ast.Constant)}
                assert not compared & own_heads, f"{at}: {ast.unparse(node)}"
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "getattr", "hasattr"):
                names = {term.value for term in node.args if isinstance(term, ast.Constant)}
                assert not names & own_heads, f"{at}: {ast.unparse(node)}"
                assert not classes & {*ast.unparse(node).replace(".", " ").replace(")", " ").split()}, at
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                assert not any(name.split(".")[0] in node.value for name in files), f"{at}: {node.value}"


def test_kinds_are_withdrawn_with_their_files_and_their_lines(tmp_path: Path) -> None:
    """With no kind but the dense one bge-m3's folder is dense, and a table no model; the rest stays."""
    copy_package(tmp_path)
    kinds = tmp_path / "bertcli" / "kinds"
    withdrawn = tuple(name.partition(".")[0] for name in KINDS if name not in ("brought", "dense"))
    assert "several_outputs" in withdrawn
    for name in withdrawn:
        if (kinds / name).is_dir():
            shutil.rmtree(kinds / name)
        else:
            (kinds / f"{name}.py").unlink()
    names = kinds / "__init__.py"
    lines = names.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.lstrip().lstrip('"').startswith(withdrawn)]
    assert len(lines) - len(kept) == 2 * len(withdrawn), "of each one in KINDS, one in the map above it"
    names.write_text("".join(kept), encoding="utf-8")
    folder, table = write_bge_m3(tmp_path / "m3"), tmp_path / "table"
    write_static(table, "root")
    script = f"""
import bertcli
import numpy as np
from bertcli.capabilities import purpose
from importlib import import_module
from pkgutil import walk_packages
for module in walk_packages(bertcli.__path__, "bertcli."):
    if not module.name.startswith(("bertcli.wings.", "bertcli.__main__")):
        import_module(module.name)
assert bertcli.__file__.startswith({str(tmp_path)!r})
model = bertcli.load({str(folder)!r})
print(purpose(model))
np.save({str(tmp_path / "v.npy")!r}, model.encode(["hot tea"]))
for name in ("bert-mini-sentence", "bert-mini-mlm"):
    other = bertcli.load(name)
    assert other.encode(["hot tea"]).shape == (1, 256)
    assert len(other.encode_blocks(["hot tea"], pooling="none").__next__().vectors[0]) == 4
print(len(bertcli.load("bert-mini-mlm").encode_sparse(["hot tea"])[0].indices) > 0)
try:
    bertcli.load({str(table)!r})
except bertcli.BertcliError as error:
    print("no config.json" in str(error))
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["sentence vectors", "True", "True"], ran.stderr
    whole = bertcli.load(folder)
    assert_near(np.load(tmp_path / "v.npy"), whole.encode(["hot tea"]), 1e-6)
    assert whole.kind.relevance is not None


def test_a_classifier_of_one_label_is_mainly_for_ranking(made: Made) -> None:
    """The server takes the first use for the model's own; one of several labels classifies."""
    assert uses(bertcli.load(made(head="classifier", id2label={0: "LABEL_0"}))) == ("rank", "classify")
    assert uses(bertcli.load(made(head="classifier", id2label={0: "no", 1: "yes"})))[0] == "classify"
    # Vectors come first where no head says more: a server then calls it a model for embeddings.
    assert uses(bertcli.load(made())) == ("encode", "keywords")
    assert uses(bertcli.load(made(head="multiple_choice"))) == ("encode", "keywords")
    assert uses(bertcli.load(made(head="pretraining")))[:3] == ("fill-mask", "score", "encode-sparse")


def test_heads_add_no_use_to_a_model_of_pairs_or_of_vectors_of_tokens(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "pairs")
    make(folder, head="mlm", tokenizer="json")
    model = bertcli.load(folder)
    assert "mlm" in model.heads
    assert uses(model) == ("rank",)
    late = bertcli.load(write_late(tmp_path / "late", "modules fixed"))
    assert uses(late) == ("late", "tokens")
    assert late.kind.other_uses(["fill-mask"]) == ()
