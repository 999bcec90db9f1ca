"""Examples of commands that suit a model, with texts in its language and format.

A task's spec has a function that yields an `Example` for each use of the task. `bertcli.capabilities` collects them
from all specs and keeps those that the model can run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.kinds.kind import Kind
    from bertcli.loaded_model import LoadedModel
    from bertcli.tokens import Tokenizer

REVIEW, CAT, DOG = "I loved every minute of it.", "The cat sat on the mat.", "A dog lay on the rug."
QUESTION, CONTEXT = "How tall is the tower?", "The tower is 330 m high."


class Example(NamedTuple):
    """A command, its arguments after the model, and the options of the task that the model must accept.

    model_is_argument: the model stands without -m.
    """

    command: str  # "encode --sparse"
    arguments: Sequence[str]
    options: Mapping[str, Any] = {}
    model_is_argument: bool = False


class Subject:
    """A model to make examples for, with the properties that the choice of a text depends on.

    runs: a function of a task's name and options, true if the task's checks accept the model.
    """

    def __init__(self, model: "LoadedModel", runs: Callable[..., bool]) -> None:
        self.model, self.runs = model, runs

    @cached_property
    def tokenizer(self) -> "Tokenizer | None":
        """The model's tokenizer; None if it has none that can be opened."""
        try:
            return self.model.tokenizer
        except BertcliError:
            return None

    @cached_property
    def kind(self) -> "Kind | None":
        """The kind of the model; None if bertcli refuses its settings."""
        try:
            return self.model.kind
        except BertcliError:
            return None

    @cached_property
    def reads(self) -> bool:
        """True if the model can read texts: it has a tokenizer, and room for a text between special tokens."""
        from bertcli.tasks.running.task import length_limit

        return accepts(lambda: length_limit(self.model, None))

    @property
    def mask_token(self) -> str:
        """The model's mask token; BERT's if it has none."""
        return "[MASK]" if self.tokenizer is None else self.tokenizer.mask_token

    @cached_property
    def stated_uses(self) -> tuple[str, ...]:
        """The uses that the model's settings state, its own first (`Kind.uses`); none if bertcli refuses them."""
        return () if self.kind is None else self.kind.uses()


Examples = Callable[[Subject], Iterator[Example]]


def accepts(question: Callable[[], object]) -> bool:
    """True if the call raises no BertcliError."""
    try:
        question()
    except BertcliError:
        return False
    return True
