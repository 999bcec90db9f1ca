"""The kinds of this wing: what is alike in models that find entities of types which a request names."""

from collections.abc import Mapping
from typing import ClassVar

from bertcli.kinds.kind import Kind


class NamedTypes(Kind):
    """Entities of types that a request names.

    tasks/compute/tag.py asks for the refusal without labels, and raises it. _called: the name of such models.
    _own_heads: the heads that no family has. _scored: what they score, _marked: what a prompt has beside words.
    """

    _called: ClassVar[str]
    _own_heads: ClassVar[tuple[str, ...]] = ("spans",)
    _scored: ClassVar[str] = "spans"
    _marked: ClassVar[str] = "labels"

    def purpose(self, *, one_label: bool) -> str:
        return f"entities of any type ({self._called})"

    def uses(self) -> tuple[str, ...]:
        return "tag", "entities"

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        return {"spans": "tag --labels"}

    def refusal_without_labels(self, name: str) -> str:
        return (
            f"{name} is a {self._called} model, which finds entities of any type: name the types that you want, as in "
            'labels=["person", "city"] (--labels "person, city").'
        )

    def refusal_in_a_graph(self, head: str) -> str | None:
        if head not in self._own_heads:
            return None
        return (
            f"The scores of {self._scored} depend on the positions of words and {self._marked}, which are no input of "
            "a graph: leave out --head to export the encoder."
        )

    @property
    def note_of_encoder_graph(self) -> str:
        return (
            f"this is the encoder of a {self._called} model, which is what --engine onnx runs; words, spans and the "
            "scores of labels are computed after it, and no graph of bertcli has them."
        )


class NamedTypesAndLabels(NamedTypes):
    """Entities of types, and labels of texts, that a request names."""

    _scored = "spans and of candidates"
    _marked = "marks"

    def purpose(self, *, one_label: bool) -> str:
        return f"entities and labels of any type ({self._called})"

    def uses(self) -> tuple[str, ...]:
        return "tag", "entities", "zero-shot"

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        return {"spans": "tag --labels", "candidate_scores": "classify --candidates"}
