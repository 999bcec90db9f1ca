"""ONNX Runtime as the engine of a model: an object that computes hidden states, which `LoadedModel` is given."""

import logging
from dataclasses import dataclass
from pathlib import Path

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.models.config import Config
from bertcli.network.heads import Network
from bertcli.tasks.parts.sample_sentences import SENTENCES
from bertcli.tracing.dispatch import Array
from bertcli.wings.onnx.exactness import LEAST, mean_cosine
from bertcli.wings.onnx.open_session import open_session
from bertcli.wings.onnx.session import Session, hidden_states

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class OnnxEngine:
    """A session for `network`, and for no other."""

    network: Network
    precision: str
    session: Session

    def hidden_states(self, batch: Packed) -> Array:
        """Hidden states of the last layer [token, hidden]."""
        return hidden_states(self.session, batch)

    def exact_enough(self, model: LoadedModel) -> "OnnxEngine":
        """Measure and log how far int8's vectors are from float32's.

        Errors: BertcliError if it is too far, unless the model's engine is forced.
        """
        if self.precision == "float32":
            return self
        pooling = model.kind.pooling
        # A small vocabulary may have no token for a text.
        encoded = model.tokenizer.encode(SENTENCES, max_length=model.config.max_tokens)
        tokens = [text for text in encoded if text.ids]
        cosine = mean_cosine(self.session, self.network, tokens, pooling[0] if len(pooling) == 1 else "mean")
        said = (
            f"int8 of {model.name}: vectors have cosine {cosine:.3f} with float32's on average "
            f"({len(SENTENCES)} built-in sentences)"
        )
        # Damaged weights make the cosine NaN, which compares false: the tasks report NaN in results.
        if cosine < LEAST and not model.engine.force:
            raise BertcliError(
                f"{said}, which is too far from it: use --engine onnx, or in Python force=True to take it as it is."
            )
        logger.info("%s.", said)
        return self


def open_engine(name: str, network: Network, folder: Path, config: Config, device: str) -> OnnxEngine:
    """Open ONNX Runtime, in float32 or int8. Errors: BertcliError if it is missing, or cannot use this device."""
    precision = "int8" if name == "onnx-int8" else "float32"
    session = open_session(network, folder, config, precision=precision, device=device)
    return OnnxEngine(network, precision, session)
