"""Which engine computes a model's hidden states: NumPy, or one that an extension declares."""

from collections.abc import Callable
from typing import Any, NamedTuple

from bertcli import extensions
from bertcli.errors import BertcliError, quoted, quoted_object


class EngineChoice(NamedTuple):
    """Which engine computes hidden states: NumPy, or one that an extension declares, on a device."""

    name: str = "numpy"
    device: str = "cpu"
    force: bool = False  # accept int8 however far its vectors are from float32's

    @property
    def title(self) -> str:
        """The name that people know it by."""
        other = None if self.name == "numpy" else extensions.engine(self.name)
        return "NumPy" if other is None else other.title

    def check(self) -> None:
        """Raise BertcliError for an engine that there is not, and for a device that NumPy cannot use."""
        if self.name != "numpy" and extensions.engine(self.name) is None:
            names = ", ".join(extensions.engine_names())
            raise BertcliError(f"There is no engine {quoted_object(self.name)}; choose from {names}.")
        if self.name == "numpy" and self.device != "cpu":
            others = " or ".join(f'{other.title} (engine="{other.name}")' for other in extensions.engines()[:1])
            raise BertcliError(f"NumPy computes on the processor: for another device use {others or 'another engine'}.")

    def opener(self) -> Callable[..., Any]:
        """What opens another engine than NumPy for a network. Errors: BertcliError for one that cannot be used."""
        open_engine = extensions.opens_engine(self.name)
        if open_engine is None:
            raise BertcliError(f"The engine {quoted(self.name)} cannot be used: install it again, or use NumPy.")
        return open_engine


NUMPY = EngineChoice()
