"""Settings of a GLiNER folder (gliner_config.json): what the span model is like, and which settings are refused.

A folder of GLiNER has the weights of a backbone and of the head that scores spans. The backbone's configuration is in
gliner_config.json (`encoder_config`), else in the folder of the model that `model_name` names; so is the tokenizer, if
this folder has none: folder/companions.py finds that folder. weights.py opens the weights.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.folder.files import Folder, JsonSettings

logger = logging.getLogger("bertcli")

GLINER_FILE = "gliner_config.json"
FIRST_OWN = "[FLERT]"  # the library adds this token before the two that the prompt has
# Settings for which GLiNER has other networks or decoders, and the value that means "none".
ABSENT: dict[str, tuple[Any, ...]] = {
    "labels_encoder": (None, ""),
    "labels_decoder": (None, ""),
    "relations_layer": (None, ""),
    "span_encoder_config": (None,),
    "post_fusion_schema": (None, ""),
    "fuse_layers": (None, False),
    "precomputed_prompts_mode": (None, False),
}
WHAT_FOR = {
    "labels_encoder": "a second network for labels (bi-encoder)",
    "labels_decoder": "a decoder that writes labels",
    "relations_layer": "relations between entities",
}
MOST_WIDTH, MOST_SIZE = 1000, 1 << 16  # far above any model (12 and 1,024)


class GlinerSettings(NamedTuple):
    """The settings of a span model, by their names in gliner_config.json.

    encoder_config      the backbone's config.json; None if it is that of `model_name`
    hidden_size         the width of words, spans and labels, which the backbone's may differ from
    max_width           the largest number of words in an entity
    max_len             the largest number of words that are read together
    num_rnn_layers      1 if a bidirectional LSTM reads the words, else 0
    subtoken_pooling    which piece stands for a word: "first" or "last"
    embed_ent_token     a label's vector is that of its mark, not that of the token after it
    class_token_index   the id of the mark before each label; None if the tokenizer decides
    """

    model_name: str
    encoder_config: Mapping[str, Any] | None
    hidden_size: int
    max_width: int
    max_len: int
    num_rnn_layers: int
    subtoken_pooling: str
    embed_ent_token: bool
    ent_token: str
    sep_token: str
    class_token_index: int | None

    @property
    def own_tokens(self) -> tuple[str, ...]:
        """The tokens that GLiNER adds to the backbone's tokenizer, in the order of their ids."""
        return FIRST_OWN, self.ent_token, self.sep_token


def read_gliner(folder: Folder) -> GlinerSettings:
    """Read gliner_config.json. Errors: BertcliError for a setting that bertcli does not run."""
    config = folder.object(GLINER_FILE)
    for key, values in ABSENT.items():
        if config.get(key) not in values:
            reason = WHAT_FOR.get(key)
            raise config.refused(key, f" ({reason}), which bertcli does not run" if reason else "")
    mode = config.get("span_mode", "markerV0")
    if mode != "markerV0":
        raise config.refused("span_mode", "; bertcli runs span models of GLiNER with markerV0")
    config.one_of("words_splitter_type", ("whitespace",))
    layers = config.get("num_rnn_layers", 1)
    if type(layers) is not int or layers not in (0, 1):
        raise config.refused("num_rnn_layers", "; bertcli supports 0 and 1")
    encoder = config.get("encoder_config")
    if encoder is not None and not isinstance(encoder, dict):
        raise config.refused("encoder_config", ", which is not an object")
    width = _size(config, "hidden_size", 512, MOST_SIZE)
    if width % 2:
        raise config.refused("hidden_size", ", which is odd: its LSTM reads in two directions")
    index, rows = config.get("class_token_index", -1), config.get("vocab_size", -1)
    if type(index) is not int or type(rows) is not int:
        raise config.refused("class_token_index", f" and the vocab_size {quoted(rows)}, which are not both ids")
    return GlinerSettings(
        model_name=config.text("model_name", "microsoft/deberta-v3-small"),
        encoder_config=None if encoder is None else {"model_type": "deberta-v2", **encoder},
        hidden_size=width,
        max_width=_size(config, "max_width", 12, MOST_WIDTH),
        max_len=_size(config, "max_len", 384, MOST_SIZE),
        num_rnn_layers=layers,
        subtoken_pooling=config.one_of("subtoken_pooling", ("first", "last")),
        embed_ent_token=config.flag("embed_ent_token", True),
        ent_token=config.text("ent_token", "<<ENT>>"),
        sep_token=config.text("sep_token", "<<SEP>>"),
        # With either of them -1 the library adds its tokens to the tokenizer and counts.
        class_token_index=None if -1 in (index, rows) else index,
    )


def _size(config: JsonSettings, key: str, default: int, most: int) -> int:
    """Read a size above 0 and up to `most`."""
    size = config.positive(key) or default
    if size > most:
        raise config.refused(key, f"; bertcli runs at most {most:,}")
    return size
