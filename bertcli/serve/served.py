"""Served: an open model with its names, the uses that it has, and a cache of tasks planned with given options."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Lock
from time import perf_counter
from typing import Any, Literal

from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.model import Model
from bertcli.sentence.config import SentenceConfig
from bertcli.serve.stream import Speed
from bertcli.tasks.compute.task import Task
from bertcli.tasks.options import Windows
from bertcli.tasks.registry import TaskSpec, compute, spec, specs

WARM_WORDS = " and so on" * 40  # a text of about 128 tokens, from which the speed of the model is estimated
MOST_PLANS = 64  # sets of options that are kept ready
# Of a use that is no task's name, the task. "entities" is tag with labels of one's own.
TASKS = {"tokens": "encode", "late": "rank", "zero-shot": "classify", "entities": "tag"}
LABELS: dict[str, Any] = {"labels": ("person", "place")}  # with which a model of that use is checked


OWN_RULES = (  # the tasks whose models are told below by more than their head
    "encode", "encode-sparse", "classify", "rank", "tag", "answer", "fill-mask", "score",
)  # fmt: skip


@cache
def spec_of_use(use: str) -> TaskSpec:
    """The spec of the task behind a use."""
    found = spec(TASKS.get(use, use))
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
    def own(self) -> SentenceConfig:
        """The settings in its sentence-transformers files."""
        return self.model.sentence if self.model.path else SentenceConfig()

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Its uses: names of tasks, and of TASKS, the one that it was made for first."""
        model, own = self.model, self.own
        if model.classifier is not None:
            encodes = own.late is None and own.sparse is None and not own.ranks
            return ("classify", "encode") if encodes else ("classify",)
        if own.late is not None:
            return ("late", "tokens")
        if own.ranks:
            return ("rank",)
        if "classifier" in model.heads and model.config.num_labels == 1 and not own.pooling and own.sparse is None:
            return ("rank", "classify")
        entails = any(label.lower().startswith("entail") for label in model.config.labels)
        vectors = ["encode", "tokens"] if model.config.contextual else ["encode"]
        of_heads = {
            "classifier": ["classify", *["zero-shot"] * entails], "token_classifier": ["tag"], "qa": ["answer"],
            "mlm": ["fill-mask", "score", "encode-sparse"], "spans": ["tag", "entities"],
        }  # fmt: skip
        first = ["encode-sparse"] if own.sparse is not None else vectors if own.pooling or len(vectors) == 1 else []
        if own.tokens is not None:
            first += ["encode-sparse"] * own.gives_sparse + ["late"] * (own.interaction is not None)
        uses = [*first, *(use for head, several in of_heads.items() if head in model.heads for use in several)]
        uses += [task.name for task in specs() if task.name not in OWN_RULES and self._has_head(task)]
        return tuple(dict.fromkeys(uses if own.sparse is not None else [*uses, "encode"]))

    def _has_head(self, task: TaskSpec) -> bool:
        """True if the model has a prediction head that a task needs."""
        head = task.needs(task.options()).head
        return head is None or head in self.model.heads

    @property
    def summary(self) -> str:
        """Its purpose in a few words, for the log and /info."""
        words = {"rank": "reranker", "late": "late interaction", "encode-sparse": "sparse vectors"}
        if self.uses[0] == "encode":
            compared = "" if self.own.compared == "cosine" else f", ranked by cosine (its folder: {self.own.compared})"
            return f"embedding, {self.width}, {'+'.join(self.own.pooling_or_default)}{compared}"
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
