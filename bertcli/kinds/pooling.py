"""Read the settings of a Pooling module. vectors.py pools."""

from typing import NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import JsonSettings, unusable

# Older folders flag each mode. In this order the modes that are flagged are concatenated.
FLAGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
MODES = tuple(FLAGS.values())

# The mode of a model whose files specify none, as in sentence-transformers. It is said here and imported elsewhere.
DEFAULT_POOLING = ("mean",)


class PoolingSettings(NamedTuple):
    """Settings of a Pooling module. `width` is the length of the pooled vector, None if it is not stated."""

    modes: tuple[str, ...]
    width: int | None
    include_prompt: bool


def read_pooling(config: JsonSettings) -> PoolingSettings:
    """Read a Pooling module's config.json. Errors: BertcliError for a mode that is not supported."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in FLAGS.items() if config.flag(key, False)] or [*DEFAULT_POOLING]
    if isinstance(modes, str):
        modes = [modes]
    if not isinstance(modes, list) or not modes:
        raise BertcliError(f"{config.file} has the pooling_mode {quoted(modes)}: use another model.")
    modes = ["mean_sqrt_len" if mode == "mean_sqrt_len_tokens" else mode for mode in modes]
    for mode in modes:
        if mode not in MODES:
            raise unusable(config.file, f"asks for the pooling {quoted(mode)}; bertcli supports {', '.join(MODES)}")
    width = config.positive("embedding_dimension") or config.positive("word_embedding_dimension")
    return PoolingSettings(tuple(modes), width and width * len(modes), config.flag("include_prompt", True))
