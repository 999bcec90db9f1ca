"""encode: texts to vectors."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bertcli.files.texts import Pairs
from bertcli.tasks.options import Prepared, numbers, option

Pooling = Literal["auto", "mean", "cls", "max", "pooler", "none"]


@dataclass(frozen=True, eq=False)
class EncodeOptions(Prepared):
    """How a text's vector is made."""

    pairs: Pairs = None
    pooling: Pooling | None = option(
        "auto", "MODE",
        "auto: as the model specifies (default); mean, cls, max, pooler; none: one vector per token.",
    )  # fmt: skip
    layer: int | Sequence[int] = option(
        -1, "N[,N]", "0: embeddings, N: layer N, -1: the last; several are concatenated.", read=numbers("-1 or 0,6,12")
    )
    normalize: bool | None = option(
        None, "", "Scale vectors to length 1 (default: as the model specifies).", "--normalize/--no-normalize"
    )
    _: KW_ONLY
    truncate_dim: int | None = option(
        None, "N", "Keep only the first N numbers of each vector; normalization, if any, comes after.", least=1
    )
