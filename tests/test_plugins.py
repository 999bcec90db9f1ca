"""Plugins: two examples and what `bertcli plugin` writes, installed as anybody would, run through the command.

A broken one harms nothing else.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.checkpoint_files import write_safetensors
from helpers.forked import run as forked
from helpers.json_files import read_json, write_json
from helpers.little_doctor import MEASURE_LITTLE
from helpers.printed import program_of
from helpers.terminal import bertcli as bertcli_command
from helpers.terminal import wrong_usage
from helpers.vocabulary import write_vocabulary
from numpy.testing import assert_allclose

import bertcli
from bertcli.folder.hub import sample

EXAMPLES = Path(__file__).parent / "examples"
RECORDED = Path(__file__).parent / "reference" / "roformer.npz"
TEXT = "w11 w7 [MASK] w30 w19 w11"  # the recorded ids, without [CLS] and [SEP]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(5, 40))]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, installed by pip without network."""
    root = tmp_path_factory.mktemp("installed")
    sources = []
    for name in ("bertcli-roformer", "bertcli-whitening"):
        # Hatchling writes beside its sources.
        sources.append(str(shutil.copytree(EXAMPLES / name, root / "sources" / name)))
    with contextlib.chdir(root / "sources"):
        assert bertcli_command("plugin", "shout").status == 0
    sources.append(str(root / "sources" / "bertcli-shout"))
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(root / "site"), *sources]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root / "site"


@pytest.fixture(scope="module")
def roformers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded models: Model, ForMaskedLM, ForSequenceClassification."""
    root = tmp_path_factory.mktemp("roformers")
    with np.load(RECORDED) as recorded:
        stored = dict(recorded)
    for name in sorted({key.partition("/")[0] for key in stored} - {"ids"}):
        folder = root / name
        folder.mkdir()
        begin = f"{name}/tensors/"
        tensors = {key.removeprefix(begin): ("F32", stored[key]) for key in stored if key.startswith(begin)}
        write_safetensors(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(str(stored[f"{name}/config"]), encoding="utf-8")
        write_vocabulary(folder, WORDS)
    return root


def run(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with what is in these folders installed."""
    done = forked(code=code, environment={**os.environ, "COLUMNS": "100"}, path=path)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def said(commands: list[list[str]], *path: Path) -> tuple[list[str], str]:
    """What commands print that succeed, and what they say on standard error."""
    done = run(MEASURE_LITTLE + program_of(commands), *path)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [status for status, _ in answers] == [0] * len(commands), done.stderr
    return [out for _, out in answers], done.stderr


def test_a_task_is_a_command_a_method_a_route_and_an_entry_of_info(installed: Path) -> None:
    commands = [
        ["shout", "Hot tea.", "--most", "2", "--format", "json"],
        ["shout", "-h"],
        ["--help"],
        ["info", "bert-mini-mlm", "--format", "json"],
        ["info"],
        ["info", "--format", "json"],
        ["doctor"],
    ]
    (shouted, short, help, of_model, info, infos, doctor), notes = said(commands, installed)
    assert json.loads(shouted) == [{"index": 0, "text": "Hot tea.", "truncated": False, "capitals": ["HOT", "TEA"]}]
    assert "  --most N                   At most N tokens" in short
    assert "\n  shout       Write the tokens of a text in capitals.\n" in help
    plugins = ["bertcli-roformer 0.1.0", "bertcli-shout 0.1.0", "bertcli-whitening 0.1.0"]
    example = {"command": "shout", "example": 'bertcli shout -m bert-mini-mlm "The cat sat on the mat."'}
    assert example in json.loads(of_model)["commands"]
    assert info.endswith(f"\n\nPlugins: {', '.join(plugins)}\n")
    assert json.loads(infos)["plugins"] == plugins
    assert f"\nplugins                   {', '.join(plugins)}\n" in doctor
    assert "Warning" not in notes
    pytest.importorskip("starlette")
    code = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
import bertcli
from helpers.served import serving
model = bertcli.load("bert-mini-mlm")
print(model.shout(["Hot tea."], most=1)[0]["capitals"], model.shout.__doc__)
with serving([model]) as running:
    print(running.given("/shout", {{"inputs": "Hot tea.", "parameters": {{"most": 2}}}})["capitals"])
"""
    method, *_, route = run(code, installed).stdout.splitlines()
    assert method.startswith("['HOT'] Records {index, text, truncated, capitals}")
    assert route == "['HOT', 'TEA']"


def test_a_plugin_that_is_begun_under_another_name_works_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = bertcli_command("plugin", "count")
    assert (begun.status, begun.out) == (0, "")
    assert begun.err == "Wrote bertcli-count (3 kB).\nNext: pip install -e bertcli-count\n"
    folder = tmp_path / "bertcli-count"
    make_beside(folder, "bertcli_count")
    (printed,), _ = said([["count", "Hot tea.", "--format", "csv"]], folder)
    assert printed.splitlines() == ["index,capitals", "0,HOT TEA ."]
    own_test = run("from test_count import *; test_tokens_are_in_capitals()", folder, folder / "tests")
    assert own_test.returncode == 0, own_test.stderr
    again = bertcli_command("plugin", "count")
    assert again.status == 1
    assert "bertcli-count is there already: remove it, or choose another name." in again.err
    for name, why in {
        **dict.fromkeys(("tag", "search", "forward", "work"), "is taken: choose another name."),
        **dict.fromkeys(("Tag", "a-b", "../x", "class", "1st"), "is no name of a command and a module"),
    }.items():
        wrong_usage("plugin", name, why=why)
    assert [path.name for path in tmp_path.iterdir()] == ["bertcli-count"]


def test_a_family_computes_what_transformers_does(installed: Path, roformers: Path) -> None:
    with np.load(RECORDED) as recorded:
        numbers = dict(recorded)
    code = f"""
import json, bertcli
found = {{}}
for name in ("Model", "ForMaskedLM", "ForSequenceClassification"):
    model = bertcli.load(f"{roformers}/{{name}}")
    outputs = model.outputs([{numbers["ids"].tolist()}])
    logits = outputs.get("classifier", outputs.get("mlm"))
    found[name] = [outputs["hidden"].tolist(), None if logits is None else logits.tolist()]
print(json.dumps(found))
"""
    done = run(code, installed)
    assert done.returncode == 0, done.stderr
    for name, (states, logits) in json.loads(done.stdout).items():
        assert_allclose(np.array(states)[0], numbers[f"{name}/states"], atol=1e-5)
        if logits is not None:
            assert_allclose(np.array(logits)[0], numbers[f"{name}/logits"], atol=1e-5)


def test_a_family_is_read_by_every_command(installed: Path, roformers: Path) -> None:
    folder = str(roformers / "ForMaskedLM")
    with np.load(RECORDED) as recorded:
        logits, states = recorded["ForMaskedLM/logits"], recorded["ForMaskedLM/states"]
    encode = ["encode", "-m", folder, "--pooling", "mean", TEXT, "--format", "json"]
    commands = [
        ["fill-mask", "-m", folder, TEXT, "--top-k", "2", "--format", "json"],
        ["params", "-m", folder],
        ["params", "--variant", "roformer-small"],
        ["trace", "-m", folder, TEXT],
        ["info", folder],
        encode,
    ]
    if find_spec("onnxruntime"):
        commands.append([*encode, "--engine", "onnx"])
    (filled, params, variant, trace, info, *vectors), _ = said(commands, installed)
    best = json.loads(filled)[0]["masks"][0]["predictions"][0]
    of_mask = np.exp(logits[3] - logits[3].max())
    assert best["token"] == of_mask.argmax()
    assert_allclose(best["score"], of_mask.max() / of_mask.sum(), atol=1e-5)
    assert "Total params: 5,180\n" in params
    assert "Total params: 17,096,832\n" in variant
    assert "e) projection" in trace
    assert "rotary positions" in trace
    assert "RoFormer, type 'roformer'" in info
    for vector in vectors:
        assert_allclose(json.loads(vector)[0]["embedding"], states.mean(axis=0), atol=1e-5)


FAILING = """
from bertcli.extensions import Extension
EXTENSION = Extension("failing", kinds={"bertcli_whitening.Whitening": "failing"})
def read(layout, modules): return 1 / 0
"""


def test_a_kind_computes_its_vectors_and_its_folder_is_refused_without_it(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "whitened"
    shutil.copytree(sample("bert-mini-sentence"), folder)
    entries = read_json(folder / "modules.json")
    entries.insert(2, {"idx": 9, "name": "9", "path": "9_Whitening", "type": "bertcli_whitening.Whitening"})
    write_json(folder / "modules.json", entries)
    (folder / "9_Whitening").mkdir()
    draw = np.random.default_rng(0)
    mean, matrix = draw.normal(size=256).astype(np.float32), draw.normal(size=(256, 32)).astype(np.float32)
    tensors = {"mean": ("F32", mean), "matrix": ("F32", matrix)}
    write_safetensors(folder / "9_Whitening" / "model.safetensors", tensors)

    model = ["-m", str(folder), "--format", "json"]
    (tmp_path / "notes.txt").write_text("a cup of tea\n", encoding="utf-8")
    search = ["search", "tea", "-i", str(tmp_path / "notes.txt")]
    commands = [["encode", "hot tea", *model], ["info", *model[1:]], [*search, *model]]
    (encoded, info, hits), notes = said(commands, installed)
    plain = bertcli.load("bert-mini-sentence").encode(["hot tea"], normalize=False)[0]
    whitened = (plain - mean) @ matrix
    assert_allclose(json.loads(encoded)[0]["embedding"], whitened / np.linalg.norm(whitened), atol=1e-6)
    assert (json.loads(info)["kind"], json.loads(info)["width"]) == ("whitened sentence vectors", 32)
    assert json.loads(hits)[0]["text"] == "a cup of tea"
    assert "pooling mean, from 1_Pooling/config.json, whitened; vectors of length 1" in notes
    assert "Warning" not in notes

    without = run(program_of([["encode", "tea", *model]]))
    assert "lists the module 'bertcli_whitening.Whitening', which bertcli does not support" in without.stderr
    (folder / "9_Whitening" / "model.safetensors").unlink()
    code = f"""
from pathlib import Path
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
print(*Layout(Folder(Path({str(folder)!r}))).missing_files())
"""
    # A download fetches what is missing.
    assert run(code, installed).stdout == "9_Whitening/config.json 9_Whitening/model.safetensors\n"
    damaged = run(program_of([["encode", "tea", *model]]), installed)
    assert "9_Whitening" in damaged.stderr
    (tmp_path / "failing.py").write_text(FAILING, encoding="utf-8")
    make_beside(tmp_path, "failing")
    failed = run(program_of([["encode", "tea", *model]]), tmp_path)
    assert "and the plugin for it failed (ZeroDivisionError: division by zero): use another version" in failed.stderr
    for done in (without, damaged, failed):
        assert json.loads(done.stdout)[0][0] == 1
        assert "Traceback" not in done.stderr


OTHER = {
    "other": """
from bertcli.extensions import Extension
EXTENSION = Extension("other", names={"twice": "gaze_work"}, methods={"thrice": "gaze_work"}, doctor="gaze_work")
""",
    "gaze_work": """
def twice(x): return 2 * x
def thrice(model, x): return 3 * x
def examine(): return {"gazing": "yes", "numpy": "other"}
""",
}


def test_names_and_findings_come_from_a_plugin(tmp_path: Path) -> None:
    for name, code in OTHER.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    make_beside(tmp_path, "other")
    (doctor,), notes = said([["doctor"]], tmp_path)
    assert "\ngazing                    yes\n" in doctor
    assert f"\nnumpy                     {np.__version__}\n" in doctor
    assert "Warning" not in notes
    code = "import bertcli; print(bertcli.twice(2), bertcli.load().thrice(3), hasattr(bertcli.load(), 'fourfold'))"
    assert run(code, tmp_path).stdout == "4 9 False\n"


ENGINE = {
    "quick": """
from bertcli.extensions import Engine, Extension
EXTENSION = Extension("quick", engines=(Engine("quick", "Quick", "each state is its negative", "quick_engine"),))
""",
    "quick_engine": """
from dataclasses import dataclass
from typing import Any
@dataclass(frozen=True)
class Quick:
    network: Any
    precision: str = "float32"
    def hidden_states(self, batch): return -self.network(batch)
    def exact_enough(self, model): return self
def open_engine(name, network, folder, config, device):
    assert (name, folder.name, config.model_type, device) == ("quick", "bert-mini-mlm", "bert", "cpu")
    return Quick(network)
""",
}


def test_an_engine_comes_from_a_plugin(tmp_path: Path) -> None:
    for name, code in ENGINE.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    make_beside(tmp_path, "quick")
    encode = ["encode", "-m", "bert-mini-mlm", "--pooling", "mean", "tea", "--format", "json"]
    commands = [encode, [*encode, "--engine", "quick"], ["encode", "--help"], ["serve", "--help"]]
    commands.append([*encode, "--engine", "quick", "--layer", "1"])
    (own, quick, help, serve, _), notes = said(commands, tmp_path)
    assert_allclose(json.loads(quick)[0]["embedding"], -np.array(json.loads(own)[0]["embedding"]), atol=1e-6)
    assert " ".join(help.split()).count("on one with VNNI. quick: each state is its negative.") == 1
    assert "else numpy) quick: each state is its negative." in " ".join(serve.split())
    assert "Note: NumPy computes these layers: the graph of Quick only gives the last.\n" in notes
    assert "Warning" not in notes
    done = run(program_of([[*encode, "--engine", "slow"]]), tmp_path)
    (tmp_path / "quick_engine.py").write_text("raise RuntimeError('no\\nno')", encoding="utf-8")
    broken = run(program_of([[*encode, "--engine", "quick"]]), tmp_path)
    assert json.loads(broken.stdout)[0][0] == 1
    assert broken.stderr.splitlines()[-2:] == [
        "Warning: The plugin quick 1.0 cannot be used: RuntimeError: no no.",
        "Error: The engine 'quick' cannot be used: install it again, or use NumPy.",
    ]
    assert "'slow' is not one of 'numpy', 'onnx', 'onnx-int8', 'quick'." in " ".join(
        done.stderr.replace("│", "").split()
    )


# By package: the file that its entry point names, and the warning.
BROKEN = {
    "absent": (None, "ModuleNotFoundError: No module named 'absent'"),
    "raising": ("raise SystemExit('no\\nno')", "SystemExit: no no"),
    "leaving": ("raise SystemExit(0)", "SystemExit: 0"),
    "baseless": ("class Odd(BaseException): pass\nraise Odd('tea')", "Odd: tea"),
    "mute": (
        "class Odd(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Odd",
        "Odd: its text cannot be read: SystemExit",
    ),
    "loud": ("raise ValueError('x' * 1_000_000)", f"ValueError: {'x' * 236}...{'x' * 248}"),
    "telling": ("raise ValueError('a\\x1b[31m\\u202eb')", "ValueError: a\\x1b[31m\\u202eb"),
    "declaring": ("EXTENSION = Extension('x', topics=(Topic(7),))", "AttributeError: 'int' object has no attribute"),
    "shapeless": ("EXTENSION = 'tag'", "its entry point names shapeless, which has no EXTENSION that is an Extension"),
    "folded": (
        "EXTENSION = Extension('x', kind_folders=('x',))",
        "kind_folders are for wings: a plugin reads models by a class in their modules.json (kinds)",
    ),
    "wrongly": ("EXTENSION = Extension('x', commands=['x'])", "commands is no tuple of Command"),
    "mapped": ("EXTENSION = Extension('x', names=('x',))", "names is no mapping of names to modules"),
    "withdrawn": (
        "EXTENSION = Extension('x', views={'gaze': 'gaze_work'})",
        "TypeError: Extension.__new__() got an unexpected keyword argument 'views'",
    ),
    "taking": ("EXTENSION = Extension('x', tasks={'taking.tag': 'taking.work'})", "the command 'tag' is taken"),
    "twin": ("EXTENSION = Extension('x', tasks={'twin.shout': 'twin.work'})", "the command 'shout' is taken"),
    "engaging": ("EXTENSION = Extension('x', engines=(Engine('numpy', '', '', ''),))", "the engine 'numpy' is taken"),
    "pageless": ("EXTENSION = Extension('x', topics=(Topic(Path('/absent.md')),))", "there is no /absent.md"),
    "needing": ("EXTENSION = Extension('x', stands_on=('absent',))", "it needs the wing absent, which is not there"),
    "specless": (
        "EXTENSION = Extension('x', tasks={'json.decoder': 'json'})",
        "json.decoder has no SPEC that is a TaskSpec",
    ),
    "commanding": (
        "EXTENSION = Extension('x', commands=(Command('obey', 'Run', 'Obey.', 'absent'),))",
        "ModuleNotFoundError: No module named 'absent'",
    ),
    "again": (
        "from bertcli.models.bert import FAMILY\nEXTENSION = Extension('x', families=('again',))",
        "the model_type 'bert' is taken",
    ),
    "elsewhere": (
        "from bertcli.tasks.tag import SPEC\nEXTENSION = Extension('x', tasks={'elsewhere': 'absent'})",
        "the options of elsewhere are not in it, but in bertcli.tasks.tag",
    ),
    "inventing": (
        "from dataclasses import dataclass, replace\n"
        "from bertcli.tasks import tag\nfrom bertcli.tasks.registry import InputKind\n"
        "Own = dataclass(frozen=True)(type('Own', (tag.TagOptions,), {'__module__': 'inventing'}))\n"
        "SPEC = replace(tag.SPEC, options=Own, reads=InputKind('sound'))\n"
        "EXTENSION = Extension('x', tasks={'inventing': 'absent'})",
        "the task in inventing reads an input of its own; choose from TEXTS, TEXTS_WITH_IDS, "
        "SINGLE_TEXTS, TEXTS_OR_CHOICES, QUESTIONS, DOCUMENTS",
    ),
    "familial": ("EXTENSION = Extension('x', families=('json',))", "json has no FAMILY that is a Family"),
}
HEAD = "from pathlib import Path\nfrom bertcli.extensions import Command, Engine, Extension, Topic\n"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packages as pip installs them, none of which can be used."""
    root = tmp_path_factory.mktemp("broken")
    for name, (code, _) in BROKEN.items():
        if code is not None:
            (root / f"{name}.py").write_text(HEAD + code, encoding="utf-8")
        make_beside(root, name)
    return root


def make_beside(root: Path, name: str) -> None:
    """Write what pip writes beside a package: its name, its version, its entry point."""
    beside = root / f"{name}-1.0.dist-info"
    beside.mkdir()
    (beside / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (beside / "entry_points.txt").write_text(f"[bertcli]\n{name} = {name}\n", encoding="utf-8")


def test_a_broken_plugin_is_a_line_and_harms_nothing_else(installed: Path, broken: Path) -> None:
    commands = [["shout", "tea", "--format", "json"], ["--help"], ["guide"], ["fill-mask", "-h"]]
    (_, help, *alone), _ = said(commands, installed)
    (_, help_beside, *beside), notes = said(commands, installed, broken)
    assert help_beside.replace("\n  obey        Obey.\n", "\n") == help
    assert beside == alone
    warned = [line for line in notes.splitlines() if line.startswith("Warning: ")]
    late = ("commanding", "again", "familial")  # nothing of these was asked for
    expected = {name: f"Warning: The plugin {name} 1.0 cannot be used: {why}" for name, (_, why) in BROKEN.items()}
    for name, begin in expected.items():
        assert len([line for line in warned if line.startswith(begin)]) == (name not in late), begin
    assert len(warned) == len(expected) - len(late)
    assert "Traceback" not in notes


def test_what_lies_beside_a_package_may_be_anything(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, lines of another form, no name: of each a warning, and the others are used."""
    written = {
        "latin": (b"[bertcli]\nlatin = l\xe4tin\n", b"Name: latin\nVersion: 1.0\n"),
        "equal": (b"[bertcli]\nequal\n", b"Name: equal\nVersion: 1.0\n"),
        "spaced": (b"[bertcli]\nspaced = not a module!\n", b"Name: spaced\nVersion: 1.0\n"),
        "nameless": (b"[bertcli]\nnameless = nameless\n", b""),
        "garbled": (b"[bertcli]\ngarbled = garbled\n", b"Name: g\xe4\nVersion: 1.0\n"),
        "other": (b"\xff\xfe no group of ours", b"Name: other\nVersion: 1.0\n"),
    }
    for name, (entry_points, metadata) in written.items():
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        (tmp_path / f"{name}-1.0.dist-info" / "entry_points.txt").write_bytes(entry_points)
        (tmp_path / f"{name}-1.0.dist-info" / "METADATA").write_bytes(b"Metadata-Version: 2.1\n" + metadata)
    (tmp_path / "useful.py").write_text(HEAD + "EXTENSION = Extension('x', names={'twice': 'useful'})\ntwice = 2\n")
    make_beside(tmp_path, "useful")
    (_, doctor), notes = said([["--help"], ["doctor"]], tmp_path)
    assert "Traceback" not in notes
    for name in ("latin", "equal", "spaced", "nameless"):
        assert notes.count(f"Warning: The plugin {name} 1.0 cannot be used: ") == 1, notes
        assert f"{name} 1.0 (cannot be used: " in " ".join(doctor.split())
    assert "'not a module!' names no module" in notes
    assert "other 1.0" not in notes
    assert "useful 1.0" in doctor
    assert run("import bertcli; print(bertcli.twice)", tmp_path).stdout == "2\n"


HOSTILE_KIND = """
from bertcli.extensions import Extension
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import settings
EXTENSION = Extension("hostile", kinds={{"bertcli_whitening.Whitening": "hostile"}})
class Odd(BaseException): pass
class Hostile(Kind):
    def purpose(self, *, one_label): {purpose}
    def uses(self): {uses}
def read(layout, modules):
    {read}
    return Hostile(**settings(layout, modules))
"""


def test_a_kind_that_fails_ends_the_command_with_the_name_of_its_plugin(tmp_path: Path) -> None:
    folder = tmp_path / "whitened"
    shutil.copytree(sample("bert-mini-sentence"), folder)
    entries = read_json(folder / "modules.json")
    entries.insert(2, {"idx": 9, "name": "9", "path": "9_Whitening", "type": "bertcli_whitening.Whitening"})
    write_json(folder / "modules.json", entries)
    sound = {"purpose": "return 'x'", "uses": "return ('encode',)", "read": "pass"}
    make_beside(tmp_path, "hostile")
    cases = [
        ("read", "raise SystemExit(0)", "and the plugin for it failed (SystemExit: 0): use another version of it."),
        ("uses", "return 1 / 0", "Error: The plugin hostile 1.0 failed, ZeroDivisionError: division by zero (--debug"),
        ("uses", "raise SystemExit(0)", "Error: The plugin hostile 1.0 failed, SystemExit: 0 (--debug shows where)"),
        ("purpose", "raise Odd('tea')", "Error: The plugin hostile 1.0 failed, Odd: tea (--debug shows where): use"),
        ("purpose", "raise ValueError('x' * 1_000_000)", "Error: The plugin hostile 1.0 failed, ValueError: xxxxx"),
    ]
    for place, code, why in cases:
        (tmp_path / "hostile.py").write_text(HOSTILE_KIND.format(**sound | {place: code}), encoding="utf-8")
        done = run(program_of([["info", str(folder)], ["encode", "tea", "-m", str(folder)]]), tmp_path)
        (info, _), (encoded, out) = json.loads(done.stdout)
        assert "Traceback" not in done.stderr
        assert info == (place != "read"), (place, code, done.stderr)  # `info` says why a folder cannot be read
        assert why in done.stderr, done.stderr
        assert len(done.stderr) < 3000
        assert encoded == 1 or (place != "read" and "tea" in out)


def test_what_a_broken_plugin_is_asked_for_is_refused_in_a_line(broken: Path) -> None:
    done = run(program_of([["obey"], ["params", "--variant", "none"], ["info"]]), broken)
    (obeyed, _), (sized, _), (listed, info) = json.loads(done.stdout)
    assert (obeyed, sized, listed) == (2, 2, 0)
    assert "No such command 'obey'" in done.stderr
    assert "Warning: The plugin commanding 1.0 cannot be used: ModuleNotFoundError: No module named 'absent'." in (
        done.stderr.splitlines()
    )
    assert done.stderr.count("The plugin familial 1.0 cannot be used: json has no FAMILY") == 1
    assert "Traceback" not in done.stderr
    for name, (_, why) in BROKEN.items():
        assert name == "twin" or f"{name} 1.0 (cannot be used: {why}" in info


def test_nothing_looks_for_plugins_that_needs_none() -> None:
    commands = [["encode", "tea"], ["params", "--variant", "tiny"], ["trace", "tea"], ["similarity", "a", "b"]]
    code = program_of(commands) + "from bertcli.extensions import plugin; print(plugin._folders.cache_info().misses)"
    assert run(code).stdout.splitlines()[-1] == "0"
    code = program_of([["--help"]]) + "import sys; print('importlib.metadata' in sys.modules)"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert started.stdout.splitlines()[-1] == "False"
