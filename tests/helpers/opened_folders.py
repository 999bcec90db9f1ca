"""What the package reads of a folder, opened in one place: tests of files do not depend on who calls whom inside."""

from pathlib import Path

from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.read import read_kind
from bertcli.models.config import Config
from bertcli.tokens import Tokenizer
from bertcli.weights.loading import Checkpoint, open_checkpoint


def layout_of(folder: Path) -> Layout:
    """Read what lies where in a folder."""
    return Layout(Folder(folder))


def sentence_of(folder: Path) -> Kind:
    """Read the sentence settings of a folder, of which nothing else needs to be there."""
    return read_kind(layout_of(folder))


def tokenizer_of(folder: Path, config: Config | None = None) -> Tokenizer:
    """Open the tokenizer in a folder, of which nothing else needs to be there; `config` is the network's."""
    return Tokenizer.open(layout_of(folder), config)


def checkpoint_of(folder: Path) -> Checkpoint:
    """Open the network of a folder, with the use of every tensor."""
    return open_checkpoint(layout_of(folder))
