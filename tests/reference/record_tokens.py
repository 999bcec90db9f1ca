"""Record what transformers makes of texts with a tokenizer.json of every kind, in tokens.json.

`python tests/reference/record_tokens.py` with transformers 4.57 (recorded with 4.57.6), whose PreTrainedTokenizerFast
takes the file as it is; some classes of version 5 make another normalizer and pre-tokenizer from it.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import transformers

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.json_files import read_json  # noqa: E402
from helpers.tokenizer_kinds import KINDS, write_kind  # noqa: E402

TEXTS = ["The  tea was {mask} hot,\tcafé 北京! unbelievable", "", " tokens\n«naïve» e\u0301 😀x"]
PAIR = "He drank the coffee in Paris."
CASES: list[dict[str, Any]] = [
    *({"text": text} for text in TEXTS),
    {"text": TEXTS[0], "pair": PAIR},
    {"text": TEXTS[0], "pair": PAIR, "max_length": 19, "truncation": "longest_first"},
    {"text": PAIR, "pair": TEXTS[0], "max_length": 20, "truncation": "only_second", "stride": 2},
    {"text": TEXTS[0], "max_length": 12, "truncation": "only_first", "stride": 3},
]


def told(encoded: Any) -> list[list[list[int]]]:
    """Ids, segments, starts, ends and words (-1 for special tokens) of each window."""
    return [
        [one.ids, one.type_ids, [a for a, _ in one.offsets], [b for _, b in one.offsets],
         [-1 if word is None else word for word in one.word_ids]] for one in encoded.encodings
    ]  # fmt: skip


def record() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            write_kind(Path(folder), kind)
            names = read_json(Path(folder) / "tokenizer_config.json")
            tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", **names)
        found[kind] = []
        for case in CASES:
            text, pair = case["text"].format(mask=names["mask_token"]), case.get("pair")
            pair = pair and pair.format(mask=names["mask_token"])
            options: dict[str, Any] = {key: case[key] for key in ("max_length", "truncation", "stride") if key in case}
            encoded = tokenizer(text, pair, return_overflowing_tokens="stride" in case, return_offsets_mapping=True,
                                return_token_type_ids=True, **options)  # fmt: skip
            found[kind].append({"text": text, "pair": pair, **options, "windows": told(encoded)})
        spelled = tokenizer.convert_tokens_to_string(tokenizer.tokenize("The hot tea, café!"))
        found[kind].append({"spelled": spelled})
    return found


if __name__ == "__main__":
    (HERE / "tokens.json").write_text(json.dumps(record(), ensure_ascii=False, separators=(",", ":")) + "\n")
