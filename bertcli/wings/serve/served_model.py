"""Served: a loaded model with its names, its uses, and a cache of tasks by their options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Lock
from time import perf_counter
from typing import Any, Literal

from bertcli import capabilities
from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.kinds.kind import Kind
from bertcli.model import Model
from bertcli.tasks.options import declared
from bertcli.tasks.registry import TaskSpec, find_use, work_of
from bertcli.tasks.running.task import Task
from bertcli.tasks.tag import OF_TYPES
from bertcli.tasks.window_options import WindowOptions
from bertcli.wings.serve.stream import Speed

# About 128 tokens, from which the speed of the model is estimated.
WARM_WORDS = " and so on" * 40
# Tasks that are kept, each with other options.
MOST_TASKS = 64
# Options of the command alone: the server decides these.
NOT_OF_A_REQUEST = ("keep_going", "workers", "batch_tokens", "truncation")
# Words for the purpose of a model, by its first use; other uses are their own word.
PURPOSES = {"rank": "reranker", "late": "late interaction", "encode-sparse": "sparse vectors"}


_use = cache(find_use)


def spec_of_use(name: str) -> TaskSpec:
    """The spec of the task that computes a use; several uses may have one task."""
    task, _ = _use(name)
    return task


@cache
def options_of(uses: tuple[str, ...]) -> dict[str, str]:
    """The names of the options of these uses, without those of the command alone.

    By each the other use of the task that it makes, if it is true; else "".
    """
    found = [_use(name) for name in uses]
    names = {item.name for task, use in found for item in declared(use.takes or task.options)}
    others = [use for task, _ in found for use in task.every_use if use.name not in uses]
    makes = {name: use.name for use in others for name, value in use.options.items() if value is True}
    return {name: makes.get(name, "") for name in names.difference(NOT_OF_A_REQUEST)}


@dataclass(eq=False)
class Served:
    """A loaded model, and the name that clients see."""

    model: Model
    name: str
    speed: Speed = field(default_factory=Speed)
    # By use, side and options; those used longest ago first.
    _tasks: dict[Any, Task[Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.name.rstrip("/").rpartition("/")[2]

    def is_called(self, name: str) -> bool:
        """True if a request's model name means this model: its name, or the last part of it."""
        return name in (self.name, self.short)

    @cached_property
    def kind(self) -> Kind:
        """What the model gives."""
        return self.model.kind

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Its uses (see capabilities.py); the first is the one that it was trained for."""
        return capabilities.uses(self.model)

    @property
    def summary(self) -> str:
        """Its purpose in a few words, for the line that the server prints."""
        if self.main_use != "encode":
            return PURPOSES.get(self.main_use, self.main_use)
        words = f"embedding, {self.width}, {'+'.join(self.kind.pooling_or_default)}"
        # The routes rank by cosine whatever the model's folder has.
        if self.kind.compared != "cosine":
            words += f", ranked by cosine (its folder: {self.kind.compared})"
        return words

    @property
    def main_use(self) -> str:
        """The use that it was trained for."""
        first, *_ = self.uses
        return first

    @property
    def mask_token(self) -> str | None:
        """What stands for a word that is asked for; None for a model that fills none."""
        return self.model.tokenizer.mask_token if "fill-mask" in self.uses else None

    @property
    def width(self) -> int | None:
        """The width of its vectors; None for a model without vectors."""
        if "encode" not in self.uses:
            return None
        task: Any = self.task_of("encode")
        return int(task.width)

    def task_of(self, use: str, side: Literal["left", "right"] | None = None, **options: Any) -> Task[Any]:
        """The task of a use with these options. Equal options give the same object, since the stream batches by it.

        side: where texts are cut; None: as the model's folder has it. Errors: BertcliError.
        """
        _, of_use = _use(use)
        options = {**of_use.options, **options}
        key = (use, side, repr(sorted(options.items())))
        # May open another model: other requests do not wait for that, so it is not within the lock.
        model = self.model.for_prompt(options.get("prompt_name"))
        with self._lock:
            # Taken out and put back, so that it becomes the one used last.
            task = self._tasks.pop(key, None)
            if task is None:
                task = self._new_task(spec_of_use(use), model, side, options)
            self._tasks[key] = task
            if len(self._tasks) > MOST_TASKS:
                used_longest_ago = next(iter(self._tasks))
                del self._tasks[used_longest_ago]
        return task

    def _new_task(
        self,
        spec: TaskSpec,
        model: Model,
        side: Literal["left", "right"] | None,
        options: dict[str, Any],
    ) -> Task[Any]:
        # Cuts are reported in the answer, not as a warning. Tasks that read windows cut nothing.
        if not issubclass(spec.options, WindowOptions):
            options = {"truncation": "silent", **options}
        if side == "left" and model.tokenizer.chat is not None:
            raise BertcliError(
                "truncation_direction must be right: this model's chat template cannot be cut on the left."
            )
        if side is not None:
            model = replace(model, opened_tokenizer=model.tokenizer.cutting(side))
        return work_of(spec).plan(model, spec.options(**options))

    def opens_model(self, options: Mapping[str, Any]) -> bool:
        """True if planning with these options may open a model with another adapter, which takes a while."""
        layout = self.model.layout
        return layout is not None and layout.for_prompt(options.get("prompt_name")) is not None

    def items_of_ids(self, task: Task[Any], ids: Sequence[Sequence[int]]) -> list[Item]:
        """The items of texts that are sent as ids of the task's vocabulary: queries of a Router may have another one.

        Errors: BertcliError.
        """
        if task.prompt:
            raise BertcliError("This model puts a prompt before each text, which is not possible with ids: send texts.")
        tokenizer = task.model.tokenizer
        items = [Item(index, Text(""), tokenizer.of_ids(one, task.limit)) for index, one in enumerate(ids)]
        for item in items:
            if not item.tokens.ids and not task.may_be_empty:
                raise BertcliError(f"The text at index {item.index} has no ids: send at least one.")
            task.check(item)
        return items

    def check(self) -> None:
        """Compute a text, and measure how fast. Errors: BertcliError for damaged weights, or a model without a task."""
        use = self.main_use
        word = self.model.tokenizer.mask_token if use == "fill-mask" else "text"
        long_text = f"A {word}.{WARM_WORDS}"
        # In a pair the second text is the one that is cut, or read in windows.
        reads_pairs = use in ("rank", "late", "answer")
        text = Text("Which one?", long_text) if reads_pairs else Text(long_text)
        task = self.task_of(use, **(OF_TYPES if "entities" in self.uses else {}))
        group = task.tokenize_group([text], 0)
        # The first time it reads the weights from the disk.
        task.compute(group)
        seconds: list[float] = []
        # Twice, since one of them may be disturbed.
        for _ in range(2):
            begun = perf_counter()
            task.compute(group)
            seconds.append(perf_counter() - begun)
        self.speed.guess(sum(map(task.cost, group.items)), min(seconds))
