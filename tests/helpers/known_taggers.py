"""Token classifiers whose answer is known: each token has the label that is named for it, whatever stands beside it.

One layer whose weights are all 0 passes the embeddings on, and the classifier reads the label's number off them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from helpers.json_files import write_json
from helpers.lines import write_lines
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
HIDDEN, SIZE = 16, 8
OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
OF_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def word_piece_tagger(
    folder: Path, pieces: Sequence[str], label_of: Mapping[str, int], labels: Sequence[str] = LABELS
) -> Path:
    """A BERT of these word pieces, lower case; a piece that `label_of` does not name has label 0."""
    pieces = [*OF_BERT, *pieces]
    _write_network(folder, "bert", pieces, label_of, labels)
    write_lines(folder / "vocab.txt", pieces)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    return folder


def byte_tagger(
    folder: Path,
    words: Sequence[str],
    label_of: Mapping[str, int],
    splitter: Any = None,
    labels: Sequence[str] = LABELS,
    **settings: Any,
) -> Path:
    """A RoBERTa with a byte-level tokenizer: letters, and these words after a space. `splitter`: its pre-tokenizer."""
    pieces = [*OF_ROBERTA, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: list[tuple[str, str]] = []
    for word in words:
        for length in range(len(word)):
            merges.append(("Ġ" + word[:length], word[length]))
            pieces.append("Ġ" + word[: length + 1])
    pieces = [*dict.fromkeys(pieces)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [*dict.fromkeys(merges)]))
    tokenizer.pre_tokenizer = splitter or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*OF_ROBERTA])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    _write_network(folder, "roberta", pieces, label_of, labels)
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = dict(zip(("cls", "pad", "sep", "unk", "mask"), OF_ROBERTA, strict=True))
    named = {f"{role}_token": token for role, token in roles.items()}
    stated = {"tokenizer_class": "RobertaTokenizer", **named, **settings}
    write_json(folder / "tokenizer_config.json", stated)
    return folder


def _write_network(
    folder: Path, kind: str, pieces: Sequence[str], label_of: Mapping[str, int], labels: Sequence[str]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def zeros(*shape: int) -> Any:
        return np.zeros(shape, np.float32)

    embedding = zeros(len(pieces), HIDDEN)
    for row, piece in enumerate(pieces):
        embedding[row, label_of.get(piece, 0)] = 5
    layer = f"{kind}.encoder.layer.0."
    tensors = {
        f"{kind}.embeddings.word_embeddings.weight": embedding,
        f"{kind}.embeddings.position_embeddings.weight": zeros(66, HIDDEN),
        f"{kind}.embeddings.token_type_embeddings.weight": zeros(2, HIDDEN),
        "classifier.weight": 3 * np.eye(len(labels), HIDDEN, dtype=np.float32),
        "classifier.bias": zeros(len(labels)),
    }
    square = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    shapes = dict.fromkeys(square, (HIDDEN, HIDDEN))
    shapes |= {"intermediate.dense": (SIZE, HIDDEN), "output.dense": (HIDDEN, SIZE)}
    for name, shape in shapes.items():
        tensors[f"{layer}{name}.weight"] = zeros(*shape)
        tensors[f"{layer}{name}.bias"] = zeros(shape[0])
    for part in (f"{kind}.embeddings.", f"{layer}attention.output.", f"{layer}output."):
        tensors[f"{part}LayerNorm.weight"] = zeros(HIDDEN) + 1
        tensors[f"{part}LayerNorm.bias"] = zeros(HIDDEN)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    architecture = {"bert": "Bert", "roberta": "Roberta"}[kind]
    config = {
        "model_type": kind,
        "architectures": [f"{architecture}ForTokenClassification"],
        "vocab_size": len(pieces),
        "hidden_size": HIDDEN,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": SIZE,
        "max_position_embeddings": 66,
        "type_vocab_size": 2,
        "pad_token_id": pieces.index("<pad>" if kind == "roberta" else "[PAD]"),
        "id2label": dict(enumerate(labels)),
    }
    write_json(folder / "config.json", config)


def guide_tagger(folder: Path) -> Path:
    """The model of the guide's page on redaction: it knows Anna Lee, Bob, O'Neill and New York, and not Eve."""
    label_of = {"anna": 3, "lee": 4, "bob": 3, "o": 3, "new": 1, "york": 2}
    others = "dear met in city pays called again eve neill , . ' -".split()  # noqa: SIM905
    return word_piece_tagger(folder, [*label_of, *others], label_of)
