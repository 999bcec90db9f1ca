"""What a folder or a repository has in place of weights or a tokenizer that bertcli reads, and the way out."""

from __future__ import annotations

from collections.abc import Collection

from bertcli.errors import BertcliError

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
FOREIGN = {
    "tf_model.h5": "TensorFlow", "flax_model.msgpack": "Flax", "bert_model.ckpt.index": "TensorFlow",
    "model.ckpt.index": "TensorFlow",
}  # fmt: skip
ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
# The state dict is saved unchanged: loading it into a transformers class would drop the heads that class lacks.
CONVERT_PICKLE = (
    'python -c "import glob, torch; from safetensors.torch import save_file; save_file({k: v.contiguous().clone()'
    " for f in sorted(glob.glob('pytorch_model*.bin'))"
    " for k, v in torch.load(f, map_location='cpu', weights_only=True).items()}, 'model.safetensors')\""
)

# What other tokenizers are stored in.
OTHER_TOKENIZERS = (
    "sentencepiece.bpe.model", "spm.model", "spiece.model", "tokenizer.model", "vocab.json", "merges.txt", "bpe.codes",
    "vocab.txt",
)  # fmt: skip


def other_weights(where: str, names: Collection[str]) -> BertcliError | None:
    """What to raise where there are weights, but none that bertcli reads; None if these names tell of none."""
    if any(name.startswith("model.safetensors") for name in names):
        return None
    foreign = next((name for name in names if name in FOREIGN), None)
    if foreign is not None:
        return BertcliError(
            f"{where} has its weights only in {foreign} ({FOREIGN[foreign]}), which bertcli does not read: load it "
            "with transformers and call save_pretrained, which writes model.safetensors."
        )
    adapter = next((name for name in ADAPTERS if name in names), None)
    if adapter is not None:
        return BertcliError(
            f"{where} holds only an adapter ({adapter}) for another model: load both with peft, call "
            "merge_and_unload and then save_pretrained, which writes a whole model."
        )
    graph = next((name for name in names if name.endswith(".onnx")), None)
    if graph is not None:
        return BertcliError(
            f"{where} has its weights only in {graph} (ONNX), from which bertcli does not read them: give the model "
            "that this one was exported from."
        )
    return None


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
