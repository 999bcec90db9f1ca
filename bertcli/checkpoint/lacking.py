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
)  # fmt: skip

# What other tokenizers are stored in.
OTHER_TOKENIZERS = (
    "sentencepiece.bpe.model", "spm.model", "spiece.model", "tokenizer.model", "vocab.json", "merges.txt", "bpe.codes",
    "vocab.txt",
)  # fmt: skip


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


def lacks_tokenizer(where: str, source: str, names: Collection[str]) -> BertcliError:
    """What to raise where there is no tokenizer that bertcli reads: the way out depends on the names of what there is.

    `source` is what transformers would load the tokenizer from, a Hub id or a folder.
    """
    found = [name for name in OTHER_TOKENIZERS if name in names]
    if not found:
        return BertcliError(f"{where} has neither tokenizer.json nor vocab.txt: give a model that has its tokenizer.")
    return BertcliError(
        f"{where} has {' and '.join(found)} but no tokenizer.json, which bertcli needs: write one into the model's "
        'folder where transformers is installed, with python -c "from transformers import AutoTokenizer; '
        f"AutoTokenizer.from_pretrained('{source}').save_pretrained('FOLDER')\"."
    )
