"""The family of a GLiNER model: one of models/ with the head that scores spans (network/spans.py).

It is made when such a model is opened: its network has one more head, its configuration the head's sizes, and its
tensors have the prefix that the library gives a backbone. Source of names and meaning: GLiNER 0.2.29.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from bertcli.engine.span_rows import rows_of_pass
from bertcli.folder.gliner import GlinerSettings
from bertcli.models.registry import Family
from bertcli.network.module import part, setting
from bertcli.network.spans import SpanScores
from bertcli.tracing.dispatch import Array, Integers, untraced

PREFIX = "token_rep_layer.bert_layer.model."
SPANS = "span_rep_layer.span_rep_layer."


def _lstm_names() -> Iterator[tuple[str, str]]:
    """Yield the names of torch.nn.LSTM for the parameters of a layer, in both directions."""
    for ours, theirs in (("input", "weight_ih"), ("recurrent", "weight_hh")):
        for begin, end in (("", ""), ("reverse_", "_reverse")):
            yield rf"spans\.lstm\.{begin}{ours}", f"rnn.lstm.{theirs}_l0{end}"
            yield rf"spans\.lstm\.{begin}{ours}_bias", f"rnn.lstm.{theirs.replace('weight', 'bias')}_l0{end}"


NAMES = (
    (r"spans\.projection\.(\w+)", r"token_rep_layer.projection.\1"),
    *_lstm_names(),
    (r"spans\.(start|end)\.inner\.(\w+)", SPANS + r"project_\1.0.\2"),
    (r"spans\.(start|end)\.output\.(\w+)", SPANS + r"project_\1.3.\2"),
    (r"spans\.from_start\.weight", SPANS + "out_project.0.weight[0/2 of columns]"),
    (r"spans\.from_end\.weight", SPANS + "out_project.0.weight[1/2 of columns]"),
    (r"spans\.from_end\.bias", SPANS + "out_project.0.bias"),
    (r"spans\.output\.(\w+)", SPANS + r"out_project.3.\1"),
    (r"spans\.label\.inner\.(\w+)", r"prompt_rep_layer.0.\1"),
    (r"spans\.label\.output\.(\w+)", r"prompt_rep_layer.3.\1"),
)


@cache
def with_spans(member: Family) -> Family:
    """Make the family whose models have the head of spans beside a backbone of this family."""
    network, config = _network(member.network), _config(member.config)
    return replace(
        member, config=config, network=network, prefixes=(PREFIX,), names=(*member.names, *NAMES), variants={}
    )


def _config(base: Any) -> Any:
    """Make the configuration: the backbone's, and the settings of gliner_config.json."""

    class GlinerConfig(base):  # type: ignore[misc]  # a class of each family
        gliner: Any = None

        @cached_property
        def sizes(self) -> dict[str, int]:
            width = self.settings.hidden_size
            return {**super().sizes, "G": width, "J": width // 2, "Z": 2 * width, "Y": 4 * width}

        @property
        def settings(self) -> GlinerSettings:
            found: GlinerSettings = self.gliner
            return found

        @property
        def projects_words(self) -> bool:
            """True if words have another width than the backbone."""
            return bool(self.sizes["H"] != self.sizes["G"])

        @property
        def num_rnn_layers(self) -> int:
            return self.settings.num_rnn_layers

        @property
        def max_width(self) -> int:
            return self.settings.max_width

        @property
        def label_mark(self) -> int:
            """The id of the mark before each label; without one in the settings the last but one, as it was added."""
            index = self.settings.class_token_index
            return int(self.vocab_size) - 2 if index is None else index

    return GlinerConfig


def _network(base: Any) -> Any:
    """Make the network: the backbone's, and the head of spans."""

    class Gliner(base):  # type: ignore[misc]  # a class of each family
        spans: SpanScores | None = part()
        label_mark: int = setting("label_mark")
        max_width: int = setting("max_width")

        def input_rows(self, head: str, batch: Any) -> Integers | None:
            rows: Integers | None = None if head == "spans" else super().input_rows(head, batch)
            return rows

        def predict(self, head: str, hidden: Array, batch: Any) -> Array:
            """A head's logits; of spans those of a pass without words: see `rows_of_pass`."""
            if head == "spans":
                ids, offsets = untraced(batch.ids), untraced(batch.offsets)
                head_of_spans: Any = self.spans
                spans: Array = head_of_spans(hidden, rows_of_pass(ids, offsets, self.label_mark, self.max_width))
                return spans
            logits: Array = super().predict(head, hidden, batch)
            return logits

    return Gliner
