"""Examples of commands for a model: a text that suits it, in the manner of its tasks.

A task's spec has a function that yields an `Example` for each way in which a model may be used with it.
`bertcli.capabilities` asks all specs and keeps those examples that the model can run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel
    from bertcli.tokens import Tokenizer

REVIEW, CAT, DOG = "I loved every minute of it.", "The cat sat on the mat.", "A dog lay on the rug."
QUESTION, CONTEXT = "How tall is the tower?", "The tower is 330 m high."


class Example(NamedTuple):
    """A command, what follows the model in it, and the options of the task that the model must accept."""

    command: str  # "encode --sparse"
    arguments: Sequence[str]
    options: Mapping[str, Any] = {}


class Subject:
    """A model that examples are wanted for, and what the choice of a text depends on.

    runs: whether it can be used for a task (by name) with these options, as the task's command checks before any work.
    """

    def __init__(self, model: "LoadedModel", runs: Callable[..., bool]) -> None:
        self.model, self.runs = model, runs

    @cached_property
    def tokenizer(self) -> "Tokenizer | None":
        """The model's tokenizer; None where it has none that can be used."""
        try:
            return self.model.tokenizer
        except BertcliError:
            return None

    @cached_property
    def sentence(self) -> Any:
        """The model's SentenceConfig; None where its settings do not run."""
        try:
            return self.model.sentence
        except BertcliError:
            return None

    @cached_property
    def ranks(self) -> bool:
        """Whether it can rank documents: a cross-encoder, late interaction, sparse vectors."""
        return self.runs("rank")

    @property
    def mask_token(self) -> str:
        """The model's mask token; BERT's where it has none."""
        return "[MASK]" if self.tokenizer is None else self.tokenizer.mask_token

    def is_sentence_model(self, output: str) -> bool:
        """Whether the folder's settings say that it gives this: "interaction", "gives_sparse", "ranks", …."""
        return self.sentence is not None and bool(getattr(self.sentence, output))


Examples = Callable[[Subject], Iterator[Example]]


def accepts(question: Callable[[], object]) -> bool:
    """Whether a model accepts what is asked of it: the call raises no BertcliError."""
    try:
        question()
    except BertcliError:
        return False
    return True
