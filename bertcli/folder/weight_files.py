"""Which files of a folder hold its weights."""

from pathlib import Path

from bertcli.errors import BertcliError, shown
from bertcli.folder.files import is_plain
from bertcli.folder.model_folder import Folder

SINGLE_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
WEIGHT_FILES = (SINGLE_FILE, INDEX_FILE, "pytorch_model.bin", "pytorch_model.bin.index.json")  # the first that is there
INDEX_ENDING = ".index.json"


def weights_file(folder: Folder) -> Path | None:
    """The file of WEIGHT_FILES that a folder's tensors are read from, or that says which files they are in."""
    return next((folder.file(name) for name in WEIGHT_FILES if folder.has(name)), None)


def shard_names(folder: Folder, name: str) -> dict[str, str]:
    """Tensor name → file name from an index of shards; file names outside the folder are refused."""
    weight_map, index = folder.object(name).get("weight_map"), folder.file(name)
    if not isinstance(weight_map, dict):
        raise BertcliError(f"{index} has no weight_map of tensor and file names: fetch the model again.")
    ending = Path(index.name.removesuffix(INDEX_ENDING)).suffix
    for tensor, file in weight_map.items():
        if not isinstance(file, str) or not file.endswith(ending) or not is_plain(file):
            raise BertcliError(
                f"{index} places tensor {shown(tensor)} in {shown(file)}, which is not a {ending} file in the same "
                "folder: do not use this model."
            )
    return weight_map
