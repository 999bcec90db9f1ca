"""Hugging Face's names for BERT's tensors, and our paths for them."""

from __future__ import annotations

import re

# Our path -> the checkpoint's name, by the first pattern that matches the whole path.
NAMES = [
    (r"embeddings\.token", "embeddings.word_embeddings.weight"),
    (r"embeddings\.segment", "embeddings.token_type_embeddings.weight"),
    (r"embeddings\.position", "embeddings.position_embeddings.weight"),
    (r"embeddings\.norm\.(\w+)", r"embeddings.LayerNorm.\1"),
    (r"encoder\.layers\.(\d+)\.attention\.output\.(\w+)", r"encoder.layer.\1.attention.output.dense.\2"),
    (r"encoder\.layers\.(\d+)\.attention\.(query|key|value)\.(\w+)", r"encoder.layer.\1.attention.self.\2.\3"),
    (r"encoder\.layers\.(\d+)\.attention_norm\.(\w+)", r"encoder.layer.\1.attention.output.LayerNorm.\2"),
    (r"encoder\.layers\.(\d+)\.feed_forward\.(intermediate|output)\.(\w+)", r"encoder.layer.\1.\2.dense.\3"),
    (r"encoder\.layers\.(\d+)\.feed_forward_norm\.(\w+)", r"encoder.layer.\1.output.LayerNorm.\2"),
    (r"pooler\.dense\.(\w+)", r"pooler.dense.\1"),
    (r"mlm\.transform\.(\w+)", r"cls.predictions.transform.dense.\1"),
    (r"mlm\.norm\.(\w+)", r"cls.predictions.transform.LayerNorm.\1"),
    (r"mlm\.decoder", "cls.predictions.decoder.weight"),
    (r"mlm\.bias", "cls.predictions.bias"),
    (r"nsp\.output\.(\w+)", r"cls.seq_relationship.\1"),
    (r"classifier\.output\.(\w+)", r"classifier.\1"),
]
OLD_NORM_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
OTHER_NAMES = {"cls.predictions.bias": "cls.predictions.decoder.bias"}  # used where both are stored
PREFIX = "bert."
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # constants that some versions stored

# A head is present if any tensor with this prefix is.
HEAD_PREFIXES = {
    "pooler": "pooler.dense.",
    "mlm": "cls.predictions.transform.",
    "nsp": "cls.seq_relationship.",
    "classifier": "classifier.",
}
READ_THE_POOLER = {"nsp", "classifier"}
# Models that have a pooler: a file without it is damaged.
WITH_POOLER = ("BertForPreTraining", "BertForNextSentencePrediction", "BertForSequenceClassification")
# Models whose `classifier` does not classify whole sequences.
OTHER_CLASSIFIERS = ("BertForTokenClassification", "BertForMultipleChoice", "BertForQuestionAnswering")


def hugging_face_name(path: str) -> str:
    """The checkpoint's name for the parameter at a path of our tree."""
    for pattern, name in NAMES:
        match = re.fullmatch(pattern, path)
        if match:
            return match.expand(name)
    raise KeyError(path)
