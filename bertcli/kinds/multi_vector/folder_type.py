"""The type of Stanford's folders, whose settings of late interaction are in a file of their own.

folder/folder_types.py finds it by the name `TYPE`.
"""

from bertcli.folder.folder_types import FolderType

METADATA = "artifact.metadata"


class StanfordFolder(FolderType):
    """A folder with artifact.metadata; else as any."""

    files = (METADATA,)


TYPE = StanfordFolder()
