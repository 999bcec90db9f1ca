"""A folder for an assistant to read."""

from pathlib import Path


def write_root(tmp_path: Path) -> Path:
    """Write a folder of texts, with a link out of it, and a cycle of links."""
    folder = tmp_path / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text(
        "A dog ran home.\nThe puppy went back to its house.\nInterest rates rose.\n", encoding="utf-8"
    )
    (folder / "deep" / "more.md").write_text("# Tea\n\nGreen tea grows in Japan.\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The password is swordfish.\n", encoding="utf-8")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "deep" / "again").symlink_to(folder)
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    return folder
