"""The type of bge-m3's folders: beside the network's weights lie those of small layers.

folder/folder_types.py finds it by the name `TYPE`.
"""

from bertcli.folder.folder_types import FolderType

SPARSE_FILE, LATE_FILE = "sparse_linear.pt", "colbert_linear.pt"


class SeveralOutputsFolder(FolderType):
    """A folder with a layer of each token's weight, or of each token's vector; else as any."""

    files = (SPARSE_FILE, LATE_FILE)


TYPE = SeveralOutputsFolder()
