"""Names of models as tables show them: as much of each path as distinguishes it from the others."""

from collections.abc import Sequence
from pathlib import PurePath


def told_apart(names: Sequence[str]) -> list[str]:
    """The shortest ends of paths that differ from each other: `/a/x/model`, `/b/x/model` are `a/x/model`, `b/x/model`.

    A single name, and names of which two are equal, stay as they are.
    """
    if len(names) < 2 or len(set(names)) < len(names):
        return [*names]
    # Hub names have two parts and are kept whole: without its owner a name is another one.
    parts_of = [PurePath(name).parts or (name,) for name in names]
    for count in range(1, max(map(len, parts_of))):
        ends = [str(PurePath(*parts[-count:])) for parts in parts_of]
        if len(set(ends)) == len(ends):
            return [name if len(parts) <= 2 else end for name, parts, end in zip(names, parts_of, ends, strict=True)]
    return [*names]
