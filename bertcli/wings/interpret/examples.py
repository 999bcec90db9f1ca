"""Examples of the views for `bertcli info`: which of them can use a model, with texts that suit it."""

import re
from collections.abc import Iterator

from bertcli.tasks.classify import text_to_classify
from bertcli.tasks.examples import CAT, CONTEXT, DOG, QUESTION, Example, Subject

# Replacements that make a second text for `patch` from an example's text.
OTHER = {"loved": "hated", "cat": "dog", "tall": "old", "hot": "cold"}


def examples(subject: Subject) -> Iterator[Example]:
    """Yield examples of the views that can use the model."""
    model, reads = subject.model, subject.reads
    encodes, fills = subject.runs("encode"), "mlm" in model.heads
    layers = bool(model.config.num_hidden_layers)
    kind = model.readable_kind
    matches = kind.matched_tokens(names_result=False) is not None
    only_matches = kind.matched_tokens(names_result=True) is not None
    labels = only_matches or "rank" in subject.stated_uses or "classifier" in model.heads
    has_result = reads and (labels or fills or encodes)

    masked = [f"She poured a cup of hot {subject.mask_token}."]
    if labels:
        explained = text_to_classify(subject)
    elif fills:
        explained = masked
    else:
        explained = [CAT, "--contrast", DOG]
    contrast = re.sub(r"\w+", lambda word: OTHER.get(word[0], word[0]), explained[0])
    has_mask = reads and model.tokenizer.special_id("mask") is not None

    if has_result:
        yield Example("explain", explained if has_mask else [*explained, "--method", "delete"])
    if matches and not only_matches:  # bge-m3
        yield Example("explain", [QUESTION, "--text-pair", CONTEXT])
    if layers and reads and fills:
        yield Example("lens", masked)
    if layers and reads:
        yield Example("heads", [CAT])
    if layers and has_result and not only_matches:
        yield Example("patch", [explained[0], contrast, *explained[1:]])
    if subject.runs("encode", pooling="auto" if kind.pooling_of_text else "mean"):
        yield Example("probe", ["-i", "labels.csv"])
    if reads:
        yield Example("diff", ["--versus", "my-fine-tune", CAT], model_is_argument=True)
