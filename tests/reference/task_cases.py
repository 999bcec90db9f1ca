"""What is recorded of tag, answer, rank and classify's candidates and choices: checkpoints, texts, settings."""

from pathlib import Path
from typing import Any

from helpers.checkpoint_files import write_modules
from helpers.checkpoints import make
from helpers.family_checkpoints import make_family
from helpers.json_files import write_json
from helpers.tokenizer_kinds import write_kind
from helpers.vocabulary import pieces, write_tokenizer_json

Checkpoint = dict[str, Any]  # keywords of checkpoints.make

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC", "E-ORG")
TAGGER: Checkpoint = {
    "head": "token_classifier", "id2label": dict(enumerate(TAGS)), "seed": 301, "tokenizer": "both",
    "model_max_length": 48,
}  # fmt: skip
AGGREGATIONS = ("none", "simple", "first", "max", "average")
TAGGED_TEXTS = (
    "The king of France visited Paris.",
    "Unbelievable: the queen's tea-cup isn't HERE?! walking, walked",
    "hello 😀 zzz ☃ café naïve 中国人 M\u00fcller",
    "",
    " \t two  spaces\nand a line ",
)
LONG_TEXT = "The king of France saw the river; she walked into the city, unbelievable, and bought bread. " * 3
TAG_WINDOWS = ((24, 6), (13, 1), (9, 5))  # tokens of a window, and how many of them overlap

READER: Checkpoint = {"head": "qa", "seed": 302, "tokenizer": "both", "model_max_length": 48}
QUESTIONS = (
    ("Who walked?", "The queen walked to the river, and the king drank tea."),
    ("What is it?", "unbelievable"),
    ("Who?", "hello 😀 zzz ☃ café naïve 中国人 THE the The"),
    ("Where was the king?", LONG_TEXT),
    ("Who sold it?", "The house by the river, the house, THE HOUSE. " * 4),
)
ANSWER_SETTINGS = (  # top_k, max_answer_length, no_answer
    (1, 15, False),
    (4, 15, True),
    (3, 2, False),
    (20, 6, True),
)

RANKER: Checkpoint = {"head": "classifier", "num_labels": 1, "seed": 303, "tokenizer": "both", "model_max_length": 40}
QUERY = "Where is hot tea sold?"
DOCUMENTS = (
    "The house by the river sold tea and coffee.",
    "",
    "She walked all day and all night. " * 8,
    "Where is hot tea sold?",
    "café ☃ 中国",
    "The house by the river sold tea and coffee.",
)
TANH, IDENTITY, SIGMOID = (
    "torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid",
)  # fmt: skip
ACTIVATIONS: dict[str, dict[str, Any]] = {  # config.json's keys, and the activation_fn of a folder with modules.json
    "default": {"config": {}},
    "old": {"config": {"sbert_ce_default_activation_function": IDENTITY}},
    "new": {
        "config": {"sentence_transformers": {"activation_fn": TANH}, "sbert_ce_default_activation_function": IDENTITY}
    },
    "folder": {"config": {"sentence_transformers": {"activation_fn": TANH}}, "activation_fn": SIGMOID},
}


def write_ranker(folder: Path, activation: str) -> Path:
    """RANKER with a setting of ACTIVATIONS."""
    setting = ACTIVATIONS[activation]
    make(folder, **RANKER, config=setting["config"])
    if "activation_fn" in setting:
        task = {"transformer_task": "sequence-classification", "module_output_name": "scores"}
        method = {"text": {"method": "forward", "method_output_name": "logits"}}
        write_modules(folder, {"": "sentence_transformers.base.modules.transformer.Transformer"})
        write_json(folder / "sentence_bert_config.json", task | {"modality_config": method})
        settings = {"model_type": "CrossEncoder", "activation_fn": setting["activation_fn"]}
        write_json(folder / "config_sentence_transformers.json", settings)
    return folder


RELATIONS = ("contradiction", "neutral", "Entailment")
INFERENCE: Checkpoint = {
    "head": "classifier", "id2label": dict(enumerate(RELATIONS)), "seed": 304, "tokenizer": "both",
    "model_max_length": 32,
}  # fmt: skip
ENTAILMENT_FIRST: Checkpoint = {**INFERENCE, "id2label": dict(enumerate(reversed(RELATIONS)))}
PREMISES = ("She poured a cup of hot tea.", "", "The bank sold the old house by the river. " * 6)
CANDIDATES = ("tea and coffee", "money", "unbelievable", "world")
TEMPLATES = ("This example is {}.", "{}, and nothing else")

CHOOSER: Checkpoint = {"head": "multiple_choice", "seed": 305, "tokenizer": "both", "model_max_length": 32}
CHOICES = ("She went home.", "The moon is blue, and so is the sun over all the world " * 2, "bread")


# ---------------------------------------------------------------------------------------------------- other families

FAMILIES = {  # and the seed of each
    "distilbert": 401, "roberta": 402, "xlm-roberta": 403, "mpnet": 404, "modernbert": 405, "deberta-v2": 406,
}  # fmt: skip
FAMILY_TEXTS = ("The king of France said: caf\u00e9, unbelievable \u4e2d\u56fd! and  so", LONG_TEXT)
# Words that spaces alone part: elsewhere the pipeline takes a sign for a part of the word before it.
FAMILY_WORDS = "The king of France said caf\u00e9 unbelievable \u4e2d\u56fd and  so"
FAMILY_WINDOW = (30, 7)
FAMILY_QUESTIONS = (("Who?", "The queen walked to the river; unbelievable."), ("Where?", LONG_TEXT))


def make_task(folder: Path, family: str, head: str) -> Path:
    """A checkpoint of a family with a tokenizer of its kind, for 64 tokens; a classifier has one output."""
    labels = {"token_classifier": TAGS, "classifier": ("LABEL_0",)}.get(head, ("LABEL_0", "LABEL_1"))
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64}
    told["model_input_names"] = ["input_ids", "attention_mask"]
    if family == "distilbert":
        write_tokenizer_json(folder, pieces())
        names = {f"{role}_token": f"[{role.upper()}]" for role in ("cls", "sep", "pad", "unk", "mask")}
        write_json(folder / "tokenizer_config.json", names | told)
        size = len(pieces())
    else:
        size = write_kind(folder, family, **told)
    config = {"id2label": {str(i): label for i, label in enumerate(labels)}}
    sizes = {"V": size, "C": len(labels), "P": 66}
    return make_family(folder, family, head, sizes=sizes, config=config, seed=FAMILIES[family])
