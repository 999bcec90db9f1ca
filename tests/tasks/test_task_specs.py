"""A task's spec says what its command prints: every field of every record, with its type."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.json_files import write_json_lines
from helpers.late_folders import write_late
from helpers.terminal import bertcli
from reference import task_cases as cases
from reference.encode_cases import sparse

from bertcli.tasks.options import declared
from bertcli.tasks.registry import Fields, TaskSpec, spec, specs, work_of

LONG = "She poured a cup of hot tea, and the king of France drank it in Paris. " * 3


def misfit(value: Any, kind: Any, at: str = "record") -> str | None:
    """Where a value has another type than said; None if it has none."""
    if isinstance(kind, tuple):
        return None if any(one is value if one is None else misfit(value, one) is None for one in kind) else at
    if isinstance(kind, list):
        if not isinstance(value, list):
            return at
        return next(filter(None, (misfit(one, kind[0], f"{at}[{i}]") for i, one in enumerate(value))), None)
    if isinstance(kind, dict):
        said = {name.removesuffix("?"): of_field for name, of_field in kind.items()}
        needed = [name for name in kind if not name.endswith("?")]
        if not isinstance(value, dict) or not {*needed} <= {*value} <= {*said}:
            return f"{at} {list(value)} for {list(said)}"
        if list(value) != [name for name in said if name in value]:
            return f"{at}: the order {list(value)}"
        return next(filter(None, (misfit(value[name], said[name], f"{at}.{name}") for name in value)), None)
    return None if type(value) is kind else at


def failed(fields: Fields) -> Fields:
    """The record of a text that cannot be used: what is known of it, and why."""
    known = ("index", "id?", "query", "corpus_id", "text", "question", "context")
    said = {name: (fields[name], None) for name in fields if name in known and name not in ("text", "context")}
    said |= {"id?": fields.get("id?", (str, int))} if "index" in fields and "question" not in fields else {}
    rest = [name for name in ("text", "context") if name in fields]
    return said | dict.fromkeys(rest, (str, None)) | {"error": str}


@pytest.fixture(scope="module")
def folders(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    splade, late = (tmp_path_factory.mktemp(name) for name in ("splade", "late"))
    return {
        "TAGGER": made(**cases.TAGGER),
        "READER": made(**cases.READER),
        "RANKER": made(**cases.RANKER),
        "JUDGE": made(**cases.INFERENCE),
        "CHOOSER": made(**cases.CHOOSER),
        "SPARSE": sparse(splade, "max"),
        "LATE": write_late(late, "stanford"),
    }


CASES: list[tuple[str, dict[str, Any]]] = [
    ("encode tea ''", {}),
    ("encode -i IDS --id-column id", {}),
    ("encode -i IDS --id-column id --chunk 16", {"chunk": 16}),
    ("encode tea --pooling none --layer 1", {"pooling": "none"}),
    ("encode -m LATE tea --pooling none", {"pooling": "none"}),
    ("encode -m SPARSE tea --sparse", {"sparse": True}),
    (
        "encode -m SPARSE -i IDS --id-column id --sparse --tokens",
        {"sparse": True, "words": True},
    ),
    ("classify tea 'I loved it.'", {}),
    ("classify -i IDS --id-column id --top-k 1", {"top_k": 1}),
    ("classify tea --text-pair rain --head nsp", {"head": "nsp"}),
    ("classify -m JUDGE tea --candidates tea,money", {"candidates": "tea,money"}),
    ("classify -m CHOOSER tea --choices hot cold", {"choices": ["hot", "cold"]}),
    ("fill-mask 'hot [MASK]' '[MASK] and [MASK]'", {}),
    ("fill-mask 'hot [MASK]' --targets tea,unbelievable", {"targets": "tea,unbelievable"}),
    ("fill-mask '[MASK] and [MASK]' --joint", {"joint": True}),
    (f"score tea '' '{LONG}'", {}),
    ("score 'hot [MASK]' --target 'hot tea'", {"target": "hot tea"}),
    (f"tag -m TAGGER '{LONG}' ''", {}),
    (f"tag -m TAGGER '{LONG}' --aggregation none", {"aggregation": "none"}),
    (f"answer -m READER 'Who?' --context '{LONG}'", {}),
    ("answer -m READER 'Who?' --context Ann. --no-answer --top-k 9", {"no_answer": True}),
    ("rank -m RANKER tea 'hot tea' rain", {}),
    ("rank -m LATE tea 'hot tea' rain", {}),
    (f"keywords '{LONG}' ''", {}),
    ("keywords -i IDS --ngrams 1,2", {"ngrams": (1, 2)}),
]


@pytest.mark.parametrize(("line", "options"), CASES)
def test_specs_say_the_records_of_their_commands(
    line: str, options: dict[str, Any], folders: dict[str, Path], tmp_path: Path
) -> None:
    name, *arguments = shlex.split(line)
    task = known(name)
    ids = tmp_path / "ids.jsonl"
    write_json_lines(ids, ({"id": id, "text": text} for id, text in (("a", "tea"), (7, LONG))))
    places = {"IDS": str(ids), **{name: str(folder) for name, folder in folders.items()}}
    found = bertcli(name, *(places.get(argument, argument) for argument in arguments), "--format", "jsonl")
    assert found.status == 0, found.err
    fields = task.record(task.options(**options))
    assert found.records
    assert [misfit(record, fields) for record in found.records] == [None] * len(found.records)


@pytest.mark.parametrize("name", ["encode", "classify", "fill-mask", "score", "tag", "answer", "rank", "keywords"])
def test_specs_say_what_is_known_of_a_text_that_cannot_be_used(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"text": 3, "question": 3, "context": "tea"}\n')
    model = {"tag": "TAGGER", "answer": "READER", "rank": "RANKER"}.get(name)
    arguments = [*(["-m", str(folders[model])] if model else []), *(["tea"] if name == "rank" else [])]
    found = bertcli(name, *arguments, "-i", file, "--keep-going", "--format", "jsonl")
    assert found.status == 1
    fields = known(name).record(known(name).options())
    (record,) = found.records
    assert misfit({key: record[key] for key in sorted(record)}, _sorted(failed(fields))) is None


def _sorted(fields: Fields) -> Fields:
    return {name: fields[name] for name in sorted(fields, key=lambda name: name.removesuffix("?"))}


def test_specs_with_a_field_too_many_or_of_another_type_are_noticed() -> None:
    fields: Fields = {"index": int, "id?": str, "loss": (float, None), "tokens": [{"token": (int, [int])}]}
    right: dict[str, Any] = {"index": 0, "loss": None, "tokens": [{"token": 1}, {"token": [1, 2]}]}
    assert misfit(right, fields) is None
    several: list[dict[str, Any]] = [
        {"index": 0.0},
        {"index": True},
        {"loss": 1},
        {"more": 1},
        {"tokens": [{"token": "a"}]},
        {"tokens": [{"token": ["a"]}]},
        {"tokens": [{}]},
    ]
    for wrong in several:
        assert misfit(right | wrong, fields) is not None
    assert misfit({"loss": 1.0, "index": 0, "tokens": []}, fields) is not None


def known(name: str) -> TaskSpec:
    found = spec(name)
    assert found is not None
    return found


def test_specs_are_found_without_a_list() -> None:
    names = [one.name for one in specs()]
    assert names == ["encode", "classify", "fill-mask", "score", "tag", "answer", "rank", "keywords"]
    assert known("fill_mask") is known("fill-mask")
    assert spec("params") is None
    assert spec("options") is None
    for one in specs():
        assert callable(work_of(one).plan)
        assert {"max_length", "truncation"} <= {field.name for field in declared(one.options)} | {"truncation"}
        assert one.options.__doc__


def test_specs_options_and_the_library_share_no_name() -> None:
    import bertcli as library

    public = {name for name in library.__all__ if isinstance(getattr(library, name), type)}
    options = {one.options.__name__ for one in specs()}
    records = {name for one in specs() for name, value in vars(work_of(one)).items() if isinstance(value, type)}
    assert "Model" in public
    assert not public & (options | records - {"BertcliError"})
