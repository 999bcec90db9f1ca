"""What a folder or a repository has in place of weights or a tokenizer that bertcli reads, and the way out."""

from __future__ import annotations

from collections.abc import Collection

from bertcli.errors import BertcliError

CONVERT = "load it with transformers and call save_pretrained, which writes model.safetensors"

# How the name of a file with weights may end, what it is, and what to do, in the order in which they are named.
OTHER_WEIGHTS = (
    ("adapter_config.json", "an adapter for another model",
     "load both with peft, call merge_and_unload and then save_pretrained, which writes a whole model"),
    ("tf_model.h5", "TensorFlow", CONVERT),
    ("model.ckpt.index", "TensorFlow", CONVERT),
    ("flax_model.msgpack", "Flax", CONVERT),
    (".onnx", "ONNX", "give the model that this one was exported from"),
    (".gguf", "GGUF", "give the model that this one was converted from"),
)  # fmt: skip

# What a tokenizer is read from: any of these, of which each may need several files.
TOKENIZER_FILES = (
    ("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"), ("sentencepiece.bpe.model",), ("spiece.model",),
    ("spm.model",),
)  # fmt: skip


def has_tokenizer(names: Collection[str]) -> bool:
    """Whether files of these names, in one folder, may hold a tokenizer."""
    return any(all(name in names for name in files) for files in TOKENIZER_FILES)


def lacks_weights(where: str, names: Collection[str], otherwise: str) -> BertcliError:
    """What to raise where there are no weights that bertcli reads; `otherwise` where these names tell of no others."""
    if any(name.startswith(("model.safetensors", "pytorch_model")) for name in names):
        return BertcliError(f"{where} {otherwise}.")
    for ending, what, advice in OTHER_WEIGHTS:
        found = next((name for name in names if name.endswith(ending)), None)
        if found is not None:
            return BertcliError(
                f"{where} has its weights only in {found} ({what}), which bertcli does not read: {advice}."
            )
    return BertcliError(f"{where} {otherwise}.")


def lacks_tokenizer(where: str, names: Collection[str], *wanted: str) -> BertcliError:
    """What to raise where files of these names hold no tokenizer; `wanted` are those of its class, if that is known."""
    if "bpe.codes" in names:
        return BertcliError(f"{where} has its tokenizer in bpe.codes (BERTweet, PhoBERT), which bertcli cannot read.")
    others = wanted or [" with ".join(files) for files in TOKENIZER_FILES[1:]]
    return BertcliError(f"{where} has no tokenizer: neither tokenizer.json nor {', '.join(others)}.")
