"""ONNX Runtime as the engine of a model: an object that computes hidden states, which `LoadedModel` is given."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.models.config import Config
from bertcli.network.heads import Network
from bertcli.tracing.dispatch import Array
from bertcli.wings.onnx import exactness
from bertcli.wings.onnx.open_session import open_session
from bertcli.wings.onnx.session import Session, hidden_states

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class OnnxEngine:
    """A session for `network`, and for no other, with what it was opened with."""

    network: Network
    folder: Path
    config: Config
    precision: str
    device: str
    session: Session

    def hidden_states(self, batch: Packed) -> Array:
        """Hidden states of the last layer [token, hidden]."""
        return hidden_states(self.session, batch)

    def exact_enough(self, model: LoadedModel) -> "OnnxEngine":
        """Measure and log how far int8's vectors are from float32's; keep layers in float32 where that is too far.

        Errors: BertcliError if it is too far with these, too, unless the model's engine is forced.
        """
        if self.precision == "float32":
            return self
        force, pooling = model.engine.force, model.kind.pooling
        mode = pooling[0] if len(pooling) == 1 else "mean"
        # A small vocabulary may have no token for a text in another script.
        tokens = [
            text for text in model.tokenizer.encode(exactness.TEXTS, max_length=self.config.max_tokens) if text.ids
        ]
        measured = exactness.exactness(self.session, self.network, tokens, mode)
        kept = exactness.KeptLayers((), self.session, measured)
        # Damaged weights make the cosine NaN, which compares false: the tasks report NaN in results.
        if measured.mean < exactness.WARNED and not force:
            kept = exactness.keep_layers(kept, self.network, self.config.aliases, tokens, mode, self._reopened)
        said = f"int8 of {model.name}{_in_float32(kept.layers)}: {kept.exactness}"
        if kept.layers:
            said += f"; with int8 throughout {measured.mean:.3f}"
        if kept.exactness.mean < exactness.REFUSED and not force:
            raise BertcliError(
                f"{said}, which is too far from it: use --engine onnx, or in Python force=True to take it as it is."
            )
        if kept.exactness.mean < exactness.WARNED:
            logger.warning("%s: compare results on your own data.", said)
        else:
            logger.info("%s.", said)
        return replace(self, session=kept.session)

    def _reopened(self, kept: Sequence[str]) -> Session:
        """Open a session with these layers in float32."""
        return open_session(
            self.network, self.folder, self.config, precision=self.precision, device=self.device, kept=kept
        )


def open_engine(name: str, network: Network, folder: Path, config: Config, device: str) -> OnnxEngine:
    """Open ONNX Runtime, in float32 or int8. Errors: BertcliError if it is missing, or cannot use this device."""
    precision = "int8" if name == "onnx-int8" else "float32"
    session = open_session(network, folder, config, precision=precision, device=device)
    return OnnxEngine(network, folder, config, precision, device, session)


def _in_float32(layers: Sequence[str]) -> str:
    """Say which layers, by their paths, stay in float32; nothing of none."""
    numbers = [str(number) for number in sorted(int(path.rpartition(".")[2]) + 1 for path in layers)]
    if not numbers:
        return ""
    *others, last = numbers
    return f" with layer{'s' * bool(others)} {', '.join(others)}{' and ' * bool(others)}{last} in float32"
