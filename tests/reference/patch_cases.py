"""The models and texts of `patch`: the tests run them, and a script records what hooks in PyTorch make of some."""

from pathlib import Path

from helpers.family_checkpoints import make_family
from helpers.tokenizer_kinds import KINDS, write_kind
from helpers.vocabulary import pieces, write_tokenizer_json

TYPES = ("bert", "roberta", "modernbert")
A, B = "the king drank hot {mask} and a dog sat", "the queen drank hot {mask} and a dog sat"


def folder_of(folder: Path, family: str, head: str = "mlm") -> Path:
    """A checkpoint of a family with a tokenizer of its kind; "bert" is the suite's own small one."""
    folder.mkdir(exist_ok=True)
    if family == "bert":
        from helpers.checkpoints import make

        return make(folder / "bert", head=head, seed=402, tokenizer="both")
    kind = {"deberta": "roberta", "gte": "xlm-roberta"}.get(family, family)
    if kind in KINDS:
        size = write_kind(folder, kind)
    else:
        write_tokenizer_json(folder, pieces())
        size = len(pieces())
    return make_family(folder, family, head, sizes={"V": size}, seed=5)
