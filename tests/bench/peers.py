"""The others, each as a function of a batch, where they are installed; and the checkpoint they all run."""

import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoints import Sentence, make
from helpers.vocabulary import pieces
from numpy.typing import NDArray

from bench.beside import Beside

PEERS = ("torch", "transformers", "onnxruntime", "onnx", "sentence_transformers")
SIZES = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "vocab_size": 30522,
}
MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
Forward = Callable[[NDArray[np.integer[Any]], NDArray[np.integer[Any]]], NDArray[np.float32]]  # ids, mask -> states


def missing() -> list[str]:
    """The peers that are not installed."""
    return [name for name in PEERS if find_spec(name) is None]


def base_checkpoint() -> Path:
    """A BERT-base of random weights with a masked-language-model head and a tokenizer, made once."""
    folder = Path(tempfile.gettempdir()) / "bertcli-bench" / "base"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, head="mlm", sizes=SIZES)
        (folder / "done").touch()
    return folder


def minilm_checkpoint() -> Path:
    """A sentence model of random weights with the sizes of MiniLM and of its vocabulary, made once."""
    folder = Path(tempfile.gettempdir()) / "bertcli-bench" / "minilm"
    if not (folder / "done").exists():
        words = pieces()
        words += [f"unused{number}" for number in range(SIZES["vocab_size"] - len(words))]
        make(folder, sizes=SIZES | MINILM, vocabulary=words, tokenizer="both", sentence=Sentence(("mean",)))
        (folder / "done").touch()
    return folder


def forwards(folder: Path, beside: Path | None = None) -> dict[str, Forward]:
    """bertcli first, then another checkout of it, PyTorch and ONNX Runtime where they are there."""
    import bertcli

    model = bertcli.load(folder)
    found: dict[str, Forward] = {"bertcli": lambda ids, mask: model.forward(ids, mask=mask)}
    if beside:
        forward = Beside(beside, folder).method("forward")
        found[beside.name] = lambda ids, mask: forward(ids, mask=mask)
    if find_spec("torch") and find_spec("transformers"):
        found["torch"] = torch_forward(folder)
    if find_spec("onnxruntime") and (onnx := onnx_file(folder)):
        found["onnxruntime"] = onnx_forward(onnx)
    return found


def torch_forward(folder: Path) -> Forward:
    """transformers' BertModel in float32."""
    torch, transformers = import_module("torch"), import_module("transformers")
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()

    def forward(ids: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.float32]:
        with torch.inference_mode():
            given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            return np.asarray(model(**given).last_hidden_state)

    return forward


def onnx_file(folder: Path) -> Path | None:
    """The same model as a fused graph for ONNX Runtime, exported once; None where nothing can export it."""
    fused = folder.parent / "base.fused.onnx"
    if fused.exists():
        return fused
    if set(missing()) - {"sentence_transformers"}:
        return None
    torch, transformers = import_module("torch"), import_module("transformers")
    optimizer = import_module("onnxruntime.transformers.optimizer")

    class States(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.BertModel.from_pretrained(
                folder, add_pooling_layer=False, attn_implementation="eager"
            )

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state

    ids = torch.ones((2, 16), dtype=torch.int64)
    axes = {name: {0: "batch", 1: "token"} for name in (*INPUTS, "states")}
    plain = str(folder.parent / "base.onnx")
    torch.onnx.export(
        States().eval(), (ids, ids, ids * 0), plain, input_names=list(INPUTS), output_names=["states"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    graph = optimizer.optimize_model(plain, model_type="bert", num_heads=12, hidden_size=768, opt_level=1)
    graph.save_model_to_file(str(fused))
    return fused


def onnx_forward(file: Path) -> Forward:
    """ONNX Runtime on a fused graph, threads as it chooses them."""
    onnxruntime = import_module("onnxruntime")
    session = onnxruntime.InferenceSession(str(file), onnxruntime.SessionOptions(), ["CPUExecutionProvider"])
    kind = np.int32 if session.get_inputs()[0].type == "tensor(int32)" else np.int64

    def forward(ids: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.float32]:
        given = {"input_ids": ids.astype(kind), "attention_mask": mask.astype(kind)}
        return np.asarray(session.run(None, {**given, "token_type_ids": np.zeros_like(ids, dtype=kind)})[0])

    return forward
