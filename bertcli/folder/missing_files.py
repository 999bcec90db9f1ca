"""Make the errors for a folder without weights or tokenizer: they name the format it has instead, and the way out.

Not here: which files of a cached model are missing (cache.py).
"""

from collections.abc import Collection

from bertcli.errors import BertcliError
from bertcli.folder.files import WEIGHT_FILES

ADVICE = "give the folder of a model, or fetch it again"
OF_HUB = "use another model"  # the Hub has no more of it
SAVE = "load it with transformers and call save_pretrained, which writes model.safetensors"
MERGE = "load both with it, merge the adapter into the model, and save that whole"

# The end of a file's name, what the file shows about the model, and what to do; the first that is found counts.
OTHER_TYPES = (
    ("pytorch_adapter.bin", "is an adapter of the adapters library, not a whole model", MERGE),
    ("router_config.json", "is a Router of sentence-transformers without a route for documents", "use another model"),
)
OTHER_FORMATS = (
    ("tf_model.h5", "has its weights for TensorFlow only", SAVE),
    ("model.ckpt.index", "has its weights for TensorFlow only", SAVE),
    ("flax_model.msgpack", "has its weights for Flax only", SAVE),
    (".onnx", "has its weights as an ONNX graph only", "give the model that it was exported from"),
    (".gguf", "has its weights as GGUF only", "give the model that it was converted from"),
)

# A tokenizer is read from one of these groups of files; all files of a group are needed.
TOKENIZER_FILES = (
    ("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"), ("sentencepiece.bpe.model",), ("spiece.model",),
    ("spm.model",),
)  # fmt: skip

# The class whose tokenizer such files are, for folders that name none.
CLASS_OF_FILES = {
    ("vocab.txt",): "BertTokenizer", ("vocab.json", "merges.txt"): "RobertaTokenizer",
    ("sentencepiece.bpe.model",): "XLMRobertaTokenizer", ("spiece.model",): "AlbertTokenizer",
    ("spm.model",): "DebertaV2Tokenizer",
}  # fmt: skip


def has_tokenizer(names: Collection[str]) -> bool:
    """True if a folder with files of these names has a tokenizer."""
    return any(all(name in names for name in files) for files in TOKENIZER_FILES)


def lacks_weights(where: str, names: Collection[str], what: str = "no weights", advice: str = ADVICE) -> BertcliError:
    """Make the error for a folder without weights in a supported format, or without a configuration (`what`)."""
    types = OTHER_TYPES if {*names}.intersection(WEIGHT_FILES) else OTHER_TYPES + OTHER_FORMATS
    for ending, type, way_out in types:
        name = next((name for name in sorted(names) if name.endswith(ending)), None)
        if name is not None:
            return BertcliError(f"{where} {type} ({name}), which bertcli does not read: {way_out}.")
    tokenizer = "" if has_tokenizer({name.rpartition("/")[2] for name in names}) else " and no tokenizer"
    return BertcliError(f"{where} has {what}{tokenizer}: {advice}.")


def lacks_tokenizer(where: str, names: Collection[str], *needed: str) -> BertcliError:
    """Make the error for a folder without a tokenizer; `needed` are the files of its class, if that is known."""
    if "bpe.codes" in names:
        return BertcliError(
            f"{where} has its tokenizer in bpe.codes (BERTweet, PhoBERT), which bertcli cannot read: use another model."
        )
    vocabularies = needed or [" with ".join(files) for files in TOKENIZER_FILES[1:]]
    for files, class_name in CLASS_OF_FILES.items():
        if needed and all(name in names for name in files):
            return BertcliError(
                f"{where} has {' with '.join(files)}, and no {needed[0]}, which a model of its type has: if these are "
                f'a {class_name}\'s files, write {{"tokenizer_class": "{class_name}"}} into tokenizer_config.json.'
            )
    return BertcliError(
        f"{where} has no tokenizer: neither tokenizer.json nor {', '.join(vocabularies)}: put those of the model that "
        "it was trained from into the folder, or use another model."
    )
