"""Settings of a GLiNER2 folder (config.json): what the model is like, and which settings are refused.

The backbone's configuration is in encoder_config/config.json. weights.py opens the weights.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.folder.files import Folder, JsonSettings

MODEL_TYPE = "extractor"
BOUNDARY = "boundary"  # the architecture of another kind, boundary/
ENCODER_FILE = "encoder_config/config.json"
# The tokens that the library adds to the backbone's tokenizer, in the order of their ids.
BETWEEN, BEFORE_TEXT, TASK, FIELD, ENTITY, RELATION, LABEL = (
    "[SEP_STRUCT]", "[SEP_TEXT]", "[P]", "[C]", "[E]", "[R]", "[L]",
)  # fmt: skip
DESCRIPTION = "[DESCRIPTION]"
OWN_TOKENS = (BETWEEN, BEFORE_TEXT, TASK, FIELD, ENTITY, RELATION, LABEL, "[EXAMPLE]", "[OUTPUT]", DESCRIPTION)
LAYERS = ("count_lstm", "count_lstm_v2")
# Beside the backbone's. Here, since kind.py asks for them with every model, and network.py is dear to import.
HEADS = ("instances", "spans", "candidate_scores")
WIDTH, MOST_WIDTH = 8, 1000  # the library's default; far above any model


class SchemaSettings(NamedTuple):
    """The settings of a GLiNER2 model, by their names in config.json.

    encoder          the backbone's config.json
    max_width        the largest number of words in an entity
    counting_layer   which layers make the query of a type of entities
    """

    model_name: str
    encoder: Mapping[str, Any]
    max_width: int
    counting_layer: str


def read_settings(folder: Folder) -> SchemaSettings:
    """Read config.json. Errors: BertcliError for a setting that bertcli does not run."""
    config = folder.object("config.json")
    if str(config.get("architecture") or "span").strip().lower() != "span":
        raise config.refused("architecture", "; bertcli runs GLiNER2 models of the architectures span and boundary")
    head = config.get("span_head")
    if head is not None and not isinstance(head, dict):
        raise config.refused("span_head", ", which is not an object")
    spans = JsonSettings({"max_width": config.get("max_width"), **(head or {})}, config.file)
    spans.one_of("span_mode", ("markerV0",))
    width = spans.positive("max_width") or WIDTH
    if width > MOST_WIDTH:
        raise spans.refused("max_width", f"; bertcli runs at most {MOST_WIDTH:,}")
    if config.get("token_pooling") in ("mean", "max"):
        raise config.refused("token_pooling", "; bertcli takes the first piece of a word")
    return SchemaSettings(
        model_name=config.text("model_name", "bert-base-uncased"),
        encoder=folder.object(ENCODER_FILE),
        max_width=width,
        counting_layer=config.one_of("counting_layer", LAYERS),
    )
