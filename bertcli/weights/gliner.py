"""Open the weights of a GLiNER folder: a family of the house with the head that scores spans (network/spans.py).

The family is made here: its network has one more head, its configuration the head's sizes, and its tensors have the
prefix that the library gives a backbone. Source of names and meaning: GLiNER 0.2.29.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from bertcli.engine.span_rows import rows_of_pass
from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.folder.gliner import GLINER_FILE, GlinerSettings
from bertcli.folder.layout import Layout
from bertcli.models.config import Config
from bertcli.models.registry import Family, family, parse_config
from bertcli.network.module import part, setting
from bertcli.network.spans import SpanScores
from bertcli.tracing.dispatch import Array, Integers, untraced
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import open_tensors

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


def open_gliner(layout: Layout) -> NetworkFiles | None:
    """Read the configuration of a GLiNER folder, and open its tensors; None for any other model.

    The vocabulary is as large as the stored embeddings: GLiNER adds tokens to its backbone's. Errors: BertcliError for
    a setting that is not supported, for a backbone of no family of the house, and for damaged weights.
    """
    settings, folder = layout.gliner, layout.folder
    if settings is None:
        return None
    data, file = _backbone_config(folder, settings)
    stored = open_tensors(folder)
    try:
        backbone = parse_config({"vocab_size": 1, **data})
        member = _with_spans(family(backbone.model_type))
        embeddings = stored.get(PREFIX + member.tensor_slices("embeddings.token")[0].name)
        if embeddings is not None and embeddings.shape:
            backbone = replace(backbone, vocab_size=max(1, embeddings.shape[0]))
        config: Config = member.config(**_values(backbone) | {"gliner": settings})
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None
    if not any(name.startswith(SPANS) for name in stored):
        raise BertcliError(
            f"{folder.path} has {GLINER_FILE}, but no tensors of spans ({SPANS}*): fetch the model again."
        )
    return NetworkFiles(config, member, stored)


def _backbone_config(folder: Folder, settings: GlinerSettings) -> tuple[Mapping[str, Any], Path]:
    """Return the backbone's configuration, and the file that has it. Errors: BertcliError if there is none."""
    if settings.encoder_config is not None:
        return settings.encoder_config, folder.file(GLINER_FILE)
    if not folder.has("config.json"):
        raise BertcliError(
            f"{folder.file(GLINER_FILE)} lacks encoder_config, the configuration of {quoted(settings.model_name)}: put "
            "the config.json and the tokenizer of that model into the folder."
        )
    return folder.object("config.json"), folder.file("config.json")


def _values(config: Config) -> dict[str, Any]:
    return {item.name: getattr(config, item.name) for item in fields(config)}


@cache
def _with_spans(member: Family) -> Family:
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
