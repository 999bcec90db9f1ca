"""classify --candidates and --choices on the command line."""

from pathlib import Path

import pytest
from conftest import Made
from helpers.json_files import read_json
from helpers.lines import write_lines
from helpers.pipelines import same
from helpers.terminal import bertcli
from reference import task_cases as cases

import bertcli as library

TEXTS = ["Hot tea.", "She sold the house."]


@pytest.fixture
def judge(made: Made) -> Path:
    return made(**cases.INFERENCE)


@pytest.fixture
def chooser(made: Made) -> Path:
    return made(**cases.CHOOSER)


def test_candidates_give_the_records_of_the_library(judge: Path) -> None:
    arguments: list[str | Path] = ["classify", "-m", judge, "--candidates", "tea, money", "--format", "jsonl"]
    model = library.load(judge)
    assert bertcli(*arguments, *TEXTS).records == model.classify(TEXTS, candidates="tea,money")
    expected = model.classify(TEXTS, candidates="tea,money", template="{} it is", multi_label=True, top_k=1)
    more = ["--template", "{} it is", "--multi-label", "--top-k", "1"]
    assert bertcli(*arguments, *more, stdin="\n".join(TEXTS)).records == expected


def test_choices_follow_the_text_or_are_all_arguments(chooser: Path, tmp_path: Path) -> None:
    choices = ["It was cold.", "It was blue."]
    expected = library.load(chooser).classify(TEXTS, choices=choices)
    arguments: list[str | Path] = ["classify", "-m", chooser, "--format", "jsonl"]
    (alone,) = bertcli(*arguments, TEXTS[0], "--choices", *choices).records
    same(alone["labels"], expected[0]["labels"])
    file = tmp_path / "texts.txt"
    write_lines(file, TEXTS)
    assert bertcli(*arguments, "-i", file, "--choices", *choices).records == expected
    assert bertcli(*arguments, "-i", "-", "--choices", *choices, stdin="\n".join(TEXTS)).records == expected


def test_choices_that_differ_by_their_commas_are_no_result_to_continue(chooser: Path, tmp_path: Path) -> None:
    texts, target = tmp_path / "texts.txt", tmp_path / "labels.jsonl"
    texts.write_text("Hot tea.\n", encoding="utf-8")
    found = []
    for choices in (["a cat,rain", "a dog"], ["a cat", "rain,a dog"]):
        run = bertcli("classify", "-m", chooser, "-i", texts, "-o", target, "--choices", *choices, "--resume")
        assert run.status == 0, run.err
        found.append([label["label"] for label in read_json(target)["labels"]])
        assert {*found[-1]} == {*choices}


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("tea --candidates a", 2, "there is no bundled model for classify --candidates"),
        ("tea --choices a", 2, "there is no bundled model for classify --choices"),
        ("-m CHOOSER tea --choices", 2, "give the text, and the choices after it"),
        ("-m bert-mini-sentiment tea --candidates a", 1, "Candidates need a model that tells entailment"),
        ("-m JUDGE tea --candidates a --activation none", 2, "exclude each other"),
    ],
)
def test_candidates_and_choices_refuse_in_a_line(
    line: str, status: int, message: str, judge: Path, chooser: Path
) -> None:
    result = bertcli("classify", *line.replace("JUDGE", str(judge)).replace("CHOOSER", str(chooser)).split())
    assert (result.status, result.out) == (status, "")
    assert message in result.said


def test_alternatives_that_multiply_are_refused_before_they_are_made(judge: Path, chooser: Path) -> None:
    long = "tea " * 5000
    times_places = bertcli("classify", "-m", judge, "tea", "--candidates", long, "--template", "{}" * 499)
    in_all = bertcli("classify", "-m", judge, "tea", "--candidates", "tea" * 10, "--template", "a" * 998 + "{}")
    assert times_places.error == (
        "Error: The candidates (--candidates) in their template (--template) have 9,979,501 characters, more than "
        "2,000,000: shorten them."
    )
    assert "characters" not in in_all.err
    with pytest.raises(library.BertcliError, match=r"choices \(--choices\) have 2,000,001 characters"):
        library.load(chooser).classify("tea", choices=["a", "b" * 2_000_000])
    with pytest.raises(library.BertcliError, match=r"have 2,060,000 characters"):
        library.load(judge).classify("tea", candidates=[f"{i:04}" * 10 for i in range(2000)], template="a" * 990 + "{}")
