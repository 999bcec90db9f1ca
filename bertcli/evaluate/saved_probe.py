"""A probe as a model: the network up to its layer, and a classification head that computes the probe.

Between what a head pools and its logits most families have one more layer with an activation f. Of the probe's logits
z = W x + b that layer is given s z and -s z, and the last one takes the difference:

    GELU, ReLU, SiLU    f(z) - f(-z) = z, for every z
    tanh                (tanh(s z) - tanh(-s z)) / 2s = z (1 - (s z)² / 3 + …): with s = 1/4096 within 2e-6 of z for
                        |z| up to 10, and always in the order of z, so that the label is the same

So the head is linear in what it pools: the first token, or in EuroBERT the mean. Heads that normalize in between
(ModernBERT), or add no bias (Gemma 3, Qwen3), cannot hold a probe.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import pack
from bertcli.errors import BertcliError
from bertcli.evaluate.logistic import Fit
from bertcli.evaluate.metrics import Numbers
from bertcli.files.arrays import Stored, write_safetensors
from bertcli.files.formats import check_output, ending_of
from bertcli.files.shards import writing
from bertcli.files.texts import Text
from bertcli.folder.files import SINGLE_FILE, Folder
from bertcli.folder.missing_files import TOKENIZER_FILES
from bertcli.loaded_model import LoadedModel
from bertcli.models.config import Config
from bertcli.models.registry import family, parse_heads
from bertcli.network.heads import FirstTokenClassifier
from bertcli.network.module import build
from bertcli.tasks.compute.batches import logits
from bertcli.tasks.compute.task import length_limit
from bertcli.tracing.dispatch import Array, shape_only
from bertcli.weights.loading import BASE, CONSTANT
from bertcli.weights.tensors import open_tensors

logger = logging.getLogger("bertcli")
SCALE = 2.0**-12  # s of tanh
CHECKED = 16  # texts whose logits are compared before the folder gets its name
LARGEST_DIFFERENCE = 1e-3  # of logits, relative to the largest if that is above 1
SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


class Head(NamedTuple):
    """A family's classification head: the path of its layer before the last, that one's activation, what is pooled."""

    dense: str
    activation: str
    pooling: str


def find_head(config: Config) -> Head | None:
    """The head of a configuration's family; None if it cannot hold a probe."""
    member = family(config.model_type)
    if "classifier" not in member.head_names:
        return None
    heads = parse_heads(["classifier"], member)
    network: Any = build(member.network, config, lambda request: shape_only(request.shape), heads)
    if "classifier" in network.pooled:
        return Head("pooler.dense", "tanh", "cls")
    if not isinstance(network.classifier, FirstTokenClassifier):
        return None
    of_mean = getattr(network.classifier, "pooling", None) in ("mean", "late")
    return Head("classifier.dense", network.classifier.activation, "mean" if of_mean else "cls")


def head_of(model: LoadedModel, labels: int) -> Head:
    """The head that is to hold a probe of so many labels. Errors: BertcliError if the family's cannot."""
    head, title = find_head(model.config), model.config.title
    if head is None:
        raise BertcliError(
            f"{title} has no classification head that is linear in what it pools, with a bias, so it cannot hold a "
            "probe (--save): all families can but ModernBERT, Gemma 3, Qwen3 and static models."
        )
    if 2 * labels > model.config.hidden_size:
        room = model.config.hidden_size // 2
        raise BertcliError(
            f"A head of {model.name} has room for a probe of {room} labels (--save); these are {labels}."
        )
    if model.other_paths:
        raise BertcliError("A probe of a model with an adapter cannot be saved (--save): merge the adapter first.")
    logger.info("to be saved, probes read what %s's classification head reads: pooling %s.", title, head.pooling)
    return head


def check_new(folder: str) -> None:
    """Raise BertcliError if a folder exists, or cannot be made."""
    if os.path.lexists(folder):
        raise BertcliError(f"{folder} is there already: give the name of a new folder (--save).")
    check_output(folder, (ending_of(folder),))


def save_probe(
    model: LoadedModel,
    folder: str,
    head: Head,
    layer: int,
    fit: Fit,
    names: Sequence[str],
    limit: int,
    texts: Sequence[Text],
    expected: Numbers,
) -> None:
    """Write a model that is this one up to a layer, with a probe of it as its classifier.

    names: the labels'; limit: in tokens; expected: the logits [text, label] of some texts. Errors: BertcliError for a
    model that does not give what is expected, and while writing.
    """
    assert model.layout is not None
    place = model.layout.transformer
    with writing(folder), TemporaryDirectory(prefix=".bertcli.", dir=Path(folder).absolute().parent) as draft:
        made = Path(draft, "model")
        made.mkdir()
        for name in {*SETTINGS, *chain(*TOKENIZER_FILES)}.intersection(place.names):
            shutil.copyfile(place.file(name), made / name)
        model.tokenizer.save(made)
        stated = json.loads((made / SETTINGS[0]).read_bytes()), place.object("config.json")
        settings = {"model_max_length": limit}, _settings(model.config, layer, names)
        for name, old, new in zip((SETTINGS[0], "config.json"), stated, settings, strict=True):
            (made / name).write_text(json.dumps({**old, **new}, indent=2, ensure_ascii=False), encoding="utf-8")
        arrays = {**dict(_kept(model, place, layer)), **dict(_head(model.config, head, fit))}
        stored = [Stored(name, "<f4", array.shape, [array]) for name, array in arrays.items()]
        with (made / SINGLE_FILE).open("wb") as stream:
            write_safetensors(stream, [Stored.text("format", "pt"), *stored])
        _check(LoadedModel.at(Folder(made), folder), texts, expected)
        for file in made.iterdir():
            with file.open("r+b") as written:
                os.fsync(written.fileno())
        made.rename(folder)
    logger.info("%s holds the probe of layer %d: bertcli classify -m %s.", folder, layer, folder)


def _check(saved: LoadedModel, texts: Sequence[Text], expected: Numbers) -> None:
    tokens = saved.tokenizer.encode([one.text for one in texts], [one.pair for one in texts], length_limit(saved, None))
    found = np.concatenate([logits(saved, "classifier", pack([one])) for one in tokens])
    if not np.abs(found - expected).max() <= LARGEST_DIFFERENCE * max(1.0, np.abs(expected).max()):
        raise BertcliError(f"{saved.name} would not say what the probe says, so it is not written: please report it.")


def _settings(config: Config, layer: int, names: Sequence[str]) -> dict[str, Any]:
    """What config.json says of the saved model."""
    start = family(config.model_type).types[config.model_type]
    of_layers = [key for key, name in config.names.items() if name == "num_hidden_layers"]
    return {
        **dict.fromkeys(("num_hidden_layers", *of_layers), layer),
        "architectures": [f"{start}ForSequenceClassification"],
        "num_labels": len(names),
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
        "problem_type": "single_label_classification",
        **dict.fromkeys(("dtype", "torch_dtype"), "float32"),
    }


def _kept(model: LoadedModel, place: Folder, layer: int) -> Iterator[tuple[str, Array]]:
    """The tensors of embeddings and encoder up to a layer, by the names that transformers gives them."""
    member, tensors = family(model.config.model_type), open_tensors(place)
    prefix = member.prefix_in(tensors)
    for use in model.uses:
        path = use.paths[0] if use.paths else use.name
        number = re.search(r"\blayers?\.(\d+)\.", path)
        of_base = path.split(".")[0] in BASE[:2] or use.note == CONSTANT
        if of_base and not (number and int(number[1]) >= layer):
            name = member.places(path)[0].name if use.use == "renamed" else use.name.removeprefix(prefix)
            yield _prefix(model.config) + name, tensors[use.name].float32()


def _head(config: Config, head: Head, fit: Fit) -> Iterator[tuple[str, Array]]:
    """The head's tensors by their names."""
    size, (count, width) = config.hidden_size, fit.weights.shape
    scale, gain = (SCALE, 2) if head.activation == "tanh" else (1, 1)
    dense, bias, output = np.zeros((size, width)), np.zeros(size), np.zeros((count, size))
    for sign, rows in ((scale, slice(count)), (-scale, slice(count, 2 * count))):
        dense[rows], bias[rows] = sign * fit.weights, sign * fit.biases
        output[:, rows] = np.eye(count) / (sign * gain)
    parts = {"weight": dense, "bias": bias}, {"weight": output, "bias": np.zeros(count)}
    for path, arrays in zip((head.dense, "classifier.output"), parts, strict=True):
        prefix = _prefix(config) if path.startswith(BASE) else ""
        for kind, array in arrays.items():
            name = family(config.model_type).places(f"{path}.{kind}")[0].name
            yield prefix + name, array.astype(np.float32)


def _prefix(config: Config) -> str:
    """That of the base model's tensors in transformers' class for classification."""
    prefixes = family(config.model_type).prefixes
    return f"{config.model_type}." if f"{config.model_type}." in prefixes else prefixes[0]
