"""A network as a plain Hugging Face folder: config, float16 safetensors, tokenizer files."""

import json
from pathlib import Path

import torch
from network import Bert, Shape, config, hugging_face_names
from safetensors.torch import load_file, save_file
from sentiment import Classifier
from tokenizers import Tokenizer

MASKED_WORDS = "bert-mini-mlm"
SENTIMENT = "bert-mini-sentiment"


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def half(named: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().half().contiguous() for name, tensor in named.items()}


def write_weights(folder: Path, named: dict[str, torch.Tensor]) -> None:
    """model.safetensors, readable by everybody (save_file makes it the owner's alone)."""
    file = folder / "model.safetensors"
    save_file(half(named), file, metadata={"format": "pt"})
    file.chmod(0o644)


def export_tokenizer(folder: Path, tokenizer: Tokenizer, longest: int) -> None:
    """tokenizer.json, vocab.txt (a piece a line, in the order of ids) and the settings of BertTokenizer."""
    tokenizer.save(str(folder / "tokenizer.json"))
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in pieces), encoding="utf-8")
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": True,
        "tokenize_chinese_chars": True,
        "model_max_length": longest,
    }
    write_json(folder / "tokenizer_config.json", {**settings, **names})
    write_json(folder / "special_tokens_map.json", names)


def export_masked_words(out: Path, network: Bert, tokenizer: Tokenizer) -> Path:
    """OUT/bert-mini-mlm, a BertForPreTraining."""
    folder = out / MASKED_WORDS
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder, hugging_face_names(network))
    write_json(folder / "config.json", config(network.shape, "BertForPreTraining"))
    export_tokenizer(folder, tokenizer, network.shape.max_position_embeddings)
    return folder


def export_sentiment(out: Path, model: Classifier, tokenizer: Tokenizer) -> Path:
    """OUT/bert-mini-sentiment, a BertForSequenceClassification."""
    folder = out / SENTIMENT
    folder.mkdir(parents=True, exist_ok=True)
    names = hugging_face_names(model.network).items()
    named = {name: tensor for name, tensor in names if not name.startswith("cls.")}
    named |= {"classifier.weight": model.weight, "classifier.bias": model.bias}
    write_weights(folder, named)
    labels = {"0": "negative", "1": "positive"}
    settings = config(model.network.shape, "BertForSequenceClassification")
    write_json(
        folder / "config.json",
        {**settings, "id2label": labels, "label2id": {name: int(index) for index, name in labels.items()}},
    )
    export_tokenizer(folder, tokenizer, model.network.shape.max_position_embeddings)
    return folder


@torch.no_grad()
def read_masked_words(out: Path) -> Bert:
    """The network of OUT/bert-mini-mlm, to be run in float32."""
    network = Bert(Shape(), 0)
    network.kind = torch.float32
    stored = load_file(out / MASKED_WORDS / "model.safetensors")
    for name, tensor in hugging_face_names(network).items():
        tensor.copy_(stored[name])
    return network


@torch.no_grad()
def read_sentiment(out: Path) -> Classifier:
    """The classifier of OUT/bert-mini-sentiment, to be run in float32."""
    model = Classifier(Bert(Shape(), 0), 0)
    model.network.kind = torch.float32
    stored = load_file(out / SENTIMENT / "model.safetensors")
    for name, tensor in hugging_face_names(model.network).items():
        if name in stored:
            tensor.copy_(stored[name])
    model.weight.copy_(stored["classifier.weight"])
    model.bias.copy_(stored["classifier.bias"])
    return model
