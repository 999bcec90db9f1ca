"""`Opened`: what a kind reads of an opened model, which stands above it (loaded_model.py)."""

from typing import Protocol

from bertcli.models.config import Config
from bertcli.network.heads import Network
from bertcli.tokens.tokenizer import Tokenizer


class Opened(Protocol):
    """An opened model, as a kind reads it."""

    @property
    def name(self) -> str: ...

    @property
    def heads(self) -> tuple[str, ...]: ...

    @property
    def config(self) -> Config: ...

    @property
    def network(self) -> Network: ...

    @property
    def tokenizer(self) -> Tokenizer: ...
