"""Settings of a GLiNER2.5 folder (config.json): what the model is like, and which settings are refused.

Source of names, defaults and meaning: GLiNER2 2.1.0. Settings of its losses and of its other heads are not read.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.folder.files import Folder, JsonSettings
from bertcli.wings.gliner.schema.settings import ENCODER_FILE

# Settings of `boundary_head` for which the library has other networks or decoders: the value that runs here, and the
# library's default.
ALONE: dict[str, tuple[Any, Any]] = {
    "candidate_pool": ("shared", "per_query"),
    "candidate_attention_layers": (0, 2),
    "query_attention_layers": (0, 1),
    "content_soft_max_pool": (False, False),
    "use_inside_evidence": (True, True),
    "adaptive_threshold": (False, False),
}
MOST_SIZE, MOST_LAYERS = 1 << 14, 100  # far above any model
# Published models pair 32 boundaries, and score 192 spans, for each type that is asked for.
MOST_PAIRED, MOST_SPANS = 128, 1024
HEADS = ("spans", "candidate_scores", "absence")


class BoundarySettings(NamedTuple):
    """The settings of a GLiNER2.5 model, by their names in config.json.

    encoder   the backbone's config.json
    The others are those of `boundary_head`; has_content: its enable_span_content.
    """

    model_name: str
    encoder: Mapping[str, Any]
    boundary_dim: int
    pair_dim: int
    content_dim: int
    has_content: bool
    refinement_layers: int
    ffn_multiplier: float
    attention_layers: int
    attention_heads: int
    attention_window: int
    pool_boundary_top_k: int
    pool_size: int
    min_pool_per_query: int
    abstention_threshold: float
    pair_temperature: float
    classification_temperature: float
    overlap_policy: str

    @property
    def max_width(self) -> int:
        """Spans of the rows that heads read: single words, since the pool has its own."""
        return 1


def read_boundary(folder: Folder) -> BoundarySettings:
    """Read config.json. Errors: BertcliError for a setting that bertcli does not run."""
    config = folder.object("config.json")
    given = config.get("boundary_head")
    if not isinstance(given, dict):
        raise config.refused("boundary_head", ", which is not an object")
    head = JsonSettings(given, config.file)
    for key, (runs, default) in ALONE.items():
        value = head.get(key, default)
        if value != runs or type(value) is not type(runs):
            shown = JsonSettings({**given, key: value}, config.file)
            raise shown.refused(key, f"; bertcli runs GLiNER2.5 models with {str(runs).lower()}")
    if config.get("token_pooling") in ("mean", "max"):
        raise config.refused("token_pooling", "; bertcli takes the first piece of a word")
    width, heads = _size(head, "boundary_dim", 128), _size(head, "boundary_attention_heads", 4)
    layers = _size(head, "boundary_attention_layers", 0, least=0, most=MOST_LAYERS)
    if layers and width % heads:
        raise head.refused("boundary_attention_heads", f", of which boundary_dim, {width}, is no multiple")
    return BoundarySettings(
        model_name=config.text("model_name", "bert-base-uncased"),
        encoder=folder.object(ENCODER_FILE),
        boundary_dim=width,
        pair_dim=_size(head, "pair_dim", 128),
        content_dim=_size(head, "content_dim", 64),
        has_content=head.flag("enable_span_content", False),
        refinement_layers=_size(head, "boundary_refinement_layers", 1, least=0, most=MOST_LAYERS),
        ffn_multiplier=_number(head, "boundary_ffn_multiplier", 2.0, 100),
        attention_layers=layers,
        attention_heads=heads,
        attention_window=_size(head, "boundary_attention_window", 0, least=0, most=1 << 30),
        pool_boundary_top_k=_size(head, "pool_boundary_top_k", 64, most=MOST_PAIRED),
        pool_size=_size(head, "pool_size", 384, most=MOST_SPANS),
        min_pool_per_query=_size(head, "min_pool_per_query", 8, least=0),
        abstention_threshold=_number(head, "abstention_threshold", 0.5, 1, least=0),
        pair_temperature=_number(head, "pair_temperature", 1.0, 1e6),
        classification_temperature=_number(head, "classification_temperature", 1.0, 1e6),
        overlap_policy=head.one_of("overlap_policy", ("flat", "nested")),
    )


def _size(head: JsonSettings, key: str, default: int, *, least: int = 1, most: int = MOST_SIZE) -> int:
    """Read a whole number from `least` to `most`."""
    value = head.get(key, default)
    if type(value) is not int or not least <= value <= most:
        raise head.refused(key, f"; bertcli runs {least:,} to {most:,}")
    return value


def _number(head: JsonSettings, key: str, default: float, most: float, *, least: float = 1e-6) -> float:
    """Read a number from `least` to `most`."""
    value = head.get(key, default)
    if type(value) not in (int, float) or not least <= value <= most:
        raise head.refused(key, f"; bertcli runs {least:g} to {most:g}")
    return float(value)
