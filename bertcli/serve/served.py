"""A model that is served: its names, what it can answer, and what computes a task with certain options."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import Any

from bertcli.checkpoint.sentence import SentenceConfig
from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.model import Model
from bertcli.tasks.answer import AnswerOptions
from bertcli.tasks.classify import ClassifyOptions
from bertcli.tasks.compute.task import Task
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.encode_sparse import EncodeSparseOptions
from bertcli.tasks.fill_mask import FillMaskOptions
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.score import ScoreOptions
from bertcli.tasks.tag import TagOptions

MOST_PLANS = 64  # sets of options that are kept ready
TASKS = {  # what computes a use of a model: the name of a task, and the class of its options
    "embed": ("encode", EncodeOptions), "sparse": ("encode_sparse", EncodeSparseOptions), "rank": ("rank", RankOptions),
    "classify": ("classify", ClassifyOptions), "fill-mask": ("fill_mask", FillMaskOptions), "tag": ("tag", TagOptions),
    "answer": ("answer", AnswerOptions), "score": ("score", ScoreOptions),
}  # fmt: skip
ROUTES = {  # of what a model can do, the route that asks for it
    "embed": "/v1/embeddings", "tokens": "/embed_all", "sparse": "/embed_sparse", "rank": "/v1/rerank",
    "late": "/v1/rerank", "classify": "/classify", "zero-shot": "/zero-shot", "fill-mask": "/fill-mask",
    "score": "/score", "tag": "/tag", "answer": "/answer",
}  # fmt: skip


@dataclass(eq=False)
class Served:
    """An open model, and the name that was given for it."""

    model: Model
    name: str
    _plans: "OrderedDict[Any, Task[Any]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def is_called(self, name: str) -> bool:
        """Whether a request that names this means it: its name, or the last part of it."""
        return name in (self.name, self.short)

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.name.rstrip("/").rpartition("/")[2]

    @cached_property
    def own(self) -> SentenceConfig:
        """What its sentence-transformers files say."""
        return self.model.sentence if self.model.path else SentenceConfig()

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """What it can do, of ROUTES, what it was made for first."""
        model, own = self.model, self.own
        if own.late is not None:
            return ("late", "tokens")
        heads = {*model.heads}
        uses = []
        if own.sparse is not None:
            uses.append("sparse")
        elif own.ranks:
            return ("rank",)
        elif "classifier" in heads and model.config.num_labels == 1 and not own.pooling:
            return ("rank", "classify")
        elif own.pooling or not model.config.contextual:
            uses += ["embed", "tokens"] if model.config.contextual else ["embed"]
        if "classifier" in heads:
            uses.append("classify")
            if any(label.lower().startswith("entail") for label in model.config.labels):
                uses.append("zero-shot")
        uses += [use for head, use in (("token_classifier", "tag"), ("qa", "answer")) if head in heads]
        if "mlm" in heads:
            uses += ["fill-mask", "score", *(["sparse"] if own.sparse is None else [])]
        if "embed" not in uses and own.sparse is None:
            uses.append("embed")
        return tuple(uses)

    @property
    def summary(self) -> str:
        """What it is for, in a few words."""
        if self.uses[0] == "embed":
            return f"embedding, {self.width}, {'+'.join(self.own.pooling) or 'mean'}"
        return {"rank": "reranker", "late": "late interaction", "sparse": "sparse vectors"}.get(
            self.uses[0], self.uses[0]
        )

    @property
    def limit(self) -> int:
        """How many tokens of a text it reads."""
        return self.plan("embed", pooling="mean").limit

    @property
    def width(self) -> int | None:
        """How many numbers its vectors have; None for a model that gives none."""
        made: Any = self.plan("embed") if "embed" in self.uses else None
        return None if made is None else int(made.plan.width)

    def plan(self, task: str, **options: Any) -> Task[Any]:
        """What computes a task with these options: the same object for the same ones. Errors: BertcliError."""
        key = task, repr(sorted(options.items()))
        with self._lock:
            made = self._plans.pop(key, None)
            if made is None:
                module, kind = TASKS[task]
                made = import_module(f"bertcli.tasks.compute.{module}").plan(self.model, kind(**options))
            self._plans[key] = made
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return made

    def items(self, task: Task[Any], texts: Sequence[Text]) -> list[Item]:
        """The tokens of each text. Errors: BertcliError for a text that the task cannot use."""
        return task.window(texts, 0).items

    def check(self) -> None:
        """Compute one text. Errors: BertcliError for damaged weights, or a model that can do none of the tasks."""
        use = self.uses[0]
        text = Text("A text.", "Another one." if use in ("rank", "late", "answer") else None)
        if use in ("fill-mask", "score"):
            text = text._replace(text=f"A {self.model.tokenizer.mask_token}.") if use == "fill-mask" else text
        task = self.plan(*{"tokens": ("embed",), "late": ("rank",), "zero-shot": ("classify",)}.get(use, (use,)))
        task.compute(task.window([text], 0))

    def refusal(self, use: str) -> str:
        """Why a request cannot have this of it, and which route would do."""
        routes = list(dict.fromkeys(ROUTES[own] for own in self.uses))
        return f"{self.short} is no model for this route ({use}); what it does: {', '.join(routes)}."


def chosen(models: Sequence[Served], uses: Sequence[str], name: str | None) -> tuple[Served, str]:
    """The model for a request, and which of `uses`, in order of preference, it is for.

    The one it names, or else the first one that fits. Errors: BertcliError if none does.
    """
    named = [served for served in models if name is not None and served.is_called(name)]
    for use in uses:
        for served in named or models:
            if use in served.uses:
                return served, use
    raise BertcliError((named or models)[0].refusal(uses[0]))
