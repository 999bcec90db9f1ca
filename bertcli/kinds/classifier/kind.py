"""`OwnClassifier`: labels by a classifier of one's own (-m BASE+FILE.safetensors); all else is as BASE gives it.

It stands on a model of any kind, so it is asked first and asks for the kind of its base.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from bertcli.errors import BertcliError, quoted
from bertcli.folder.layout import Layout
from bertcli.kinds.candidate_labels import CandidateOptions
from bertcli.kinds.classifier.file import ENDING, Classifier, digest_of, read_classifier
from bertcli.kinds.entities import EntityFinder, FinderOptions
from bertcli.kinds.kind import Kind, Steps
from bertcli.kinds.label_scores import LabelScores, OwnLabels
from bertcli.kinds.modules import Modules
from bertcli.kinds.opened import Opened
from bertcli.kinds.read import kind_of
from bertcli.kinds.relevance import RelevanceScore
from bertcli.kinds.sparse_vectors import SparseWeights
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.report.intervals import written

HEAD = "classifier"  # in whose place it is


@dataclass(frozen=True, kw_only=True)
class OwnClassifier(Kind):
    """A classifier in place of the classification head of a model of the kind `base`."""

    base: Kind
    classifier: Classifier

    def purpose(self, *, one_label: bool) -> str:
        return "text classifier"

    def uses(self) -> tuple[str, ...]:
        return ("classify", "encode")

    def other_uses(self, of_heads: Sequence[str]) -> Sequence[str]:
        return ()

    def own_labels(self, model: Opened) -> OwnLabels:
        """Its labels. Errors: BertcliError if it was made for another model."""
        classifier, config = self.classifier, model.config
        digest = digest_of(model.network, model.tokenizer)
        base = model.name.removesuffix(f"+{classifier.file}")
        refusal = classifier.refusal(base, digest, config.num_hidden_layers, config.hidden_size)
        if refusal is not None:
            raise BertcliError(refusal)
        of_another = f"{classifier.file} was made with {quoted(classifier.model)}, which has the same weights."
        return OwnLabels(
            HEAD, classifier.labels, classifier.problem_type, () if classifier.model == base else (of_another,)
        )

    def label_scores(self, head: str) -> LabelScores | None:
        return self.classifier if head == HEAD else None

    def candidate_scorer(self, model: Opened, options: CandidateOptions) -> None:
        raise BertcliError(
            "Candidates are scored by the model's own head: leave them out, or the classifier (-m BASE+FILE)."
        )

    def refusal_in_a_graph(self, head: str) -> str | None:
        if head != HEAD:
            return self.base.refusal_in_a_graph(head)
        return f"{self.classifier.file} stands beside the network, and a graph has only the network: leave it out."

    @property
    def facts(self) -> Mapping[str, Any]:
        classifier = self.classifier
        own = {
            "file": classifier.file,
            "model": classifier.model,
            "layer": classifier.layer,
            "pooling": ",".join(classifier.pooling),
            "normalize": classifier.normalize,
            "prompt": classifier.prompt,
            "limit": classifier.max_length,
            "figures": classifier.figures,
            "made_with": {name: text for name, text in classifier.made.items() if name != "figures"},
        }
        return {**self.base.facts, "classifier": own}

    # ---------------------------------------------------------------------------------------------- as the base answers

    def refusal_of_one_vector(self) -> str | None:
        return self.base.refusal_of_one_vector()

    @property
    def own_pooling(self) -> Literal["auto", "none"]:
        return self.base.own_pooling

    @property
    def compared(self) -> str:
        return self.base.compared

    def steps(self, pooling: str, prompt_name: str | None) -> Steps:
        return self.base.steps(pooling, prompt_name)

    @property
    def layers(self) -> Mapping[str, Dense | LayerNorm]:
        return self.base.layers

    @property
    def relevance(self) -> RelevanceScore | None:
        return self.base.relevance

    @property
    def sparse_weights(self) -> SparseWeights:
        return self.base.sparse_weights

    @property
    def sparse_compared(self) -> str:
        return self.base.sparse_compared

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        return self.base.commands_of_heads

    def refusal_without_labels(self, name: str) -> str | None:
        return self.base.refusal_without_labels(name)

    def entity_finder(self, model: Opened, options: FinderOptions) -> EntityFinder:
        return self.base.entity_finder(model, options)

    def refusal_of_chat(self, name: str) -> str | None:
        return self.base.refusal_of_chat(name)

    @property
    def note_of_encoder_graph(self) -> str | None:
        return self.base.note_of_encoder_graph


def read(layout: Layout, modules: Modules) -> OwnClassifier | None:
    """Read the classifier that was named with a model; None if none was. Errors: BertcliError for an unsound file."""
    folder = layout.folder
    if folder.classifier is None:
        return None
    classifier = read_classifier(folder.classifier)
    base = kind_of(Layout(folder.without_classifier()), modules)
    of_base = {item.name: getattr(base, item.name) for item in fields(Kind)}
    return OwnClassifier(**of_base, base=base, classifier=classifier)


def base_of(file: Path) -> str | None:
    """The name of the model that a file is for, which is given without it; read.py finds this by its name."""
    return read_classifier(file).model if file.suffix == ENDING else None


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table."""
    facts = record.get("classifier")
    if facts is None:
        return
    yield "Classifier", f"{facts['file']}, made with {quoted(facts['model'])}"
    read = f"layer {facts['layer']}" if facts["layer"] else "the embeddings"
    scaled = ", scaled to length 1" if facts["normalize"] else ""
    yield "It reads", f"{read}, pooling {facts['pooling']}{scaled}"
    figures = _figures_in_words(facts["figures"])
    if figures:
        yield "Figures", figures


def _figures_in_words(figures: Mapping[str, Any]) -> str:
    """How good it was on its folds; nothing of a file that does not say it as `probe` writes it."""
    accuracy = figures.get("accuracy")
    numbers = [accuracy.get(end) for end in ("value", "low", "high")] if isinstance(accuracy, dict) else []
    if len(numbers) != 3 or not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
        return ""
    shown = written(dict(zip(("value", "low", "high"), numbers, strict=True)))
    texts, folds, best_of = (figures.get(name) for name in ("texts", "folds", "best_of"))
    return (
        f"accuracy {shown.together} over {quoted(folds)} folds of {quoted(texts)} texts; "
        f"the best of {quoted(best_of)} layers and poolings on these folds"
    )
