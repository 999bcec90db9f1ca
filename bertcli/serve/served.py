"""Served: an open model with its names, the uses that it has, and a cache of tasks planned with given options."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Lock
from time import perf_counter
from typing import Any, Literal

from bertcli import capabilities
from bertcli.capabilities import TASK_OF_USE
from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.model import Model
from bertcli.sentence.config import SentenceConfig
from bertcli.serve.stream import Speed
from bertcli.tasks.compute.task import Task
from bertcli.tasks.options import Windows
from bertcli.tasks.registry import TaskSpec, compute, spec

WARM_WORDS = " and so on" * 40  # a text of about 128 tokens, from which the speed of the model is estimated
MOST_PLANS = 64  # sets of options that are kept ready
LABELS: dict[str, Any] = {"labels": ("person", "place")}  # with which a model of that use is checked


@cache
def spec_of_use(use: str) -> TaskSpec:
    """The spec of the task behind a use."""
    found = spec(TASK_OF_USE.get(use, use))
    assert found is not None
    return found


@dataclass(eq=False)
class Served:
    """An open model, and the name that was given for it."""

    model: Model
    name: str
    speed: Speed = field(default_factory=Speed)
    _plans: dict[Any, Task[Any]] = field(default_factory=dict)  # those used longest ago first
    _lock: Lock = field(default_factory=Lock)

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.name.rstrip("/").rpartition("/")[2]

    def is_called(self, name: str) -> bool:
        """True if a request's model name means this model: its name, or the last part of it."""
        return name in (self.name, self.short)

    @cached_property
    def sentence(self) -> SentenceConfig:
        """The settings in its sentence-transformers files."""
        return self.model.sentence if self.model.path else SentenceConfig()

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Its uses (see capabilities.py), the one that it was made for first."""
        return capabilities.uses(self.model)

    @property
    def summary(self) -> str:
        """Its purpose in a few words, for the log and /info."""
        words = {"rank": "reranker", "late": "late interaction", "encode-sparse": "sparse vectors"}
        if self.uses[0] == "encode":
            compared = (
                ""
                if self.sentence.compared == "cosine"
                else f", ranked by cosine (its folder: {self.sentence.compared})"
            )
            return f"embedding, {self.width}, {'+'.join(self.sentence.pooling_or_default)}{compared}"
        return words.get(self.uses[0], self.uses[0])

    @property
    def width(self) -> int | None:
        """The width of its vectors; None for a model without vectors."""
        made: Any = self.plan("encode") if "encode" in self.uses else None
        return None if made is None else int(made.width)

    def plan(self, task: str, side: Literal["left", "right"] | None = None, **options: Any) -> Task[Any]:
        """Plan a task with these options; equal options give the same object, since the stream batches by it.

        side: where texts are cut, if not where the folder says. Errors: BertcliError.
        """
        of_task, key = spec_of_use(task), (task, side, repr(sorted(options.items())))
        if not issubclass(of_task.options, Windows):  # which cut nothing
            options = {"truncation": "silent", **options}
        with self._lock:
            made = self._plans.pop(key, None)
            if made is None:
                model = self.model
                if side == "left" and model.tokenizer.chat is not None:
                    raise BertcliError("truncation_direction: this model's chat template is not cut at its beginning.")
                if side is not None:
                    model = replace(model)
                    vars(model)["tokenizer"] = self.model.tokenizer.cutting(side)
                made = compute(of_task).plan(model, of_task.options(**options))
            self._plans[key] = made
            if len(self._plans) > MOST_PLANS:
                del self._plans[next(iter(self._plans))]
        return made

    def items_of_ids(self, task: Task[Any], ids: Sequence[Sequence[int]]) -> list[Item]:
        """The items of texts that are given as ids of the vocabulary. Errors: BertcliError."""
        if task.prompt:
            raise BertcliError("A prompt belongs before each text, which ids cannot have: send texts.")
        tokenizer = self.model.tokenizer
        items = [Item(index, Text(""), tokenizer.of_ids(one, task.limit)) for index, one in enumerate(ids)]
        for item in items:
            if not item.tokens.ids and not task.may_be_empty:
                raise BertcliError(f"Text {item.index} has no ids.")
            task.check(item)
        return items

    def check(self) -> None:
        """Compute a text, and measure how fast. Errors: BertcliError for damaged weights, or a model without a task."""
        use = self.uses[0]
        long = f"A {self.model.tokenizer.mask_token if use == 'fill-mask' else 'text'}.{WARM_WORDS}"
        task = self.plan(use, **(LABELS if "entities" in self.uses else {}))
        text = Text(long)
        if use in ("rank", "late", "answer"):  # the second text is the one that is cut or read in windows
            text = Text("Which one?", long)
        window = task.window([text], 0)
        task.compute(window)  # reads the weights
        seconds: list[float] = []
        for _ in range(2):  # one of them may be disturbed
            begun = perf_counter()
            task.compute(window)
            seconds.append(perf_counter() - begun)
        self.speed.guess(sum(map(task.cost, window.items)), min(seconds))
