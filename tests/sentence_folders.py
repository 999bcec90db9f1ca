"""Sentence-transformers folders on families other than BERT, with the file names of older versions."""

from __future__ import annotations

from pathlib import Path

from checkpoint_files import Sentence, write_sentence
from family_checkpoints import make_family
from tokenizer_kinds import write_kind
from vocabulary import pieces, write_tokenizer_json

# Family -> its tokenizer, and the file that says how long a text may be.
FOLDERS = {
    "roberta": ("roberta", "sentence_roberta_config.json"),
    "xlm-roberta": ("xlm-roberta", "sentence_xlm-roberta_config.json"),
    "distilbert": ("", "sentence_distilbert_config.json"),
    "mpnet": ("mpnet", "sentence_bert_config.json"),
    "modernbert": ("modernbert", "sentence_bert_config.json"),
}
WIDTH, LIMIT = 32, 30


def write_folder(folder: Path, family: str) -> Path:
    """A checkpoint, its tokenizer and what sentence-transformers stores: mean pooling, vectors of length 1."""
    kind, file = FOLDERS[family]
    folder.mkdir(parents=True, exist_ok=True)
    size = write_kind(folder, kind, model_max_length=40) if kind else len(pieces())
    if not kind:
        write_tokenizer_json(folder, pieces())
    make_family(folder, family, sizes={"V": size, "H": WIDTH, "P": 64})
    write_sentence(folder, Sentence(("mean",), normalize=True, max_seq_length=LIMIT), WIDTH, [])
    (folder / "sentence_bert_config.json").rename(folder / file)
    return folder
