"""What the commands do, from Python: search, tokenize, neighbors, export; and how objects show themselves."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from conftest import Made
from helpers.json_files import write_json_lines
from helpers.recorded import recorded
from helpers.terminal import bertcli
from reference import task_cases as cases
from reference.encode_cases import sparse

import bertcli as library
from bertcli.cli.app import application
from bertcli.tasks.options import declared, types_of
from bertcli.tasks.registry import specs
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.interpret import VIEWS
from bertcli.wings.interpret.command import view_spec

TEXTS = ["a cup of tea", "the dog", "Paris is a city.", "the dog and the cat"]


@pytest.fixture
def vectors(made: Made, tmp_path: Path) -> Path:
    file = tmp_path / "v.npz"
    assert bertcli("encode", "-m", made(seed=7), *TEXTS, "-o", file).status == 0
    return file


PROMISED = recorded("public.json")
# Classes and modules; methods of a pass, which take arrays; those that check the keywords of another function.
NOT_ANSWERED = [
    *("BertConfig", "BertcliError", "Model", "functional", "search", "search_files"),
    *("open", "called", "for_prompt", "hidden_states", "layers_after", "note_layers_after"),
    "padded",
]
# Keywords of other libraries, with what is answered.
OF_OTHERS = {
    "trust_remote_code": "leave it out, since no code of a model's folder is run.",
    "device_map": "leave it out, since models run on the processor.",
    "torch_dtype": "leave it out, since weights are read as they are stored and computed in float32.",
}


def test_library_answers_keywords_of_other_libraries_in_every_call() -> None:
    model: Any = library.load()
    for owner, names in ((library, PROMISED["names"]), (model, PROMISED["methods"])):
        calls = {name: getattr(owner, name) for name in names if name not in NOT_ANSWERED}
        for name, call in calls.items():
            for keyword, answer in OF_OTHERS.items():
                with pytest.raises(TypeError) as raised:
                    call(**{keyword: True})
                assert str(raised.value) == f"{name}() has no option {keyword!r}: {answer}"
    for keyword, ours in (("cache_folder", "cache_dir"), ("local_files_only", "offline"), ("backend", "engine")):
        with pytest.raises(TypeError, match=rf"load\(\) has no option '{keyword}': it is called {ours}\."):
            library.load(**{keyword: True})  # type: ignore[arg-type]
    for keyword, ours in (("input_ids", "ids"), ("token_type_ids", "segments"), ("attention_mask", "mask")):
        with pytest.raises(TypeError, match=rf"forward\(\) has no option '{keyword}': it is called {ours}\."):
            model.forward(**{keyword: [[2, 3]]})
    with pytest.raises(TypeError, match=r"forward\(\) has no option 'output_attentions': bertcli\.trace keeps"):
        model.forward([[2, 3]], output_attentions=True)
    with pytest.raises(TypeError, match=r"params\(\) has no option 'dept'. Did you mean depth\?"):
        library.params(model, dept=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"variant\(\) has no option 'zzz'. Choose from name, config, heads"):
        library.variant(zzz=1)  # type: ignore[call-arg]


def test_library_says_in_words_of_which_type_an_option_is() -> None:
    """Of every task and view, whatever its options are."""
    for options in (*(task.options for task in specs()), *(view_spec(view.name).options for view in VIEWS), Evaluate):
        for item in declared(options):
            # The model sets the bounds of a number without one, and says what it is not.
            if int not in types_of(item.type):
                with pytest.raises(library.BertcliError) as raised:
                    options(**{item.name: object()})
                assert re.search(r"; choose from |which is not (a \w+|True or False)\.$", str(raised.value)), item.name
    with pytest.raises(library.BertcliError, match=r"rename_label is 3, which is not a dict\."):
        library.evaluate("x.csv", [], rename_label=3)  # type: ignore[arg-type]


def test_library_searches_as_the_command(made: Made, vectors: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    write_json_lines(texts, ({"body": text, "id": f"n{i}"} for i, text in enumerate(TEXTS)))
    folder = made(seed=7)
    command = ["search", "-m", str(folder), "dog", "tea", "-i", str(vectors), "--format", "jsonl", "--top-k", "2"]
    plain = library.search(["dog", "tea"], vectors, model=folder, top_k=2)
    assert plain == bertcli(*command).records
    assert [record["query"] for record in plain] == ["dog", "tea"]
    assert [list(hit) for hit in plain[0]["nearest"]] == [["row", "score"]] * 2
    fields = ["-i", str(texts), "--column", "body", "--id-column", "id"]
    model = library.load(folder)
    told = library.search(["dog", "tea"], vectors, model=model, texts=texts, column="body", id_column="id", top_k=2)
    assert told == bertcli(*command, *fields).records
    assert told[0]["nearest"][0]["id"].startswith("n")
    (alone,) = library.search("dog", vectors, model=model, top_k=1)
    assert alone["nearest"][0]["row"] == plain[0]["nearest"][0]["row"]


def test_library_tokenizes_and_finds_neighbors_as_the_commands(made: Made) -> None:
    folder = made()
    model = library.load(folder)
    arguments = ["-m", str(folder), "--format", "jsonl"]
    assert model.tokenize(TEXTS) == bertcli("tokenize", *arguments, *TEXTS).records
    paired = bertcli("tokenize", *arguments, "tea", "--text-pair", "milk").records
    assert [model.tokenize("tea", "milk")] == paired
    assert len(model.tokenize("tea", "milk", max_length=4)["ids"]) == 4
    assert [model.neighbors("king", top_k=3)] == bertcli("neighbors", *arguments, "king", "--top-k", "3").records
    assert [record["token"] for record in model.neighbors(["king", "queen"])] == ["king", "queen"]


def test_one_text_gives_one_result_and_a_list_gives_a_list(made: Made, tmp_path: Path) -> None:
    masks, labels = library.load(), library.load("bert-mini-sentiment")
    tagger, reader = library.load(made(**cases.TAGGER)), library.load(made(**cases.READER))
    splade = library.load(sparse(tmp_path, "max"))
    for_each: dict[str, Any] = {
        "answer": lambda texts: reader.answer(texts, contexts="The king drinks hot tea in Paris."),
        "classify": labels.classify,
        "encode_sparse": splade.encode_sparse,
        "explain": lambda texts: library.explain(labels, texts),
        "fill_mask": masks.fill_mask,
        "keywords": library.load("bert-mini-sentence").keywords,
        "lens": lambda texts: library.lens(masks, texts),
        "neighbors": masks.neighbors,
        "score": masks.score,
        "tag": tagger.tag,
        "tokenize": masks.tokenize,
    }
    assert {spec.module for spec in specs()} - {*for_each} == {"encode", "rank"}
    for name, call in for_each.items():
        text = "tea" if name == "neighbors" else "A hot [MASK]."
        (among_one,) = call([text])
        assert len(call([text, text])) == 2
        alone = call(text)
        assert isinstance(alone, dict) == (name not in ("encode_sparse", "explain", "lens"))
        assert str(alone) == str(among_one)
        assert call([]) == []
    assert len(splade.encode_sparse("hot tea by the river " * 3, chunk=8)) == 3


def test_library_exports_a_file_or_a_folder(made: Made, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model = library.load(made(head="classifier"))
    file = model.export(tmp_path / "m.onnx", opset=21, verify=False)
    assert (file.file, file.outputs, file.difference) == (tmp_path / "m.onnx", ("logits",), None)
    folder = model.export(tmp_path / "web", head="none", verify=False)
    assert folder.file == tmp_path / "web" / "onnx" / "model.onnx"
    assert "last_hidden_state" in folder.outputs
    with pytest.raises(TypeError, match=r"export\(\) has no option 'ops'"):
        model.export(tmp_path / "m.onnx", ops=21)  # type: ignore[call-arg]


def test_library_objects_show_themselves_in_a_line(made: Made) -> None:
    folder = made(seed=7)
    (block,) = library.load(folder).encode_blocks(TEXTS)
    assert repr(block) == "<Block of 4 texts from 0, 0 failures>"
    assert np.asarray(block.vectors).shape[0] == 4


def test_library_warns_by_its_logger_alone() -> None:
    """As the guide says: the program's logging decides; without one Python prints warnings, and no notes."""
    code = (
        "import logging, warnings, bertcli; warnings.simplefilter('error'); "
        "model = bertcli.load('bert-mini-sentence'); "
        "model.encode(['tea ' * 300]); logging.getLogger('bertcli').setLevel(logging.ERROR); model.encode(['a ' * 300])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith("1 of 1 text had more than 256 tokens and lost 46 (see max_length and truncation")


# Where the command line says it otherwise: a flag or "none given" for what Python has a value for.
SAID_OTHERWISE = {
    ("classify", "choices"), ("encode", "layer"), ("keywords", "ngrams"), ("keywords", "stop_words"),
    ("params", "collapse"), ("tag", "ignore"),
}  # fmt: skip


def test_an_option_that_is_not_given_is_the_same_in_python_as_in_the_command() -> None:
    group: Any = typer.main.get_command(application())
    compared = 0
    differ = set()
    for command, of_command in group.commands.items():
        defaults = {option.name: option.default for option in of_command.params}
        for place in (library.Model, library):
            call = getattr(place, command.replace("-", "_"), None)
            parameters = inspect.signature(call).parameters.values() if callable(call) else ()
            for parameter in parameters:
                if parameter.name in defaults and parameter.default is not parameter.empty:
                    compared += 1
                    if parameter.default != defaults[parameter.name]:
                        differ.add((command, parameter.name))
    assert differ == SAID_OTHERWISE
    assert compared > 90
