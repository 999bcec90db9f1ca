"""GLiNER's models: entities of types that a request names, in any words, and labels of your own.

spans/       GLiNER: a kind of model, with its type of folder; a score for every span of words and every type
schema/      GLiNER2: the same, and scores of candidates; on what spans/ has
boundary/    GLiNER2.5: entities of any length, from where they begin and end; on what schema/ has
named_types  what is alike in the three kinds; **what a request without labels is told**
on_backbone  a family of bertcli/models/ with heads of these kinds in place of its own

Their models stand on any family of the core. tests/reference/record_gliner*.py record what the libraries make of small
ones.
"""

from pathlib import Path

from bertcli.extensions import Extension, Topic

WING = Extension(
    "gliner",
    kind_folders=("bertcli.wings.gliner.spans", "bertcli.wings.gliner.schema", "bertcli.wings.gliner.boundary"),
    topics=(Topic(Path(__file__).parent / "guide" / "gliner.md", 4, ("gliner2",)),),
)
