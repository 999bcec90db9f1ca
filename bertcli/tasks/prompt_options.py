"""The options of tasks that give vectors: prompts, and chunks of long texts."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from bertcli.errors import WrongOptions, check_whole
from bertcli.tasks.options import ReadOptions, numbers, option


@dataclass(frozen=True, eq=False, repr=False)
class PromptedOptions(ReadOptions):
    """Options of tasks that give vectors: prompts, and chunks of long texts."""

    _: KW_ONLY
    prompt_name: str | None = option(None, "NAME", "Put the model's prompt of this name before each text.")
    prompt: str | None = option(
        None, "TEXT",
        "Put this before every text; '' for nothing. (default: the model's own prompt, if it has one)",
    )  # fmt: skip
    chunk: int | Sequence[int] | None = option(
        None, "N[,OVERLAP]",
        "Several vectors for a text of more than N tokens, one for each part of it, cut between words; "
        "neighboring parts share up to OVERLAP tokens.", read=numbers("256 or 256,32"),
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt is not None and self.prompt_name is not None:
            raise WrongOptions(
                "Give a prompt or the name of one, not both (prompt, prompt_name; --prompt, --prompt-name).",
                "prompt_name",
                "prompt",
            )
        if self.chunk is None:
            return
        if self.max_length is not None:
            raise WrongOptions(
                "Chunks have a length of their own: leave out max_length (--max-length), or chunk (--chunk).",
                "max_length",
                "chunk",
            )
        for number in self.chunk_sizes:
            check_whole("chunk (--chunk)", number)
        size, *overlap = self.chunk_sizes or [0]
        if len(overlap) > 1 or not 0 <= sum(overlap) < size:
            sizes = ",".join(map(str, self.chunk_sizes))
            raise WrongOptions(
                f"chunk (--chunk) is {sizes}: give a size of 1 or more tokens, or a size and an overlap below it.",
                "chunk",
            )

    @property
    def chunk_sizes(self) -> list[int]:
        """The size of chunks and, if it is given, their overlap."""
        chunk: Any = self.chunk
        return [*chunk] if isinstance(chunk, Sequence) and not isinstance(chunk, str) else [chunk]
