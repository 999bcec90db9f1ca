"""Record what the tests compare tag, answer, rank and classify's candidates and choices with, in tasks.json.

`python tests/reference/record_tasks.py` with torch, transformers 5 and sentence-transformers (recorded with 5.23.0 and
6.2.0); then the same with transformers 4.57, the last to answer questions (4.57.6): each records what it can do.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = HERE / "tasks.json"
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402
import transformers  # noqa: E402
from helpers.checkpoints import ARCHITECTURES, make  # noqa: E402
from helpers.family_checkpoints import architecture  # noqa: E402
from helpers.json_files import read_json  # noqa: E402
from reference import task_cases as cases  # noqa: E402
from reference.lines import lines_of  # noqa: E402

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
warnings.simplefilter("ignore")  # of a fallback for tokenizers without words


def opened(folder: Path, checkpoint: cases.Checkpoint, limit: int | None = None) -> tuple[Any, Any]:
    """A checkpoint's model and tokenizer; `limit` is put over the tokenizer's."""
    path = make(folder, **checkpoint)
    model = getattr(transformers, ARCHITECTURES[checkpoint["head"]]).from_pretrained(path, dtype=torch.float32)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(path)
    tokenizer.model_max_length = limit or tokenizer.model_max_length
    return model.eval(), tokenizer


def tags(folder: Path) -> dict[str, Any]:
    """Entities of short texts by aggregation, of a long one by windows too, and of one text with no label ignored."""

    def entities(text: str, aggregation: str, limit: int | None = None, **options: Any) -> Any:
        model, tokenizer = opened(folder, cases.TAGGER, limit)
        tagger = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, device="cpu",
                                       aggregation_strategy=aggregation, **options)  # fmt: skip
        rows = tagger(text)
        return [{key: float(value) if key == "score" else value for key, value in row.items()} for row in rows]

    found: dict[str, Any] = {
        f"tag.{aggregation}": [entities(text, aggregation) for text in cases.TAGGED_TEXTS]
        for aggregation in cases.AGGREGATIONS
    }
    for size, overlap in cases.TAG_WINDOWS:
        found[f"tag.windows.{size}.{overlap}"] = {
            aggregation: entities(cases.LONG_TEXT, aggregation, size, stride=overlap)
            for aggregation in cases.AGGREGATIONS[1:]
        }
    found["tag.everything"] = entities(cases.TAGGED_TEXTS[1], "simple", ignore_labels=[])
    return found


def answers(folder: Path) -> dict[str, Any]:
    model, tokenizer = opened(folder, cases.READER)
    reader = transformers.pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")
    rows = []
    for top_k, longest, no_answer in cases.ANSWER_SETTINGS:
        for question, context in cases.QUESTIONS:
            found = reader(question=question, context=context, top_k=top_k, max_answer_len=longest,
                           handle_impossible_answer=no_answer)  # fmt: skip
            rows.append([one for one in ([found] if isinstance(found, dict) else found) if one["score"] > 0])
    return {"answer": rows}


def ranks(folder: Path) -> dict[str, Any]:
    from sentence_transformers import CrossEncoder

    found = {}
    for name in cases.ACTIVATIONS:
        path = cases.write_ranker(folder / name, name)
        found[f"rank.{name}"] = CrossEncoder(str(path), device="cpu").rank(cases.QUERY, list(cases.DOCUMENTS))
    return found


def candidates(folder: Path) -> dict[str, Any]:
    """Scores of candidates for every text, by the place of "entailment", template, and whether several may hold."""
    found = {}
    for name, checkpoint in (("last", cases.INFERENCE), ("first", cases.ENTAILMENT_FIRST)):
        labels = {label: number for number, label in checkpoint["id2label"].items()}
        model, tokenizer = opened(folder / name, checkpoint | {"config": {"label2id": labels}})
        judge = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
        for template in cases.TEMPLATES:
            for multi in (False, True):
                rows = []
                for choices in (cases.CANDIDATES, cases.CANDIDATES[:1]):
                    for text in filter(None, cases.PREMISES):
                        one = judge(text, list(choices), hypothesis_template=template, multi_label=multi)
                        rows.append(dict(zip(one["labels"], one["scores"], strict=True)))
                found[f"candidates.{name}.{cases.TEMPLATES.index(template)}.{multi}"] = rows
    return found


def choices(folder: Path) -> dict[str, Any]:
    model, tokenizer = opened(folder, cases.CHOOSER)
    rows = []
    for text in cases.PREMISES:
        tokens = tokenizer([text] * len(cases.CHOICES), list(cases.CHOICES), truncation=True, padding=True,
                           return_tensors="pt")  # fmt: skip
        with torch.inference_mode():
            logits = model(**{name: value[None] for name, value in tokens.items()}).logits
        rows.append(torch.softmax(logits[0], -1).tolist())
    return {"choices": rows}


def family_model(folder: Path, family: str, head: str) -> tuple[Any, Any]:
    """The model and the tokenizer of another family's checkpoint, which takes tokenizer.json as it is."""
    path = cases.make_task(folder / family / head, family, head)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = getattr(transformers, architecture(family, head)).from_pretrained(path, dtype=torch.float32)
    if len(tokenizer(cases.LONG_TEXT, truncation=True)["input_ids"]) != 64:
        raise ValueError(f"the tokenizer of {family} has lost its limit")
    return model.eval(), tokenizer


def family_tags(folder: Path) -> dict[str, Any]:
    """By aggregation. Words are left out where the pipeline spells each of them a second time, which mars them."""
    found = {}
    size, overlap = cases.FAMILY_WINDOW
    for family in cases.FAMILIES:
        model, tokenizer = family_model(folder, family, "token_classifier")
        for aggregation in cases.AGGREGATIONS:
            tagger = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, device="cpu",
                                           aggregation_strategy=aggregation, ignore_labels=[])  # fmt: skip
            tokenizer.model_max_length = 64
            rows = [tagger(cases.FAMILY_TEXTS[0] if aggregation in ("none", "simple") else cases.FAMILY_WORDS)]
            tokenizer.model_max_length = size
            rows += [tagger(cases.FAMILY_TEXTS[1], stride=overlap)] if aggregation == "simple" else []
            spelled = aggregation in ("none", "simple") or family in ("distilbert", "mpnet")
            found[f"{family}.tag.{aggregation}"] = [
                [{key: float(value) if key == "score" else value for key, value in entity.items()
                  if spelled or key != "word"} for entity in row] for row in rows
            ]  # fmt: skip
    return found


def family_answers(folder: Path) -> dict[str, Any]:
    found = {}
    for family in cases.FAMILIES:
        model, tokenizer = family_model(folder, family, "qa")
        reader = transformers.pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")
        found[f"{family}.answer"] = [
            reader(question=question, context=context, top_k=4, handle_impossible_answer=True)
            for question, context in cases.FAMILY_QUESTIONS
        ]
    return found


def family_ranks(folder: Path) -> dict[str, Any]:
    from sentence_transformers import CrossEncoder

    found = {}
    for family in cases.FAMILIES:
        path = cases.make_task(folder / family, family, "classifier")
        found[f"{family}.rank"] = CrossEncoder(str(path), device="cpu").rank(cases.QUERY, list(cases.DOCUMENTS))
    return found


def main() -> None:
    kinds = (
        (answers, family_answers)
        if transformers.__version__.startswith("4.")
        else (tags, ranks, candidates, choices, family_tags, family_ranks)
    )
    with tempfile.TemporaryDirectory() as name:
        new = {key: value for kind in kinds for key, value in kind(Path(name) / kind.__name__).items()}
    old = read_json(FILE) if FILE.exists() else {}
    FILE.write_text(lines_of(dict(sorted({**old, **new}.items()))), encoding="utf-8")


if __name__ == "__main__":
    main()
