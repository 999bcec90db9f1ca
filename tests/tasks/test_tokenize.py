"""tokenize: records of pieces."""

from conftest import Made

import bertcli


def test_tokenize_takes_any_texts(made: Made) -> None:
    from bertcli.tasks.compute.tokenize import tokenize

    (record,) = tokenize(bertcli.load(made()).tokenizer, ["tea"])
    assert record["tokens"] == ["[CLS]", "tea", "[SEP]"]
