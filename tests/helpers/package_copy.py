"""A copy of the package, to which tests add files and from which they take some away."""

import shutil
from pathlib import Path

import bertcli


def copy_package(root: Path) -> Path:
    """Copy the package into a folder, and return it; the bundled models are those of the checkout.

    What is compiled is copied, too: each copy would else be compiled again.
    """
    home = Path(bertcli.__file__).parent
    shutil.copytree(home, root / "bertcli")
    (root / "sample_weights").symlink_to(home.parent / "sample_weights")
    return root
