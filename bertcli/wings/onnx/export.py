"""export: a model as an ONNX file, or as a folder that other libraries can open."""

import json
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import Packed
from bertcli.engine.padded_batch import pack_padded
from bertcli.errors import BertcliError, quoted
from bertcli.files.files_beside import check_output
from bertcli.files.write.draft_folder import draft_folder
from bertcli.folder.files import INDEX_ENDING, TENSOR_ENDINGS, Folder, weights_file
from bertcli.folder.folder_types import files_of_types
from bertcli.folder.layout import Layout
from bertcli.folder.missing_files import has_tokenizer
from bertcli.kinds.pair_scores import PairScores
from bertcli.kinds.vectors import pool
from bertcli.loaded_model import LoadedModel
from bertcli.network.ops import gather
from bertcli.report.terminal import visible
from bertcli.tasks.compute.encode import EncodeSteps
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import takes
from bertcli.tasks.parts.sample_sentences import SENTENCES
from bertcli.tracing.dispatch import Array
from bertcli.wings.onnx import file as onnx_file
from bertcli.wings.onnx import rules
from bertcli.wings.onnx.exactness import LEAST, TOGETHER
from bertcli.wings.onnx.export_options import ExportOptions, Precision
from bertcli.wings.onnx.exporter import HIDDEN, exporter_of
from bertcli.wings.onnx.graph import IDS, MASK, SEGMENTS, StoredType
from bertcli.wings.onnx.session import Session, installed, require

logger = logging.getLogger("bertcli")
FILES: dict[Precision, str] = {  # the names that sentence-transformers and transformers.js look for
    "float32": "model.onnx",
    "float16": "model_fp16.onnx",
    "int8": "model_quantized.onnx",
    "int8-stored": "model_int8.onnx",
}
STORED: dict[Precision, StoredType] = {"float16": "float16", "int8-stored": "int8"}
LARGEST_DIFFERENCE = 1e-4  # from NumPy's numbers, in float32; relative to the largest number if that is above 1
# The head that a model was made for, if it has several; nsp and sop were only a help in training.
HEADS = ("classifier", "token_classifier", "qa", "multiple_choice", "rtd", "mlm")
ANSWER = ("start_logits", "end_logits")
# How files end that a folder for other libraries has besides those that bertcli read to open the model.
SMALL = (".json", ".txt", ".model", ".jinja")
OF_MODULES = (".json", *TENSOR_ENDINGS)
NETWORK_WEIGHTS = (INDEX_ENDING, *TENSOR_ENDINGS)


class Exported(NamedTuple):
    """The file that was written, and the largest difference from NumPy's numbers; None if it was not checked."""

    file: Path
    bytes: int
    outputs: tuple[str, ...]
    difference: float | None


@takes(ExportOptions)
def export(model: LoadedModel, target: str | Path, options: ExportOptions) -> "Exported":
    """Write an ONNX file (.onnx), or a folder that other libraries can open: the method `export` of a model.

    Returns the path, its size, the outputs, and how far their numbers are from this model's, if that was measured.
    """
    write = export_file if Path(target).suffix.lower() == ".onnx" else export_folder
    return write(model, target, options)


def export_file(model: LoadedModel, file: str | Path, options: ExportOptions) -> Exported:
    """Write a model as an ONNX file, whose inputs and outputs have the names that other tools expect.

    Errors: BertcliError if the packages of the extra are missing, for results that the model does not have, for a model
    without weights, and while writing; what was there is then unchanged.
    """
    check_output(str(file), (".onnx",))
    target = Path(os.path.realpath(file))
    with draft_folder(target.parent, str(file)) as draft:
        return _make_graph(model, draft / target.name, options)._replace(file=Path(file))


def export_folder(model: LoadedModel, folder: str | Path, options: ExportOptions) -> Exported:
    """Write a model into a folder that sentence-transformers (backend="onnx") and transformers.js can open.

    The graph lies in its folder onnx/ under the name that transformers.js has for its precision; beside that lie the
    configuration, tokenizer and sentence-transformers' files of the model, see `Tokenizer.save`. Into the model's own
    folder only the graph is written. Errors are those of `export_file`.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise BertcliError(f"Cannot write into {target}: it is a file; give a folder, or the name of a new one.")
    name = Path("onnx", FILES[options.precision])
    with draft_folder(target, str(target)) as draft:
        (draft / "onnx").mkdir()
        exported = _make_graph(model, draft / name, options)
        if model.layout is not None and model.path != target.resolve():
            _copy_small_files(model.layout, draft)
            if has_tokenizer({file.name for file in draft.iterdir()}):
                model.tokenizer.save(draft)
        _refuse_replacing(target, draft)
    given = GraphResults.of(model, options)
    others = "sentence-transformers takes %s, and no graph: this folder is for others."
    if model.layout is not None and not model.config.contextual:
        logger.info(others, "a static model's table")
    if given.scored is not None:
        logger.info(others, "the weights of a cross-encoder made of modules")
    steps = given.steps
    if steps is not None and model.path is not None:
        kind = model.kind
        if (steps.pooling, steps.normalize) != (kind.pooling_or_default, kind.normalize):
            logger.warning(
                "sentence-transformers pools as the folder's files say (%s), not as you asked: only programs "
                "that read the graph's output sentence_embedding get your pooling.", kind.reason,
            )  # fmt: skip
    return exported._replace(file=target / name)


def _refuse_replacing(target: Path, draft: Path) -> None:
    """Raise BertcliError if a folder is no earlier export, and a file of it would be replaced by another."""
    if weights_file(Folder(target)) is None and any((target / "onnx").glob("*.onnx")):
        return
    for file in sorted(draft.rglob("*")):
        other = target / file.relative_to(draft)
        if other.is_file() and file.suffix != ".onnx" and not cmp(file, other, shallow=False):
            name = other.relative_to(target)
            raise BertcliError(
                f"Cannot write into {target}: it has another {name}, which would be lost; give a new folder."
            )


def _make_graph(model: LoadedModel, file: Path, options: ExportOptions) -> Exported:
    """Write a model's graph, its weights beside it if they are too large for one file. Errors: also OSError."""
    opset, precision = options.opset, options.precision
    verifies = installed("onnxruntime") if options.verify is None else options.verify
    require(*(("onnx", "onnxruntime") if verifies or precision == "int8" else ("onnx",)))
    if not model.has_weights:
        raise BertcliError(f"'{model.name}' has no weights to export: load a checkpoint.")
    if not onnx_file.OLDEST_OPSET <= opset <= onnx_file.newest_opset():
        opsets = f"{onnx_file.OLDEST_OPSET} to {onnx_file.newest_opset()}"
        raise BertcliError(f"There is no opset {opset} here: choose from {opsets} (opset).")
    results = GraphResults.of(model, options)
    if results.steps is not None and model.kind.prompt and not model.kind.include_prompt:
        logger.warning(
            "this model leaves its prompt out of the pooling; the graph does not know where the prompt ends, and "
            "pools it, too."
        )
    made = results.export(opset, STORED.get(precision, "float32"))
    onnx_file.check(made)
    onnx_file.write_parts(made, file, two_files=onnx_file.size_of_weights(made) >= onnx_file.LARGEST_FILE)
    if precision == "int8":
        onnx_file.quantize(file)
        if verifies and model.layout is not None and model.layout.has_tokenizer:
            _check_int8(results, file)
        else:
            logger.info(onnx_file.LESS_EXACT)
    error = difference(results, file) if verifies else None
    if error is not None and precision == "float32" and not error <= LARGEST_DIFFERENCE:
        raise BertcliError(f"The graph's results differ from NumPy's by {error:.1e}: please report this model.")
    size = sum(one.stat().st_size for one in file.parent.iterdir())
    return Exported(file, size, tuple(made.outputs), error)


def _copy_small_files(layout: Layout, target: Path) -> None:
    """Copy the files of a model that were read or are small, and the weights of sentence-transformers' modules.

    Other libraries may read small files that bertcli does not. The network's own weights are in the graph.
    In folders of sentence-transformers' first versions the network has a folder of its own, 0_Transformer; these other
    libraries look for it at the top.
    """
    source, network = layout.folder.path, layout.transformer.path
    network_apart = layout.folder_type.has_config and network != source
    read = set(layout.folder.files_read)
    for file in [*sorted(source.iterdir()), *(network.iterdir() if network_apart else ())]:
        of_network = file.name.endswith(NETWORK_WEIGHTS) and file.name not in files_of_types()
        if (file in read or file.suffix in SMALL) and not of_network:
            shutil.copyfile(file, target / file.name)
        elif (file / "config.json").exists() and not (network_apart and file == network):
            (target / file.name).mkdir()
            for inner in file.iterdir():
                if inner in read or inner.suffix in OF_MODULES:
                    shutil.copyfile(inner, target / file.name / inner.name)
    if network_apart:
        modules = json.loads((target / "modules.json").read_bytes())
        modules[0]["path"] = ""
        (target / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")


def difference(options: "GraphResults", file: Path) -> float:
    """The largest difference between a file's results and NumPy's, on two sentences, one of them padded.

    Relative to a result's largest number if that is above 1; NaN if there are such.
    """
    config = options.model.config
    length = min(16, config.max_tokens)
    lengths = np.array([[max(1, length - 5)], [length]])
    mask = np.arange(length) < lengths
    ids = np.random.default_rng(0).integers(0, config.vocab_size, mask.shape)
    # All segments occur.
    segments = np.tile(np.arange(length) * config.segment_count // length, (2, 1))
    differences = [0.0]
    for expected, found in _of_both(options, Session(file, packed=False), ids, segments, mask):
        largest = max(1.0, np.abs(expected).max())
        differences.append(float(np.abs(found - expected).max() / largest))
    # np.max keeps NaN, where max would not.
    return float(np.max(differences))


def _check_int8(results: "GraphResults", file: Path) -> None:
    """Log the mean cosine of a file's results with NumPy's on built-in sentences. Errors: BertcliError if it is low."""
    model, session = results.model, Session(file, packed=False)
    cosines = []
    # A small vocabulary may have no token for a text.
    encoded = model.tokenizer.encode(SENTENCES, max_length=model.config.max_tokens)
    # In the order of their lengths, in which a padded batch is packed.
    tokens = sorted((text for text in encoded if text.ids), key=lambda text: len(text.ids))
    for first in range(0, len(tokens), TOGETHER):
        texts = tokens[first : first + TOGETHER]
        longest = max(len(text.ids) for text in texts)
        ids, segments = np.zeros((2, len(texts), longest), np.int64)
        lengths = np.array([[len(text.ids)] for text in texts])
        mask = np.arange(longest) < lengths
        ids[mask] = [id for text in texts for id in text.ids]
        segments[mask] = [segment for text in texts for segment in text.segments]
        for pair in _of_both(results, session, ids, segments, mask):
            rows = [x.reshape(len(x), -1).astype(np.float64) for x in pair]
            # A single number has no direction: those of all texts have.
            expected, found = rows if rows[0].shape[1] > 1 else (x.T for x in rows)
            with np.errstate(all="ignore"):  # damaged weights are reported where their results are used
                norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
                cosines.append((expected * found).sum(axis=1) / norms)
    cosine = float(np.concatenate(cosines).mean())
    said = (
        f"int8 of {model.name}: results have cosine {cosine:.3f} with float32's on average "
        f"({len(SENTENCES)} built-in sentences)"
    )
    if cosine < LEAST:
        raise BertcliError(
            f"{said}, which is too far from it: compute in float32 with weights of int8 (--dtype int8), or take it as "
            "it is (--no-verify)."
        )
    logger.info("%s.", said)


def _of_both(
    options: "GraphResults",
    session: Session,
    ids: NDArray[np.int64],
    segments: NDArray[np.int64],
    mask: NDArray[np.bool_],
) -> Iterator[tuple[Array, Array]]:
    """Yield each result of a padded batch from NumPy and from a session, without rows of padding."""
    batch, *_ = pack_padded(ids, segments, mask)
    results = options.numpy(batch)
    of_graph = session({IDS: ids, SEGMENTS: segments, MASK: mask.astype(np.int64)})
    for name, expected in results.items():
        found = of_graph[name]
        # Of results with a row for each token the graph has rows for padding, too.
        yield expected, found[mask] if len(expected) == mask.sum() else found


# ------------------------------------------------------------------------------------------- what a graph gives


@dataclass(frozen=True)
class GraphResults:
    """A model and the results of its graph: a head's logits, a sentence's vector, a pair's score, hidden states."""

    model: LoadedModel
    head: str | None = None
    steps: EncodeSteps | None = None
    scored: PairScores | None = None

    @classmethod
    def of(cls, model: LoadedModel, options: ExportOptions) -> "GraphResults":
        """The results of the options; by default a sentence model's vector, or the logits of the model's own head.

        head: its name, "none" for hidden states. pooling: "auto", "mean", "cls", "max", "lasttoken", "pooler", or
        "none" for hidden states of a sentence model.
        Errors: BertcliError if the model has no such head, or if a head and a pooling are given.
        """
        head, pooling = options.head, options.pooling
        if head not in (None, "none") and pooling not in (None, "none"):
            raise BertcliError("A graph gives a head's logits or a sentence's vector: leave out --head or --pooling.")
        if head not in (None, "none"):
            if head not in model.heads:
                heads = ", ".join(model.heads) or "none"
                raise BertcliError(f"{model.name} has no head {quoted(head)}; its heads: {heads}.")
            return cls._of_head(model, head)
        scored = model.pair_scores if head is None and pooling is None else None
        if scored is not None:
            return cls(model, scored=scored)
        is_sentence_model = model.path is not None and bool(model.kind.pooling)
        if (pooling or ("auto" if is_sentence_model and head is None else "none")) != "none":
            steps = EncodeSteps.make(model, EncodeOptions(pooling=pooling, normalize=options.normalize))
            return cls(model, steps=steps)
        default = next((name for name in HEADS if name in model.heads), None)
        if head is None and pooling is None and default is not None:
            return cls._of_head(model, default)
        return cls(model)

    @classmethod
    def _of_head(cls, model: LoadedModel, head: str) -> "GraphResults":
        """Choose a head's logits. Errors: BertcliError for a head that cannot be in a graph."""
        refusal = model.readable_kind.refusal_in_a_graph(head)
        if refusal is not None:
            raise BertcliError(refusal)
        return cls(model, head)

    def numpy(self, batch: Packed) -> dict[str, Array]:
        """Compute the results of a batch with NumPy."""
        results = self._watchable(batch)
        if self.head == "qa":
            results = dict(zip(ANSWER, results["logits"].T, strict=True))
        if self.steps is not None:
            hidden = results[HIDDEN]
            pooled = results.pop("pooler_output", hidden)
            modes = [pooled if mode == "pooler" else pool(hidden, batch.offsets, mode) for mode in self.steps.pooling]
            results["sentence_embedding"] = self.steps.finish(np.concatenate(modes, axis=1))
        if self.scored is not None:
            results = {"logits": self.scored.of(results[HIDDEN], batch.offsets)}
        return results

    def export(self, opset: int, stored: StoredType = "float32") -> onnx_file.Export:
        """Make the graph of these results; `stored` is the type of its weights."""
        if self.steps is None and self.head is None and self.scored is None:
            self.model.note_layers_after("in the graph")
            note = self.model.readable_kind.note_of_encoder_graph
            if note is not None:
                logger.info("%s", note)
        after = self.steps.dense if self.steps else self.scored.layers if self.scored else ()
        exporter = exporter_of(self.model.network, after, opset=opset, stored=stored)
        results = exporter.watch(self._watchable)
        if self.head == "qa":
            results = {name: rules.column(results["logits"], i) for i, name in enumerate(ANSWER)}
        if self.steps is not None:
            pooler = results.pop("pooler_output", None)
            results["sentence_embedding"] = self.steps.in_graph(exporter, results[HIDDEN], pooler)
        if self.scored is not None:
            results = {"logits": self.scored.in_graph(exporter, results[HIDDEN])}
        return onnx_file.Export(exporter.graph, results, self._metadata())

    def _watchable(self, batch: Packed) -> dict[str, Array]:
        """The results that consist of ops."""
        network = self.model.network
        hidden = network(batch)
        if self.head is not None:
            rows = network.input_rows(self.head, batch)
            logits = network.predict(self.head, hidden if rows is None else gather(hidden, rows), batch)
            return {"logits": logits}
        pooler = "pooler" in (network.heads if self.steps is None else self.steps.pooling)
        pooled = {"pooler_output": network.predict("pooler", gather(hidden, batch.first), batch)} if pooler else {}
        return {HIDDEN: hidden, **pooled}

    def _metadata(self) -> dict[str, str]:
        """The metadata of the file; it has the name of the model's folder, not its path, which is private."""
        model = self.model
        metadata = {"source": visible(model.path.name if Path(model.name).exists() and model.path else model.name)}
        if model.path is not None and (model.path / "config.json").exists():
            metadata["config"] = (model.path / "config.json").read_text(encoding="utf-8")
        if self.head is not None:
            metadata["head"] = self.head
        if self.head in ("classifier", "token_classifier"):
            metadata["labels"] = json.dumps(model.config.labels)
        if self.scored is not None:
            metadata["pooling"] = ", ".join(self.scored.pooling)
        if self.steps is not None:
            steps = [*self.steps.pooling, *("dense" for _ in self.steps.dense)]
            metadata["pooling"] = ", ".join([*steps, "normalize"] if self.steps.normalize else steps)
        return metadata
