"""The whole BERT: embeddings, encoder and the heads that a checkpoint has."""

from typing import ClassVar

from bertcli.models.config import Config, count, sized
from bertcli.models.registry import Family
from bertcli.network.encoder import Embeddings, Encoder
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import part


class Bert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    nsp: Classifier | None = part(C="2")  # the second text is next, or not
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")  # how well a choice fits

    pooled: ClassVar = frozenset({"nsp", "classifier", "multiple_choice"})


class BertConfig(Config):
    """A BERT configuration with config.json's own keys; the defaults are those of BERT-base uncased."""

    type_vocab_size: int = count(2, "T")
    model_type: str = "bert"

    title: ClassVar[str] = "BERT"

    @property
    def has_segments(self) -> bool:
        return True


# Our paths and the checkpoint's names, as tensor_names.py reads them. Other families use some of these tables.
EMBEDDINGS = """
embeddings.token       embeddings.word_embeddings.weight
embeddings.segment     embeddings.token_type_embeddings.weight
embeddings.position    embeddings.position_embeddings.weight
embeddings.norm.*      embeddings.LayerNorm.*
"""
ATTENTION = """
encoder.layers.#.attention.{query,key,value}.*          encoder.layer.#.attention.self.{query,key,value}.*
"""
LAYER = """
encoder.layers.#.attention.output.*                     encoder.layer.#.attention.output.dense.*
encoder.layers.#.attention_norm.*                       encoder.layer.#.attention.output.LayerNorm.*
encoder.layers.#.feed_forward.{intermediate,output}.*   encoder.layer.#.{intermediate,output}.dense.*
encoder.layers.#.feed_forward_norm.*                    encoder.layer.#.output.LayerNorm.*
"""
POOLER = "pooler.dense.*    pooler.dense.*"
MLM = """
mlm.transform.*        cls.predictions.transform.dense.*
mlm.norm.*             cls.predictions.transform.LayerNorm.*
mlm.decoder            cls.predictions.decoder.weight
mlm.bias               cls.predictions.bias
"""
NSP = "nsp.output.*    cls.seq_relationship.*"
FINE_TUNED = """
{classifier,token_classifier,multiple_choice}.output.*   classifier.*
qa.output.*                                              qa_outputs.*
"""


FAMILY = Family(
    types={"bert": "Bert"},
    config=BertConfig,
    network=Bert,
    prefixes=("bert.",),
    names=(EMBEDDINGS, ATTENTION, LAYER, POOLER, MLM, NSP, FINE_TUNED),
    variants={
        "tiny": sized(2, 128),
        "mini": sized(4, 256),
        "small": sized(4, 512),
        "medium": sized(8, 512),
        "base": sized(12, 768),
        "large": sized(24, 1024),
        "base-cased": sized(12, 768, vocab_size=28996),
        "large-cased": sized(24, 1024, vocab_size=28996),
        "base-multilingual-cased": sized(12, 768, vocab_size=119547),
        "base-chinese": sized(12, 768, vocab_size=21128),
    },
)
