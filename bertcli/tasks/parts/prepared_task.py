"""PreparedTask: base of tasks that give vectors: of texts with a prompt before them, or of chunks (prepared.py)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.texts import Failure, Item, Text
from bertcli.tasks.parts.prepared import Chunking
from bertcli.tasks.running.task import GroupResult, Record, Task, merged
from bertcli.tokens import Tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class PreparedBlock(GroupResult):
    """Consecutive texts: `items`, which are computed, and (only with keep_going) `failures` among them."""

    items: list[Item]
    failures: Sequence[Failure]

    def __repr__(self) -> str:
        first = f" from {self.items[0].index}" if self.items else ""
        texts, failures = number_of(len(self.items), "text"), number_of(len(self.failures), "failure")
        return f"<{type(self).__name__} of {texts}{first}, {failures}>"

    def values(self) -> Iterable[Record]:
        """Yield the fields of each item's record other than those of its text."""
        raise NotImplementedError

    def records(self) -> list[Record]:
        """{index, text, tokens, truncated} and the values.

        `id` follows the index if the text has one; for a part of a text chunk, start and end do, and text is the part.
        """
        computed = [
            {
                **item.named,
                "text": item.chunk_text,
                "tokens": len(item.tokens.ids),
                "truncated": item.tokens.truncated,
                **value,
            }
            for item, value in zip(self.items, self.values(), strict=True)
        ]
        return merged(self.items, computed, self.failures)

    def with_tokenizer(self, tokenizer: Tokenizer) -> Self:
        return replace(self, items=[replace(item, tokens=item.tokens.with_tokenizer(tokenizer)) for item in self.items])


B = TypeVar("B", bound=PreparedBlock)


@dataclass(frozen=True, eq=False, repr=False)
class PreparedTask(Task[B]):
    """A task on texts with a prompt, or in chunks: a text may give several items."""

    remedies_for_cuts: ClassVar[str] = f"{Task.remedies_for_cuts}; encode --chunk makes several vectors of a long text"
    chunking: Chunking | None
    left_out: int

    @property
    def summary(self) -> str:
        """Describe for the user how vectors are made, and why; here: prompt and chunks."""
        left_out = ", and its tokens are left out of the pooling" if self.left_out else ""
        return f"; {quoted(self.prompt)} is prepended to every text{left_out}" if self.prompt else ""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that made the vectors, as JSON, for the notes of a file."""
        return {"prompt": self.prompt}

    @property
    def width(self) -> int:
        """The width of a vector."""
        raise NotImplementedError

    def items(self, numbered: Sequence[tuple[int, Text]]) -> list[Item]:
        """Make one truncated item for each text, or one for each of its chunks."""
        if self.chunking is None:
            return super().items(numbered)
        from bertcli.tasks.parts.chunks import chunks

        tokenizer = self.model.tokenizer
        every = zip(numbered, tokenizer.encode([text.text for _, text in numbered]), strict=True)
        return [
            Item(index, text, tokens, chunk)
            for (index, text), whole in every
            for chunk, tokens in chunks(tokenizer, self.prompt, self.chunking, text, whole)
        ]

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text without tokens to pool besides a prompt that is not pooled."""
        if 0 < self.left_out >= len(item.tokens.ids):
            raise BertcliError(f"The prompt leaves no room for {item.title}: raise max_length (--max-length).")
