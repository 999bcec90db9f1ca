"""Find the commands that can use a model, with an example each, and the task it was made for.

A task is asked by its own `plan`, which the command runs before any work, so that this answer and the command cannot
disagree. `bertcli info`, the server and error messages read this one answer.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from bertcli import extensions
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.examples import CAT, DOG, Example, Subject, accepts
from bertcli.tasks.registry import find_use, spec, specs, work_of

# Words that a shell takes as they are, and those that it takes in double quotes.
PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
QUOTED = re.compile(r"[^\"$`\\!\n]+")
# Words for `neighbors`: nearly every vocabulary has one of them as a piece.
WORDS = ("king", "tea", "the", "a", "A", "M")
# By a prediction head's name, the purpose of a model that has it. The first that a model has counts.
MADE_FOR = {
    "classifier": "text classifier",
    "token_classifier": "token classifier",
    "qa": "question answering",
    "multiple_choice": "multiple choice",
    "mlm": "masked language model",
    "rtd": "replaced-token detector",
    "nsp": "next-sentence classifier",
}


# Words for what a model was not trained for; of a use that has none here, such as a plugin's, its name.
_WORDS = {"encode": "sentence vectors"}
M = TypeVar("M")


class Capability(NamedTuple):
    """A command that can use a model, and an example as a command line."""

    command: str
    example: str


def commands(model: LoadedModel) -> Iterator[Capability]:
    """Yield the commands that can use a model, each with an example whose text suits it; tasks come first."""

    def runs(task: str, **options: Any) -> bool:
        of_task = spec(task)
        assert of_task is not None
        return accepts(lambda: work_of(of_task).plan(model, of_task.options(**options)).limit)

    subject = Subject(model, runs)
    for task in specs():
        for example in task.examples(subject):
            if runs(task.name, **example.options):
                yield _capability(model, example)
    for example in _other_commands(subject):
        yield _capability(model, example)
    for brought in extensions.answers("examples", "examples", subject):
        for example in brought:
            yield _capability(model, example)


def uses(model: LoadedModel) -> tuple[str, ...]:
    """The uses of a model over HTTP: those that tasks' specs say, the one that it was made for first.

    Its files say what it was made for. Each use is then asked of its task's own `plan`, as the commands are.
    """
    return tuple(_every_use(model))


def _every_use(model: LoadedModel) -> Iterator[str]:
    def runs(name: str) -> bool:
        task, of_task = find_use(name)

        def accepted(given: Mapping[str, Any]) -> bool:
            return accepts(lambda: work_of(task).plan(model, task.options(**of_task.options, **given)).limit)

        return any(map(accepted, of_task.asked))

    return filter(runs, dict.fromkeys(_stated_uses(model)))


def is_trained(model: LoadedModel, uses: Sequence[str]) -> bool:
    """True if a model was trained for one of these uses: what its files state first is among them."""
    return next(_stated_uses(model), None) in uses


def which(models: Iterable[M], trained: Callable[[M], bool], can: Callable[[M], bool]) -> Iterator[M]:
    """Yield the models that a work takes, best first: those that were trained for it, else those that can do it.

    The rule for all that choose: the server among its models, the assistant among those given and the bundled ones.
    Models are asked one after the other, so that a later one need not be open when an earlier one is taken.
    """
    able: list[M] = []
    has_trained = False
    for model in models:
        if not can(model):
            continue
        if trained(model):
            has_trained = True
            yield model
        else:
            able.append(model)
    if not has_trained:
        yield from able


def untrained(model: LoadedModel, uses: Sequence[str]) -> str | None:
    """A note on a model that was given for what it was not trained for; None if it was."""
    if is_trained(model, uses):
        return None
    return (
        f"{model.name} ({purpose(model)}) was not trained for {' or '.join(_WORDS.get(use, use) for use in uses)}: its "
        "similarities may say nothing; leave out -m for the bundled model, which was."
    )


def _stated_uses(model: LoadedModel) -> Iterator[str]:
    """Yield the uses that a model's files speak for, its own first."""
    kind = model.kind
    stated = kind.uses()
    has_one_label = "classifier" in model.heads and model.config.num_labels == 1
    if has_one_label and not kind.pooling and not stated:
        yield from ("rank", "classify")
        return
    yield from stated
    yield from kind.other_uses([*_uses_of_heads(model)])


def _uses_of_heads(model: LoadedModel) -> Iterator[str]:
    """Yield the uses of a model's prediction heads, in the order of MADE_FOR, and of any network.

    Of a head the uses that have a task's name come first.
    """
    uses = [(task.name, use) for task in specs() for use in task.every_use]
    for head in (*filter(model.heads.__contains__, MADE_FOR), ""):
        of_head = [(name, use) for name, use in uses if use.head == head]
        yield from (use.name for name, use in sorted(of_head, key=lambda named: named[0] != named[1].name))


def purpose(model: LoadedModel) -> str:
    """The purpose of a model in a few words, such as "sentence vectors"; "encoder" if its settings cannot be read."""
    try:
        kind = model.kind
    except BertcliError:
        return "encoder"
    one_label = "classifier" in model.heads and model.config.num_labels == 1
    scores_pairs = one_label and model.config.problem_type != "regression"
    own = kind.purpose(one_label=scores_pairs)
    if own:
        return own
    purposes = (words for head, words in MADE_FOR.items() if head in model.heads)
    return next(purposes, "encoder without a head")


def _other_commands(subject: Subject) -> Iterator[Example]:
    """Yield examples of the core's commands that are no task and can use the model."""
    if subject.runs("encode"):
        yield Example("similarity", [CAT, DOG])
    yield Example("params", [])
    yield Example("trace", [CAT] if subject.reads else [])
    if subject.reads and (word := _known_word(subject.model)):
        yield Example("neighbors", [word])
    if subject.reads:
        yield Example("tokenize", [CAT])


def _known_word(model: LoadedModel) -> str | None:
    """The first of WORDS that is one piece of the model's vocabulary; None if none is."""
    unknown = model.tokenizer.special_id("unk")
    for word in WORDS:
        pieces = model.tokenizer.pieces_of(word)
        if len(pieces) == 1 and {*pieces} != {unknown}:
            return word
    return None


def _capability(model: LoadedModel, example: Example) -> Capability:
    """An example as a command line."""
    name, *options = example.command.split()
    named = [model.name] if example.model_is_argument else ["-m", model.name]
    words: Sequence[str] = ["bertcli", name, *options, *named, *example.arguments]
    return Capability(example.command, " ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Quote a word for a shell, in double quotes where they are enough."""
    if PLAIN.fullmatch(word):
        return word
    return f'"{word}"' if QUOTED.fullmatch(word) else shlex.quote(word)
