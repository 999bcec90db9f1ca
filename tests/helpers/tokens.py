"""Count the code there is to read: tokens of Python, without comments and docstrings, however it is laid out.

`python tests/helpers/tokens.py` prints them by folder. To look at; nothing is tested by it.
"""

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "bertcli"
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tokens_in(file: Path) -> int:
    """Tokens of a file of Python."""
    source = file.read_text(encoding="utf-8")
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None
    }
    return sum(
        token.type not in LAYOUT and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


def tokens_by_folder() -> dict[str, int]:
    """Tokens of the package's folders, most first; "." for the files beside them."""
    counts: dict[str, int] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        folder, *inner = file.relative_to(PACKAGE).parts
        counts[folder if inner else "."] = counts.get(folder if inner else ".", 0) + tokens_in(file)
    return dict(sorted(counts.items(), key=lambda count: -count[1]))


if __name__ == "__main__":
    for name, count in tokens_by_folder().items():
        print(f"{count:8,}  {name}")
    print(f"{sum(tokens_by_folder().values()):8,}  in all")
