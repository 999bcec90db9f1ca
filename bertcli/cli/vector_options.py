"""The options of `bertcli encode` for its vectors: how they are made, and how they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from bertcli.cli.options import LongOptions, option


@dataclass(frozen=True)
class VectorOptions:
    """How a text's vector is made and stored."""

    pooling: Annotated[
        Literal["auto", "mean", "cls", "max", "pooler", "none"],
        option(None, "--pooling", metavar="MODE",
               help="auto: as the model specifies (default); mean, cls, max, pooler; none: one vector per token."),
    ] = "auto"  # fmt: skip
    layer: Annotated[
        str,
        option(
            None, "--layer", metavar="N[,N]", help="0: embeddings, N: layer N, -1: the last; several are concatenated."
        ),
    ] = "-1"
    normalize: Annotated[
        bool | None,
        option(None, "--normalize/--no-normalize", help="Scale vectors to length 1 (default: as the model specifies)."),
    ] = None
    truncate_dim: Annotated[
        int | None,
        option(None, "--truncate-dim", min=1, metavar="N",
               help="Keep only the first N numbers of each vector; normalisation, if any, comes after."),
    ] = None  # fmt: skip
    dtype: Annotated[
        Literal["float32", "float16", "int8", "binary"],
        option(None, "--dtype", metavar="TYPE",
               help="How arrays are stored: float32 (default), float16, int8 with one scale per row, "
               "binary: one bit per number."),
    ] = "float32"  # fmt: skip
    id_column: Annotated[
        str | None,
        option(None, "--id-column", metavar="NAME",
               help="The field that identifies a text; it is copied to the output."),
    ] = None  # fmt: skip
    similarity: Annotated[
        bool, option(None, "--similarity", help="Show how similar the texts are: the cosines of all pairs.")
    ] = False

    def refuse_contradictions(self, long: LongOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        unfit = not self.one_a_text or self.stored_smaller or self.id_column is not None
        if self.similarity and (unfit or long.resume or long.keep_going):
            raise typer.BadParameter(
                "it compares a few whole texts: no --pooling none, --resume, --keep-going, --dtype or --id-column.",
                param_hint="--similarity",
            )

    @property
    def layers(self) -> list[int]:
        """The numbers of --layer; wrong usage is a typer.BadParameter."""
        try:
            return [int(number) for number in self.layer.split(",")]
        except ValueError:
            raise typer.BadParameter("give whole numbers, as in -1 or 0,6,12.", param_hint="--layer") from None

    @property
    def one_a_text(self) -> bool:
        """Whether a text has one vector rather than one per token."""
        return self.pooling != "none"

    @property
    def stored_smaller(self) -> bool:
        """Whether numbers are stored in fewer bits than float32, which only files of arrays support."""
        return self.dtype != "float32"

    @property
    def plan(self) -> dict[str, Any]:
        """The arguments for the task."""
        return {
            "pooling": self.pooling,
            "layer": self.layers,
            "normalize": self.normalize,
            "truncate_dim": self.truncate_dim,
        }

    @property
    def by_name(self) -> dict[str, Any]:
        """The options that affect a result, by their names on the command line."""
        found = {**self.plan, "dtype": self.dtype, "id_column": self.id_column}
        return {f"--{name.replace('_', '-')}": value for name, value in found.items()}
