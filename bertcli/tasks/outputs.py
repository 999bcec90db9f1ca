"""encode --outputs: several outputs of one pass. It is no task of its own, but a way to encode."""

from dataclasses import dataclass, fields, replace

from bertcli.tasks.encode import SPEC as ENCODE
from bertcli.tasks.encode import EncodeOptions


@dataclass(frozen=True, eq=False, repr=False)
class OutputsOptions(EncodeOptions):
    """The outputs of a model, and the options with which its texts are read."""

    @classmethod
    def of(cls, options: EncodeOptions) -> "OutputsOptions":
        """Take what `encode` was given."""
        return cls(**{item.name: getattr(options, item.name) for item in fields(EncodeOptions)})


OUTPUTS_SPEC = replace(ENCODE, options=OutputsOptions)
