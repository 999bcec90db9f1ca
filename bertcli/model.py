"""A model to work with: from a folder or Hub id (`load`), or without weights from a variant's name (`variant`)."""

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from inspect import Signature, getdoc, signature
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from bertcli import extensions
from bertcli.errors import BertcliError, names_checked, no_attribute
from bertcli.files.texts import Pairs, Values, from_values, is_one
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.encode import DenseOptions, EncodeOptions, EncodeSparseOptions
from bertcli.tasks.options import ReadOptions, for_each_text, takes
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.registry import TaskSpec, own_specs, spec, spec_of
from bertcli.tasks.request import Request, run
from bertcli.tracing.dispatch import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bertcli.kinds.sparse_vectors import SparseVector
    from bertcli.tasks.answer import AnswerOptions
    from bertcli.tasks.classify import ClassifyOptions
    from bertcli.tasks.compute.encode import Block
    from bertcli.tasks.fill_mask import FillMaskOptions
    from bertcli.tasks.running.task import Record
    from bertcli.tasks.score import ScoreOptions
    from bertcli.tasks.tag import TagOptions


@dataclass(frozen=True, eq=False, repr=False)
class Model(LoadedModel):
    """An opened model with a method for every task, whose keywords are the options in `bertcli.tasks`.

    What a task says of each text is a record: one text (`str`) gives its record, several give a list of them. Errors:
    BertcliError for a missing head (encode needs none) or an unusable text.
    """

    @takes(DenseOptions)
    def encode(self, texts: Values, options: DenseOptions) -> Array:
        """One vector per text: float32 [text, width]; [width] for one text that is no list.

        With `chunk` a longer text has several vectors, one after the other, and one text has [part, width]. Errors:
        BertcliError for pooling "none" and keep_going, which need `encode_blocks`, too.
        """
        from bertcli.tasks.compute.encode import encode

        vectors = encode(self, texts, options)
        return vectors[0] if is_one(texts) and options.chunk is None else vectors

    @names_checked
    def similarity(self, first: "ArrayLike", second: "ArrayLike") -> Array:
        """Similarities of vectors: [n, width], [m, width] -> float32 [n, m], where a vector [width] counts as one row.

        They are what the model's folder names (similarity_fn_name): cosines, if it names none; larger is more similar.
        Errors: BertcliError for vectors of different widths.
        """
        import numpy as np

        from bertcli.files.search import similarities

        rows, others = (np.atleast_2d(np.asarray(vectors, np.float32)) for vectors in (first, second))
        if rows.shape[1] != others.shape[1]:
            raise BertcliError(f"The vectors have {rows.shape[1]} and {others.shape[1]} numbers: compare equal ones.")
        return similarities(rows, others, self.kind.compared).astype(np.float32)

    @takes(EncodeOptions)
    def encode_blocks(self, texts: Values, options: EncodeOptions) -> "Generator[Block, None, None]":
        """Encode texts as a stream of blocks in input order, so that nothing has to fit in memory.

        A block has `items` (the text and chunk of each vector), `vectors`, `failures` and `records()`.
        """
        return self._results(texts, options)

    @takes(EncodeSparseOptions)
    @for_each_text
    def encode_sparse(self, texts: Values, options: EncodeSparseOptions) -> "list[SparseVector]":
        """Encode each text as a sparse vector (SPLADE): (indices, values) of the vocabulary entries other than 0.

        One text that is no list gives its vector; with `chunk` it gives a list, a vector for each part.
        """
        return [vector for block in self._results(texts, options) for vector in block.vectors]

    @takes(RankOptions)
    def rank(self, query: str | Iterable[str], options: RankOptions) -> "list[Record]":
        """Records {query, corpus_id, score, text}, best first; corpus_id is the number of the document.

        query: one query for all documents; or one for each document, with equal queries adjacent: then the documents of
        a query are ranked among each other. The activation is the one the checkpoint names, else the sigmoid.
        """
        from bertcli.tasks.compute.rank import pairs_of

        return self._records(pairs_of(query, options.documents), options)

    @overload
    def tokenize(  # type: ignore[overload-overlap]
        self, texts: str, pairs: str | None = None, *, max_length: int | None = None
    ) -> "Record": ...
    @overload
    def tokenize(self, texts: Values, pairs: Pairs = None, *, max_length: int | None = None) -> "list[Record]": ...
    @names_checked
    def tokenize(self, texts: Values, pairs: Pairs = None, *, max_length: int | None = None) -> "Record | list[Record]":
        """Tokenize texts: records {index, text, tokens, ids, segments, offsets}, with the special tokens."""
        from bertcli.tasks.compute.tokenize import tokenize

        records = list(tokenize(self.tokenizer, from_values(texts, pairs), max_length))
        return records[0] if is_one(texts) else records

    @overload
    def neighbors(self, words: str, *, top_k: int = 10) -> "Record": ...  # type: ignore[overload-overlap]
    @overload
    def neighbors(self, words: Iterable[str], *, top_k: int = 10) -> "list[Record]": ...
    @names_checked
    def neighbors(self, words: str | Iterable[str], *, top_k: int = 10) -> "Record | list[Record]":
        """Find the nearest pieces in the embedding space: records {token, neighbors: [{token, id, cosine}, …]}."""
        from bertcli.tasks.compute.neighbors import neighbors

        records = list(neighbors(self, [words] if isinstance(words, str) else words, top_k=top_k))
        return records[0] if isinstance(words, str) else records

    def __getattr__(self, name: str) -> Any:
        """Find a method that a wing brings, such as `export`, or a plugin; a plugin's task is a method, too."""
        if not name.startswith("_"):
            task = spec(name)
            if task is not None:
                return MethodType(_method_of(task), self)
            with suppress(KeyError):
                return MethodType(extensions.method(name), self)
        raise no_attribute(f"{type(self).__name__!r} object", name)

    if TYPE_CHECKING:  # the loop at the end makes these methods from the specs; type checkers cannot see that

        @takes(ClassifyOptions)
        @for_each_text
        def classify(self, texts: Values, options: ClassifyOptions) -> "list[Record]": ...
        @takes(FillMaskOptions)
        @for_each_text
        def fill_mask(self, texts: Values, options: FillMaskOptions) -> "list[Record]": ...
        @takes(ScoreOptions)
        @for_each_text
        def score(self, texts: Values, options: ScoreOptions) -> "list[Record]": ...
        @takes(TagOptions)
        @for_each_text
        def tag(self, texts: Values, options: TagOptions) -> "list[Record]": ...
        @takes(AnswerOptions)
        @for_each_text
        def answer(self, questions: Values, options: AnswerOptions) -> "list[Record]": ...

    def _records(self, texts: Values, options: ReadOptions) -> "list[Record]":
        return [record for block in self._results(texts, options) for record in block.records()]

    def _results(self, texts: Values, options: ReadOptions) -> Generator[Any, None, None]:
        """Run the task that the options belong to, and yield its results."""
        spec = spec_of(options)
        second = getattr(options, spec.reads.second) if spec.reads.second else None
        return run(Request(spec, options, from_values(texts, second), lambda: self))


def _method_of(spec: TaskSpec) -> Callable[..., "list[Record]"]:
    """Make the method of a task: it takes texts and options, and returns records. Its docstring is `spec.record`'s.

    One text gives its record, several give a list.
    """

    def method(self: Model, texts: Values, options: Any) -> "list[Record]":
        return self._records(texts, options)

    of_method = signature(method)
    this, texts, options = of_method.parameters.values()
    named = texts.replace(name=f"{spec.reads.text}s")
    whole = Signature([this, named, options], return_annotation=of_method.return_annotation)
    method.__signature__ = whole  # type: ignore[attr-defined]  # what `takes` goes by
    method.__name__ = spec.module
    method.__qualname__ = f"Model.{spec.module}"
    method.__doc__ = f"{getdoc(spec.record)}\n\nOne text that is no list gives its record alone."
    return takes(spec.options)(for_each_text(method))


for _spec in own_specs():
    if not hasattr(Model, _spec.module):  # encode and rank are written above: they do not map texts to records
        setattr(Model, _spec.module, _method_of(_spec))

load, variant = Model.load, Model.variant
