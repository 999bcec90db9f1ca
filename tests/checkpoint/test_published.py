"""The layouts of the models that the README names, small and of random weights: each runs as it is published.

Weights and tokenizers are in the files that the published folders have: those marked `bin`, and those without a
tokenizer.json, after a survey of published folders, the others from memory. What the numbers are is tested elsewhere;
here they have to be those of the same weights in safetensors.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.bin_files import convert
from helpers.checkpoint_files import Sentence, write_sentence
from helpers.checkpoints import make
from helpers.family_checkpoints import make_family
from helpers.terminal import bertcli as bertcli_command
from helpers.tokenizer_kinds import write_kind
from reference.vocabulary_cases import write_folder

import bertcli


class Layout(NamedTuple):
    """A published folder. Tokenizer: "json", "vocab" (vocab.txt), or "own": the family's own files."""

    family: str
    head: str = "model"
    weights: str = "safetensors"  # or "bin" (a zip), "older bin" (before torch 1.6)
    tokenizer: str = "json"
    sentence: str = ""  # its pooling, if it is a sentence model
    labels: int = 3


PUBLISHED = {
    "google-bert/bert-base-uncased": Layout("bert", "pretraining"),
    "sentence-transformers/all-MiniLM-L6-v2": Layout("bert", sentence="mean"),
    "BAAI/bge-base-en-v1.5": Layout("bert", sentence="cls"),
    "intfloat/e5-base-v2": Layout("bert", sentence="mean"),
    "thenlper/gte-base": Layout("bert", sentence="mean"),
    "sentence-transformers/LaBSE": Layout("bert", sentence="cls"),
    "cross-encoder/ms-marco-MiniLM-L6-v2": Layout("bert", "classifier", labels=1),
    "dslim/bert-base-NER": Layout("bert", "token_classifier", tokenizer="vocab"),
    "deepset/bert-base-cased-squad2": Layout("bert", "qa", tokenizer="vocab"),
    "ProsusAI/finbert": Layout("bert", "classifier", "bin", "vocab"),
    "emilyalsentzer/Bio_ClinicalBERT": Layout("bert", "mlm", "older bin", "vocab"),
    "dmis-lab/biobert-v1.1": Layout("bert", "mlm", "older bin", "vocab"),
    "allenai/scibert_scivocab_uncased": Layout("bert", "mlm", "older bin", "vocab"),
    "nlpaueb/legal-bert-base-uncased": Layout("bert", "pretraining", "older bin", "vocab"),
    "FacebookAI/roberta-base": Layout("roberta", "mlm"),
    "sentence-transformers/all-distilroberta-v1": Layout("roberta", sentence="mean"),
    "deepset/roberta-base-squad2": Layout("roberta", "qa", tokenizer="own"),
    "cardiffnlp/twitter-roberta-base-sentiment": Layout("roberta", "classifier", "bin", "own"),
    "microsoft/codebert-base": Layout("roberta", "model", "bin", "own"),
    "FacebookAI/xlm-roberta-base": Layout("xlm-roberta", "mlm"),
    "intfloat/multilingual-e5-base": Layout("xlm-roberta", sentence="mean"),
    "BAAI/bge-m3": Layout("xlm-roberta", "model", "bin", sentence="cls"),
    "BAAI/bge-reranker-base": Layout("xlm-roberta", "classifier", labels=1),
    "Davlan/xlm-roberta-base-ner-hrl": Layout("xlm-roberta", "token_classifier", "bin", "own"),
    "Jean-Baptiste/camembert-ner": Layout("camembert", "token_classifier", tokenizer="own"),
    "distilbert/distilbert-base-uncased-finetuned-sst-2-english": Layout("distilbert", "classifier", tokenizer="vocab"),
    "sentence-transformers/all-mpnet-base-v2": Layout("mpnet", sentence="mean"),
    "google/electra-small-discriminator": Layout("electra", "rtd", "bin", "vocab"),
    "google/electra-small-generator": Layout("electra", "mlm", "bin", "vocab"),
    "answerdotai/ModernBERT-base": Layout("modernbert", "mlm"),
    "Alibaba-NLP/gte-modernbert-base": Layout("modernbert", sentence="cls"),
    "microsoft/deberta-v3-base": Layout("deberta-v2", "published", "bin", "own"),
    "microsoft/mdeberta-v3-base": Layout("deberta-v2", "published", "bin", "own"),
    "cross-encoder/nli-deberta-v3-base": Layout("deberta-v2", "classifier"),
    "albert/albert-base-v2": Layout("albert", "mlm"),
    "sentence-transformers/paraphrase-albert-small-v2": Layout("albert", sentence="mean"),
}
JSON_ONLY = ("bert", "distilbert", "electra")  # whose tokenizer.json is of word pieces, as `make` writes it


def written(folder: Path, layout: Layout) -> Path:
    """The folder with safetensors in place of a .bin file."""
    family, head, _, tokenizer, sentence, labels = layout
    own = "vocab" if tokenizer == "vocab" else "json"
    make(folder, head=head if family == "bert" else "model", tokenizer=own, num_labels=labels)
    if family not in JSON_ONLY:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).unlink(missing_ok=True)
        if tokenizer == "own":
            write_folder(folder, family)
        else:
            write_kind(folder, family)
    if family != "bert":
        make_family(folder, family, head, sizes={"V": 1200, "C": labels})
    if sentence:
        write_sentence(folder, Sentence((sentence,), normalize=True), 32, [])
    return folder


def answered(folder: Path, layout: Layout) -> Any:
    """What the model says, through the call that people make of it."""
    model = bertcli.load(folder)
    texts = ["The cat sat on the mat.", "Tea, please."]
    if layout.sentence or layout.head in ("model", "rtd", "published"):
        return model.encode(texts).tolist()
    if layout.head in ("mlm", "pretraining"):
        return list(model.fill_mask([f"{text} {model.tokenizer.mask_token}" for text in texts]))
    if layout.head == "token_classifier":
        return list(model.tag(texts, aggregation="none"))
    if layout.head == "qa":
        return list(model.answer(["Who sat?", "What?"], texts))
    if layout.labels == 1:
        return list(model.rank("a cat", texts))
    return list(model.classify(texts))


NAMES = {layout: name for name, layout in reversed(PUBLISHED.items())}  # the first of those with one layout


@pytest.mark.parametrize("layout", NAMES, ids=[*NAMES.values()])
def test_what_the_readme_names_runs_as_published(tmp_path: Path, layout: Layout) -> None:
    expected = answered(written(tmp_path / "a", layout), layout)
    assert np.size(expected) > 0
    assert (tmp_path / "a" / "tokenizer.json").exists() == (layout.tokenizer == "json")
    if layout.weights != "safetensors":
        folder = convert(written(tmp_path / "b", layout), older=layout.weights == "older bin")
        assert not list(folder.rglob("*.safetensors"))
        assert answered(folder, layout) == expected


TEXT = "The cat sat on the mat."
REFUSED = {
    "fill-mask": ["a [MASK]"], "score": [TEXT], "lens": ["a [MASK]"], "classify": [TEXT], "tag": [TEXT],
    "rank": ["a cat", TEXT], "answer": ["Who?", "--context", TEXT],
}  # fmt: skip


def test_deberta_as_published_has_heads_that_nothing_runs(tmp_path: Path) -> None:
    """Its files hold heads that it was trained with, and positions that it never reads."""
    name = "microsoft/deberta-v3-base"
    folder = written(tmp_path / "m", PUBLISHED[name])
    plain = written(tmp_path / "plain", PUBLISHED[name]._replace(head="model"))
    convert(folder)
    assert np.array_equal(bertcli.load(folder).encode([TEXT]), bertcli.load(plain).encode([TEXT]))
    uses = {use.name: (use.use, use.note) for use in bertcli.load(folder).tensor_uses}
    for tensor in ("lm_predictions.lm_head.dense.weight", "mask_predictions.classifier.weight"):
        assert uses[tensor] == ("ignored", "for what bertcli does not do")
    for command, arguments in REFUSED.items():
        result = bertcli_command(command, "-m", folder, *arguments)
        assert (result.status, result.err.count("Error: ")) == (1, 1), (command, result.err)
        assert "lm_predictions.* instead" in result.err or command not in ("fill-mask", "score", "lens"), command
