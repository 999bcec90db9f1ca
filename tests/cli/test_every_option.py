"""Each option of each command that prints a result changes what is printed: a new one fails here until it has a value.

An option that is taken and not passed on is seen by no other test, unless one happens to ask for it.
"""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from conftest import Made
from helpers.bge_m3 import write_bge_m3
from helpers.checkpoints import Sentence
from helpers.draws import FEW, draw
from helpers.json_files import write_json, write_json_lines
from helpers.lines import write_lines
from helpers.options_of_commands import options_of
from helpers.terminal import Result, bertcli
from reference import task_cases as tasks
from reference import view_cases as views

MODELS: dict[str, dict[str, Any]] = {
    "vectors": {"sentence": Sentence(("mean",), normalize=True)},
    "labels": views.LABELS,
    "masks": {"head": "pretraining", "seed": 7},
    "inference": tasks.INFERENCE,
    "choices": {"head": "multiple_choice", "seed": 5},
    "tagger": tasks.TAGGER,
    "reader": tasks.READER,
    "ranker": tasks.RANKER,
}
LONG = " ".join(["tea"] * 30 + ["the", "queen", "sat"] + ["dog"] * 30)  # more tokens than models have positions
MASKED = "the queen drank hot [MASK] with a cat"
QUESTION, CONTEXT = "who?", "the queen walked to the river and the king drank hot tea"
KEYED = "the king of rain drank hot tea in the river and a cat sold bread in the river"
TAGGED = "The king of France visited Paris and the queen sold tea"
PAIR = "'the king drank hot tea' 'the queen drank hot tea'"
# What is typed after a command. Words in capitals are folders of MODELS and files that `folder` has.
BASES = {
    "encode": "-m VECTORS 'hot tea in the river'",
    "similarity": f"-m VECTORS 'hot tea' 'the river' '{LONG}'",
    "search": "-m VECTORS 'hot tea' -i notes.txt --top-k 3",
    "classify": f"-m LABELS '{LONG}'",
    "fill-mask": f"-m MASKS '{MASKED}'",
    "score": "-m MASKS 'an unbelievable cat'",
    "tag": f"-m TAGGER '{TAGGED}'",
    "answer": f"-m READER '{QUESTION}' --context '{CONTEXT}'",
    "rank": f"-m RANKER 'hot tea' 'the river' '{LONG}'",
    "keywords": f"-m VECTORS '{KEYED}'",
    "neighbors": "-m MASKS king",
    "tokenize": "-m MASKS 'hot tea'",
    "params": "--variant tiny",
    "trace": "--variant tiny --seq-len 8",
    "explain": "-m LABELS 'the king drank hot tea'",
    "lens": f"-m MASKS '{MASKED}'",
    "heads": "-m LABELS 'the king drank hot tea'",
    "patch": f"-m LABELS {PAIR}",
    "probe": "-m MASKS -i labelled.csv --folds 3 --format json",
    "diff": "MASKS --versus OTHER 'the king drank hot tea'",
}
ABLATED = f"{BASES['heads']} --ablate"
SIZES = "--batch-size 2 --seq-len 8"
REDACTED = f"{BASES['tag']} --redact"
ZERO_SHOT = "-m INFERENCE 'hot tea' --candidates 'a cat,rain'"
# A value other than the default for each option; another base where the command's own would not show it.
VALUES: dict[str, dict[str, str | tuple[str, str]]] = {
    "": {  # of several commands
        "--max-length": "5",
        "--text-pair": "'a cat sat'",
        "--top-k": "1",
        "--layer": "1",
        "--pooling": "cls",
        "--prompt": "'river '",
        "--prompt-name": "query",
        "--truncate-dim": "4",
        "--normalize": ("-m MASKS 'hot tea'", ""),
        "--no-normalize": "",
        "--chunk": "12",
        "--vocab-size": "1000",
        "--heads": "mlm",
        "--formulas": "",
        "--seq-len": "9",
        "--batch-size": "2",
        "--contrast": "'a dog walks to the river'",
    },
    "encode": {
        "--sparse": ("-m MASKS 'hot tea'", ""),
        "--tokens": ("-m MASKS 'hot tea' --sparse --format json", ""),
        "--chunk": (f"-m VECTORS '{LONG}'", "12"),
    },
    "similarity": {"--min-score": (f"{BASES['similarity']} --top-k 2", "0.999")},
    "search": {
        "--lines": "1",
        "--files-with-matches": "",
        "--hybrid": "",
        "--min-score": "0.99",
        "--query-file": "queries.txt",
        "--rerank": "RANKER",
        "--sparse": ("-m M3 'hot tea' -i notes.txt", ""),
        "--prompt": "'bread '",
        "--prompt-name": "document",
    },
    "classify": {
        "--activation": "sigmoid",
        "--candidates": ("-m INFERENCE 'hot tea'", "'a cat,rain'"),
        "--template": (ZERO_SHOT, "'Here is {}, no {}.'"),
        "--multi-label": (ZERO_SHOT, ""),
        "--choices": ("-m CHOICES 'hot tea' --choices 'a cat,rain'", "--choices 'a dog,rain'"),
    },
    "fill-mask": {
        "--targets": "tea,rain",
        "--joint": ("-m MASKS 'the [MASK] drank [MASK]'", ""),
        "--max-length": (f"-m MASKS 'a [MASK] {LONG}'", "9"),
    },
    "score": {
        "--target": ("-m MASKS 'hot [MASK]' --target 'hot cat'", "--target 'hot tea'"),
        "--within-word": "",
    },
    "keywords": {
        "--ngrams": "1,2",
        "--diversity": "0.9",
        "--stop-words": "none",
        "--candidates": "queries.txt",
    },
    "tag": {
        "--aggregation": "none",
        "--decode": "legal",
        "--ignore": "MISC",
        "--redact": "",
        "--redact-with": (REDACTED, "X"),
        "--only": (REDACTED, "LOC"),
        "--threshold": (REDACTED, "0.9"),
        "--keep-text": (f"{REDACTED} --format jsonl", ""),
    },
    "answer": {
        "--context": (f"-m READER '{QUESTION}' --context 'a cat sat'", f"--context '{CONTEXT}'"),
        "--top-k": "2",
        "--no-answer": (f"{BASES['answer']} --top-k 99", ""),
    },
    "params": {
        "--batch-size": (f"{BASES['params']} --seq-len 8", "2"),
        "--seq-len": (f"{BASES['params']} --batch-size 2", "9"),
        "--dtype": (f"{BASES['params']} {SIZES}", "float16"),
        "--collapse": "",
        "--no-collapse": (f"{BASES['params']} --versus small", ""),
        "--depth": "1",
        "--style": "keras",
        "--variant": ("--variant small", "--variant tiny"),
        "--config": ("--config LABELS/config.json", "--config MASKS/config.json"),
        "--versus": "small",
    },
    "trace": {
        "--all-layers": "",
        "--stats": ("-m MASKS 'hot tea'", ""),
        "--time": ("-m MASKS 'hot tea'", ""),
        "--text-pair": ("-m MASKS 'hot tea'", "'a cat sat'"),
        "--seed": (f"{BASES['trace']} --seed 1 --stats", "--seed 2"),
        "--variant": ("--variant small --seq-len 8", "--variant tiny"),
        "--config": ("--config LABELS/config.json", "--config MASKS/config.json"),
    },
    "explain": {
        "--label": "LABEL_1",
        "--method": "delete",
        "--word": (f"-m MASKS '{MASKED}'", "bread"),
        "--contrast": ("-m VECTORS 'the king drank hot tea' --contrast tea", "--contrast 'a dog walks'"),
    },
    "lens": {"--all": "", "--word": "bread", "--max-length": (f"-m MASKS 'a [MASK] {CONTEXT}'", "9")},
    "heads": {
        "--ablate": "",
        "--label": (ABLATED, "LABEL_1"),
        "--word": (f"-m MASKS '{MASKED}' --ablate", "bread"),
        "--contrast": (ABLATED, "'a dog walks'"),
        "--rollout": "2",
    },
    "patch": {
        "--label": (f"-m LABELS {PAIR}", "--label LABEL_2"),
        "--word": (
            f"-m MASKS '{MASKED}' '{MASKED.replace('queen', 'king')}' --word tea",
            "--word bread",
        ),
        "--foil": (f"-m MASKS '{MASKED}' '{MASKED.replace('queen', 'king')}' --word tea", "bread"),
        "--direction": "noise",
        "--of": "attention",
    },
    "probe": {
        "--folds": "4",
        "--cluster": "text",
        "--words": "--words -i tagged.jsonl",
        "--max-length": ("-m MASKS -i labelled.csv --folds 3", "4"),
        "--label-column": "other",
    },
    "diff": {
        "--versus": ("MASKS --versus MASKS 'hot tea'", "--versus OTHER"),
        "--tolerance": "9",
        "--check": ("MASKS --versus FEWER 'hot tea' --tolerance 9 --check common", "all"),
    },
}
# Options that change nothing of what is printed, or are tried elsewhere.
EXEMPT = {
    "--help --debug --threads": "a result is the same with any of them",
    "--cache-dir --offline": "test_every_command_finds_models_in_the_cache_that_it_is_given",
    "--engine": "test_engine_command.py",
    "--model": "test_hub.py, test_adapter.py, test_classifier.py",
    "--input --column --pair-column --query-column --context-column --id-column --no-header --delimiter":
        "test_every_input.py, test_rows.py",
    "--keep --limit": "test_kept_columns.py",
    "--output --format --resume --keep-going --dtype":
        "test_every_output.py, test_resume.py, test_segments.py, test_keep_going.py, test_quantize.py, test_bge_m3.py",
    "--index": "test_search_command.py, test_search_files.py",
    "--labels --nested": "test_gliner.py",
    "--head": "models here have one",
}  # fmt: skip
EXEMPT_NAMES = {name for names in EXEMPT for name in names.split()}
# These print no result of a model, or have tests of each option: in tests/wings, test_export_command.
OTHER_COMMANDS = {"mcp", "info", "doctor", "guide", "plugin", "export", "serve", "evaluate"}
ELSEWHERE = {
    ("tag", "--multi-label"),  # test_gliner.py
    *(("trace", name) for name in ("--layer", "--contrast")),  # of the page: test_pass_page.py
    ("probe", "--layer"),  # of the page and of a classifier: test_probe.py, test_classifier.py
}


def value_of(command: str, option: str) -> str | tuple[str, str] | None:
    return VALUES.get(command, {}).get(option, VALUES[""].get(option))


CASES = [
    (command, option)
    for command in BASES
    for option in sorted(options_of()[command])
    if option.startswith("--")
    and (command, option) not in ELSEWHERE
    and (option not in EXEMPT_NAMES or option in VALUES.get(command, {}))
]


@pytest.fixture(scope="module")
def folder(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("options")
    for name, keywords in MODELS.items():
        copytree(made(**keywords), root / name.upper())
    copytree(made(head="pretraining", seed=8), root / "OTHER")
    copytree(made(head="model", seed=7), root / "FEWER")
    write_bge_m3(root / "M3")
    copytree(root / "MASKS", root / "DOT")
    (root / "DOT" / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}', encoding="utf-8")
    for name in ("VECTORS", "M3"):
        prompts = {"prompts": {"query": "river ", "document": "hot "}}
        write_json(root / name / "config_sentence_transformers.json", prompts)
    (root / "notes.txt").write_text("the river\nhot tea\na cat sat\nthe queen sold bread\n", encoding="utf-8")
    (root / "queries.txt").write_text("the king\n", encoding="utf-8")
    texts = [
        f"{'the king' if i % 3 else 'a dog'} drank {'hot tea' if i % 2 else 'rain'} with {'a cat ' * (i % 5)}"
        for i in range(15)
    ]
    rows = [f"{text},{'yes' if i % 3 else 'no'},{'yes' if i % 2 else 'no'}" for i, text in enumerate(texts)]
    write_lines(root / "labelled.csv", ["text,label,other", *rows])
    long = [f"{text} {LONG},{label}" for text, label in (row.split(",")[:2] for row in rows)]
    write_lines(root / "long.csv", ["text,label", *long])
    tagged = [
        {"tokens": text.split(), "tags": ["O" if len(word) > 3 else "B-X" for word in text.split()]} for text in texts
    ]
    write_json_lines(root / "tagged.jsonl", tagged)
    with pytest.MonkeyPatch.context() as patched:
        draw(FEW, patched)
        yield root


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[[str, str], Result]:
    """Runs a command with the words of a line; the same line once."""
    known: dict[tuple[str, str], Result] = {}

    def run_once(command: str, line: str) -> Result:
        if (command, line) not in known:
            there = {path.name: str(path) for path in folder.iterdir()}
            placed = []
            for word in shlex.split(line):
                head, slash, rest = word.partition("/")
                placed.append(f"{there.get(head, head)}{slash}{rest}")
            known[command, line] = bertcli(command, *placed)
        return known[command, line]

    return run_once


def test_every_command_and_option_is_tried_or_exempt() -> None:
    assert BASES.keys() == options_of().keys() - OTHER_COMMANDS
    missing = [f"{command} {option}" for command, option in CASES if value_of(command, option) is None]
    assert not missing, f"add values of {', '.join(missing)} to VALUES"
    unknown = [
        f"{command} {option}"
        for command, options in VALUES.items()
        for option in options
        if command and (command, option) not in CASES
    ]
    assert not unknown


@pytest.mark.parametrize(("command", "option"), CASES)
def test_every_option_changes_what_is_printed(command: str, option: str, run: Callable[[str, str], Result]) -> None:
    value: Any = value_of(command, option)
    base = BASES[command]
    if isinstance(value, tuple):
        base, value = value
    plain = run(command, base)
    assert plain.status == 0, plain.err
    given = value if value.startswith("--") else f"{option} {value}"
    changed = run(command, f"{base} {given}")
    expected = {"--check": 1}.get(option, 0)
    assert changed.status == expected, changed.err
    assert (changed.status, changed.out) != (plain.status, plain.out), f"{option} changes nothing"


def test_every_command_takes_the_model_of_the_variable(tmp_path: Path) -> None:
    """Whole, though it has a blank, as the paths of folders may."""
    texts = tmp_path / "texts.csv"
    texts.write_text("text,label\nhot tea,a\ncold tea,b\n", encoding="utf-8")
    given = {
        **{command: line for command, line in BASES.items() if line.startswith("-m ")},
        "params": "",
        "trace": "'hot tea'",
        "export": f"-o {tmp_path / 'exported'}",
        "evaluate": f"{texts}",
        "probe": f"-i {texts}",
        "search": f"'hot tea' -i {texts}",
        "serve": "--port 0",
        "mcp": "",
    }
    takes_none = {"info"}  # a model is an argument
    assert given.keys() == {command for command, options in options_of().items() if "-m" in options} - takes_none
    for command, line in given.items():
        words = shlex.split(line)
        own = words[2:] if words[:1] == ["-m"] else words
        shown = bertcli(command, *own, "--offline", environment={"BERTCLI_MODEL": "/no such/folder b"})
        assert (shown.status, shown.err.count("There is no folder '/no such/folder b'")) == (1, 1), (command, shown)


@pytest.fixture(scope="module")
def cached(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hub's cache in which the models are, as `someone/MASKS`."""
    cache, commit = tmp_path_factory.mktemp("cache"), "0" * 40
    for name in (*MODELS, "OTHER"):
        repository = cache / f"models--someone--{name.upper()}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(commit)
        copytree(folder / name.upper(), repository / "snapshots" / commit)
    return cache


@pytest.mark.parametrize(
    ("command", "line"),
    [
        *((command, line) for command, line in BASES.items() if "--variant" not in line),
        ("params", "-m MASKS"),
        ("params", "--variant tiny --versus MASKS"),
        ("trace", "-m MASKS 'hot tea'"),
        ("info", "MASKS"),
        ("evaluate", "-m VECTORS scored.csv"),
        ("export", "-m VECTORS -o exported"),
        ("search", "-m VECTORS 'hot tea' -i notes.txt --rerank RANKER"),
    ],
)
def test_every_command_finds_models_in_the_cache_that_it_is_given(
    command: str, line: str, folder: Path, cached: Path, tmp_path: Path
) -> None:
    models = {model.name.removeprefix("models--someone--") for model in cached.iterdir()}
    (tmp_path / "scored.csv").write_text("text1,text2,score\nhot tea,a cat,0\na dog,the dog,1\nrain,a river,2\n")
    files = {path.name: str(path) for path in folder.iterdir()}
    files |= {name: str(tmp_path / name) for name in ("exported", "scored.csv")}
    named = [f"someone/{word}" if word in models else files.get(word, word) for word in shlex.split(line)]
    nowhere = {"HF_HUB_CACHE": str(tmp_path / "none")}
    given = bertcli(command, *named, "--offline", "--cache-dir", cached, environment=nowhere)
    assert given.status == 0, given.err
