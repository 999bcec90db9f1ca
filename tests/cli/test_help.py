"""Help of every command: whole (--help), short (-h), what it offers, and how it answers names that are nearly right."""

import re
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.options_of_commands import options_of
from helpers.terminal import Result, bertcli

import bertcli as library
from bertcli import extensions
from bertcli.cli.app import application
from bertcli.cli.other_tools import CALLED_OTHERWISE, MEANT_OPTIONS
from bertcli.tasks.registry import specs

GROUP: Any = typer.main.get_command(application())
NAMES = [*GROUP.commands]
IN_80 = {"COLUMNS": "80"}


def error(result: Result) -> str:
    """What a wrong use is told, without the box around it."""
    assert (result.status, result.out) == (2, "")
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.err).split())


@pytest.mark.parametrize("command", ["", *NAMES])
def test_help_short_fits_a_terminal(command: str) -> None:
    result = bertcli(*filter(None, [command]), "-h", environment=IN_80)
    lines = result.out.splitlines()
    assert result.status == 0
    assert len(lines) <= (42 if command else 52)
    assert max(map(len, lines)) <= 80
    assert "--help" in " ".join(lines[-2:])
    assert not [line for line in lines if line.endswith("…") and line[-2] != " "], "this text is cut"
    words = " ".join(lines)
    assert words.count("(") == words.count(")"), "a sentence ends within parentheses"


SHARED_NAMES = {"--input", "--output", "--model", "--column", "--format", "--resume", "--engine", "--max-length"}
# What is a command's own, of options that stand below a heading of many commands' elsewhere.
OWN_NAMES = {
    "encode": ["--dtype", "--pooling", "--layer", "--sparse"],
    "classify": ["--choices", "--candidates", "--top-k"],
    "answer": ["--context", "--context-column", "--no-answer"],
    "rank": ["--query-column", "--top-k"],
    "search": ["--input", "--index", "--hybrid"],
    "params": ["--variant", "--config", "--formulas"],
    "evaluate": ["--task", "--by", "--metric"],
}


@pytest.mark.parametrize("command", NAMES)
def test_help_short_shows_the_options_that_a_command_declares_itself(command: str) -> None:
    page = bertcli(command, "-h", environment=IN_80).out
    assert f"bertcli {command}" in page.split("\n\n")[2]
    shown = {*re.findall(r"^  (?:-\w, )?(--[\w-]+)", page, re.MULTILINE)}
    assert {*OWN_NAMES.get(command, [])} <= shown
    # search and export have a meaning of their own for what others share.
    own = {"search": {"--input", "--column"}, "export": {"--output"}}
    assert not shown & (SHARED_NAMES - own.get(command, set()) - {"--max-length"})
    whole = bertcli(command, "--help", environment=IN_80).out
    count = len([name for name in options_of()[command] if name.startswith("--")])
    assert "--help shows" in page.splitlines()[-1] or "--help shows" in page.splitlines()[-2]
    assert count >= len(shown)
    for name in shown:
        assert re.search(rf"^  (-\w, )?{name}\b", whole, re.MULTILINE), name


@pytest.mark.parametrize("command", NAMES)
def test_help_whole_has_every_option_and_loses_no_text(command: str) -> None:
    pages = [bertcli(command, "--help", environment={"COLUMNS": width}).out for width in ("80", "200")]
    assert all(len(line) <= 80 for line in pages[0].splitlines() if not line.startswith("  bertcli"))
    for page in pages:
        words = " ".join(page.split())
        for parameter in GROUP.commands[command].params:
            if not parameter.hidden:
                assert parameter.help
                assert " ".join((parameter.help or "").split()) in words
                assert all(name in words for name in parameter.opts if name.startswith("-"))
    assert " ".join(pages[0].split()) == " ".join(pages[1].split())


@pytest.mark.parametrize("command", NAMES)
def test_help_breaks_no_line_of_prose_but_where_it_is_full(command: str) -> None:
    page = bertcli(command, "--help", environment=IN_80).out
    for paragraph in page.split("\n\n")[3:]:
        lines = paragraph.splitlines()
        if lines and not lines[0].startswith(" ") and not lines[0].endswith(":"):
            for line, following in pairwise(lines):
                assert len(line) + 1 + len(following.split()[0]) > 80, line


def test_help_names_the_extras_with_their_brackets() -> None:
    pages = {name: " ".join(bertcli(name, "--help").out.split()) for name in NAMES}
    assert "pip install 'bertcli[serve]'" in pages["serve"]
    assert "pip install 'bertcli[onnx]'" in pages["export"]
    assert '"cosine" [text, text]' in pages["similarity"]
    for page in pages.values():
        assert "pip install 'bertcli'" not in page


def test_help_has_five_groups_and_the_guide() -> None:
    for word in ("-h", "--help"):
        page = bertcli(word, environment=IN_80).out
        headings = re.findall(r"^([A-Z][a-z ]+):$", page, re.MULTILINE)
        page = " ".join(page.split())
        assert headings[:5] == ["Run", "Search", "Inspect", "Interpret", "Evaluate and deploy"]
    assert "Logit lens: what each layer would predict, and when the answer appears." in page
    assert "Activation patching: which layer and token carry the difference between two texts." in page
    for name, declared in extensions.own_commands().items():
        assert declared.summary in page
        assert declared.summary in " ".join(bertcli(name, "--help").out.split())


def test_help_of_a_command_can_be_asked_for_before_its_name() -> None:
    assert bertcli("help", "encode").out == bertcli("encode", "--help").out != ""
    assert bertcli("help").out == bertcli("--help").out != ""
    assert bertcli("-V").out == bertcli("--version").out != ""
    assert "No such command 'nonsense'" in error(bertcli("help", "nonsense"))


def test_help_explains_the_options_of_every_command_once() -> None:
    common = {"--offline", "--cache-dir", "--threads", "--debug"}
    whole = bertcli("--help").out
    assert all(re.search(rf"^  {name}\b", whole, re.MULTILINE) for name in common)
    for name in NAMES:
        assert common <= {*options_of()[name]}
        assert not re.search(
            r"^  (--offline|--cache-dir|--threads|--debug)\b", bertcli(name, "--help").out, re.MULTILINE
        )


def test_help_options_of_every_command_stand_before_or_after_its_name(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    for words in (["--debug", "info", missing], ["info", missing, "--debug"], ["info", "--debug", missing]):
        assert "Traceback" in bertcli(*words).err
    for words in (["--offline", "info", "some/model"], ["info", "some/model", "--offline"]):
        assert "offline" in bertcli(*words).err
        assert "Traceback" not in bertcli(*words).err
    for words in (["--threads", "0", "info"], ["info", "--threads", "0"]):
        assert "--threads" in error(bertcli(*words))


# ------------------------------------------------------------------------------- names of others, and of earlier days


DECLARED: list[Any] = [*specs(), *extensions.own_commands().values()]


@pytest.mark.parametrize("command", [one for one in DECLARED if one.other_words], ids=lambda one: one.name)
def test_help_sends_other_words_to_the_command_that_does_it(command: Any) -> None:
    word, *_ = command.other_words
    assert f"No such command '{word}'. Did you mean '{command.name}'?" in error(bertcli(word, "tea"))


def test_help_sends_each_other_word_to_one_command() -> None:
    words = [word for command in DECLARED for word in command.other_words]
    assert {"embed", "cluster", "ner", "rerank", "perplexity", "flops", "dedupe", "grep"} <= {*words}
    assert len({*words}) == len(words)
    assert not {*words} & {*NAMES}


def test_help_names_the_nearest_command() -> None:
    assert "Did you mean 'encode'?" in error(bertcli("encod", "tea"))


def test_help_answers_an_option_of_other_tools() -> None:
    message = error(bertcli("encode", "a", "--batch-size", "8"))
    assert "Invalid value for --batch-size: texts are put into batches by their numbers of tokens" in message
    assert "Invalid value for --batch-size:" in error(bertcli("tag", "a", "--batch-size=8"))
    assert "--batch-size" in options_of()["trace"]
    assert "--time measures each operation; bertcli doctor has the rates" in error(bertcli("trace", "--estimate"))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("encode a --col body", "there is no option --col. Did you mean --column?"),
        ("search a -k 3", "Did you mean --top-k?"),
        ("heads a --head 3.2", "there is no option --head. Did you mean --layer?"),
        ("search a --queries f", "Did you mean --query-file?"),
        ("search a --vectors v.npy", "stored vectors are given as texts are: -i vectors.npy"),
        ("evaluate a.csv --versus m", "two models are compared where -m is given twice"),
        ("search a --context=2", "Did you mean --lines?"),
        ("search a -r notes", "give -i a folder, or a quoted pattern"),
        ("search -q a", "the query is the first argument"),
        ("classify a --labels b,c", "Did you mean --candidates?"),
        ("fill-mask a --labels b,c", "Did you mean --targets?"),
        ("explain a --target b", "Did you mean --word?"),
        ("fill-mask a --explain", "bertcli explain shows which words speak for a result"),
        ("tag a --json", "write --format json."),
        ("classify a --classifier b", "after the model's name: -m BASE+FILE.safetensors"),
        ("params --html", "the ending of -o decides: -o FILE.html."),
        ("export --format onnx", "a graph is written as .onnx: bertcli export MODEL FILE.onnx"),
        ("params --hidden-size 9", "other sizes stand in a config.json"),
        ("encode a --workers 2", "uses several processes by itself"),
        ("serve --device cuda", "models run on the processor"),
        ("answer a --max-answer-length 3", "an answer has 15 tokens at most; in Python"),
        ("search a --max-length 9", "long passages are searched in parts, and none is cut"),
        ("tokenize a --max-length 9", "no text is cut here: every token is shown"),
        ("similarity a --pooling cls", "vectors are compared as the model makes them"),
        ("similarity a --truncate-dim 8", "bertcli encode -o stores others, for search"),
        ("neighbors -i words.txt", "a pipe with one a line: bertcli neighbors < FILE"),
        # Not where it would be untrue.
        ("serve --json", "No such option: --json"),
        ("serve --workers 2", "No such option: --workers"),
        ("encode a --graph", "No such option: --graph"),
        ("params -o a.csv --output=b.svg", "a run writes one file"),
        ("params bert-large", "Did you mean bertcli params --variant large?"),
    ],
)
def test_help_answers_a_wrong_guess(line: str, answer: str) -> None:
    assert answer in error(bertcli(*line.split()))


def test_help_answers_with_options_that_there_are() -> None:
    offered = {name for options in options_of().values() for name in options}
    assert {*CALLED_OTHERWISE} <= offered
    assert {needed for needed, _ in MEANT_OPTIONS.values() if needed} <= offered


def test_words_without_quotes_are_pointed_out() -> None:
    told = bertcli("fill-mask", "Rome", "is", "in", "[MASK].").err
    assert "Note: 4 texts of one word each; a text of several words stands in quotes." in told
    assert "in quotes" not in bertcli("neighbors", "king", "tea", "dog", "cat").err


def test_help_keeps_the_lines_of_a_list() -> None:
    lines = bertcli("evaluate", "--help", environment={"COLUMNS": "80"}).out.splitlines()
    assert "  triplets         anchor, positive, negative" in lines
    assert any(line.startswith("95 % confidence interval: the range") for line in lines)  # and prose is wrapped


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("params", "bertcli params --variant base --vocab-size 30000 --heads mlm,nsp --style keras"),
        ("trace", "bertcli trace --variant base --seq-len 128 --formulas"),
        ("score", 'bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."'),
    ],
)
def test_help_in_short_shows_the_account_the_operations_and_the_loss(command: str, example: str) -> None:
    assert f"\n\n  {example}\n\n" in bertcli(command, "-h", environment=IN_80).out


def test_the_page_for_who_comes_from_elsewhere_names_what_there_is() -> None:
    """Each command with its options, each method with its keywords, in the column of what is here."""
    page = (Path(library.__file__).parent / "guide" / "coming.md").read_text(encoding="utf-8")
    headings = re.findall("^## (.*)$", page, re.MULTILINE)
    assert headings == [
        "sentence-transformers", "transformers' pipelines", "text-embeddings-inference", "fastembed", "TransformerLens",
        "BertViz", "spaCy", "Presidio", "KeyBERT", "The same, typed",
    ]  # fmt: skip
    here = [line.split(" | ")[1] for line in page.splitlines() if line.startswith("| ")]
    code = [part for cell in here for part in re.findall("`([^`]+)`", cell)]
    commands = [part.split()[1:] for part in code if part.startswith("bertcli ")]
    methods = [match for part in code if (match := re.match(r"model\.(\w+)\((.*)\)$", part))]
    assert len(commands) > 7
    assert len(methods) > 7
    for name, *words in commands:
        for word in words:
            if word.startswith("-"):
                assert word in options_of()[name], (name, word)
    model = library.load()
    for match in methods:
        parameters = signature(getattr(model, match[1])).parameters
        for keyword in re.findall(r"(\w+)=", match[2]):
            assert keyword in parameters, match[0]
