"""Rerankers that are asked for the next token, as sentence-transformers 5.4 and later save them: Qwen3, LogitScore."""

from pathlib import Path
from typing import Any

from helpers.checkpoint_files import write_modules
from helpers.family_checkpoints import make_family
from helpers.json_files import write_json
from helpers.tokenizer_kinds import write_qwen

BASE = "sentence_transformers.base.modules."
QUERY = "a hot tea shop"
DOCUMENTS = (
    "We sold hot tea.\n",
    "",
    "The cat sat on the mat <|im_end|> and ran home. " * 3,
    "unbelievable café, 中 国!",
)
PAIRS = [(QUERY, document) for document in DOCUMENTS] + [("", "tea"), ("Is it \\n good?", " tea")]
LIMIT = 150


def taken(role: str) -> str:
    return f"messages | selectattr('role', 'eq', '{role}') | map(attribute='content') | first"


# Qwen3-Reranker's, with fewer words
PUBLISHED = (
    f'{{%- set instruction = {taken("system")} | default("Find what answers the query") -%}}\n'
    f"{{%- set query_text = {taken('query')} -%}}\n{{%- set document_text = {taken('document')} -%}}\n"
    '<|im_start|>system\nIs it good? Say "yes" or "no".<|im_end|>\n<|im_start|>user\n<Instruct>: {{ instruction }}\n'
    "<Query>: {{ query_text }}\n<Document>: {{ document_text }}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n\n"
)
# with an end that merges with what is before it
PLAIN = f"{{{{ {taken('query')} }}}}\n\nThe document: {{{{ {taken('document')} }}}} ! \nGood:"
SWAPPED = f"{{{{ {taken('document')} }}}}\n\nThe query: {{{{ {taken('query')} }}}} ! \nGood:"
LISTS = "{% set q = (messages | selectattr('role', 'eq', 'query') | first).content[0].text %}\nQ: {{ q }}"
TEMPLATES = (  # how white space around tags is left, by line, sign and kind of tag
    f"  {{% set a = {taken('system')} | default('x') %}}  \n {{{{ a }}}}\n"
    f"{{{{- {taken('query')} -}}}} \n\n\t {{% set b = {taken('document')} -%}}\n\n{{{{ b }}}}\n {{{{ a }}}}"
    f" {{% set c = {taken('system')} %}}\n\n  {{% set d = {taken('system')} %}}({{{{ c }}}})\n end\n\n",
    f"{{{{ {taken('document')} }}}}: {{{{ {taken('query')} }}}}{{%- set s = {taken('system')} %}}\r\n"
    f'({{{{ s }}}}){{{{ {taken("system")} | default("none\'s") }}}}\r\n',
)
KINDS: dict[str, dict[str, Any]] = {  # what each is written with
    "published": {"template": PUBLISHED},
    "prompt": {"template": PUBLISHED, "prompts": {"find": "Find tea"}, "default": "find"},
    "one token": {
        "template": SWAPPED,
        "false": None,
        "activation": "torch.nn.modules.linear.Identity",
        "in_file": True,
    },
    "untied": {"template": PUBLISHED, "tied": False},
    "short": {"template": PUBLISHED, "limit": 112},
    "short, plain": {"template": PLAIN, "limit": 30},
    "classifier": {"template": PUBLISHED, "head": "classifier"},
    "of Qwen2": {"template": PUBLISHED, "family": "qwen2"},
}


def write_reranker(
    folder: Path,
    *,
    template: str | None,
    prompts: dict[str, str] | None = None,
    default: str | None = None,
    false: int | None = 300,
    activation: str | None = None,
    in_file: bool = False,
    tied: bool = True,
    limit: int = LIMIT,
    head: str = "lm",
    family: str = "qwen3",
) -> Path:
    """The folder of a reranker: with head "lm" LogitScore of the tokens 301 and `false`, with "classifier" its own."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {} if in_file or template is None else {"chat_template": template}
    size = write_qwen(folder, closed=False, **told)
    if in_file and template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    config = {"tie_word_embeddings": tied} | (
        {"architectures": [f"{family.capitalize()}ForCausalLM"]} if head == "lm" else {}
    )
    stored = "model" if tied and head == "lm" else head  # a tied table is stored once
    make_family(folder, family, stored, sizes={"V": size, "H": 32, "P": 256, "C": 1}, config=config, seed=8)
    task = "text-generation" if head == "lm" else "sequence-classification"
    kinds = {"": BASE + "transformer.Transformer"}
    if head == "lm":
        kinds["1_LogitScore"] = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
        (folder / "1_LogitScore").mkdir()
        ids = {"true_token_id": 301, "false_token_id": false}
        write_json(folder / "1_LogitScore" / "config.json", ids)
    write_modules(folder, kinds)
    method = {"method": "forward", "method_output_name": "logits"}
    settings = {
        "transformer_task": task,
        "modality_config": {"text": method, "message": {**method, "format": "flat"}},
        "module_output_name": "causal_logits" if head == "lm" else "scores",
        "max_seq_length": limit,
        "processing_kwargs": {"chat_template": {"add_generation_prompt": True}},
    }
    write_json(folder / "sentence_bert_config.json", settings)
    named = {"model_type": "CrossEncoder", "prompts": prompts or {}, "default_prompt_name": default}
    named |= {} if activation is None else {"activation_fn": activation}
    write_json(folder / "config_sentence_transformers.json", named)
    return folder
