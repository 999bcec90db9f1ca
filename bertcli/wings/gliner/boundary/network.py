"""The heads of GLiNER2.5: scores of spans of any length for types of entities, and whether a type is absent.

A boundary lies before each word, and one after the last. Its state is made of the words on both sides, and says with a
type how likely an entity begins or ends there. The likeliest boundaries of a text make a pool of spans, which are
scored for each type. The text stands behind the types, as for GLiNER2.
"""

from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.network.encoder import LayerNorm, Linear, SelfAttention
from bertcli.network.module import Module, fixed, parameter, part, parts, setting
from bertcli.network.ops import add, gather, multiply, new_norm, scale
from bertcli.network.position_ops import within
from bertcli.network.rotary import Positions
from bertcli.tracing.dispatch import Array, Integers, divided, untraced
from bertcli.wings.gliner.boundary.ops import (
    gather_or,
    length_terms,
    modulate,
    pair_logits,
    pair_prior,
    span_means,
)
from bertcli.wings.gliner.boundary.pool import Pool, PoolLimits, SpanEnds, pool_of
from bertcli.wings.gliner.boundary.settings import HEADS
from bertcli.wings.gliner.on_backbone import HeadsOnBackbone
from bertcli.wings.gliner.schema.network import CandidateScores
from bertcli.wings.gliner.schema.ops import linear_beside
from bertcli.wings.gliner.schema.rows import SchemaRows, rows_of_pass
from bertcli.wings.gliner.schema.settings import BEFORE_TEXT, ENTITY, LABEL, TASK
from bertcli.wings.gliner.spans.ops import MOST_TOGETHER, in_parts, label_scores


class Norm(LayerNorm):
    """BERT's, with the eps of torch"""

    eps: float = fixed(1e-5)


class NormKeepingInput(Norm):
    """BERT's with the eps of torch, for an x that stays as it is"""

    def forward(self, x: Array) -> Array:
        """[row, hidden] -> [row, hidden]"""
        return new_norm(x, self.weight, self.bias, eps=self.eps)


class Joined(Module):
    """[x, y] Wᵀ + b"""

    weight: Array = parameter("outputs inputs")
    bias: Array = parameter("outputs")

    def forward(self, x: Array, y: Array) -> Array:
        """[row, one], [row, other] -> [row, out]"""
        return linear_beside(x, y, self.weight, self.bias)


class BoundaryAttention(SelfAttention[Positions]):
    """BERT's, among the boundaries of a text that are near each other"""

    heads: int = setting("boundary_heads")
    window: int | None = setting("boundary_window")

    def scores(self, block: AttentionBlock, q: Array, k: Array, shared: Positions) -> Array:
        """Q_h K_hᵀ / sqrt(D), -∞ for boundaries outside the window: [batch, head, query, key]"""
        x = super().scores(block, q, k, shared)
        if self.window is None:
            return x
        return within(x, *block.group.positions(*shared), window_left=self.window, window_right=self.window)


class AttentionLayer(Module):
    """X + Attention(Norm(X))"""

    norm: NormKeepingInput = part(features="H")
    attention: BoundaryAttention = part()

    def forward(self, x: Array, batch: Packed) -> Array:
        """[boundary, hidden] -> [boundary, hidden]"""
        y = self.norm(x)
        return add(x, self.attention(y, y, batch, (batch.positions, batch.positions)))


class Refinement(Module):
    """X + W_o(V · silu(G)), V and G linear in Norm(X)"""

    norm: NormKeepingInput = part(features="G")
    value: Linear = part(outputs="Y", inputs="G")
    gate: Linear = part(outputs="Y", inputs="G")
    output: Linear = part(outputs="G", inputs="Y")

    def forward(self, x: Array) -> Array:
        """[boundary, width] -> [boundary, width]"""
        y = self.norm(x)
        return add(x, self.output(multiply(self.value(y), self.gate(y, activation="silu"))))


class BoundaryStates(Module):
    """The state of each boundary, from the word before it and the word after it"""

    begin: Array = parameter("H")
    finish: Array = parameter("H")
    left: Linear = part(outputs="G", inputs="H")
    right: Linear = part(outputs="G", inputs="H")
    joined: Joined = part(outputs="G", inputs="J")
    norm: Norm = part(features="G")
    attention: tuple[AttentionLayer, ...] = parts("a", H="G")
    refinement: tuple[Refinement, ...] = parts("r")

    def forward(self, words: Array, before: Integers, after: Integers, batch: Packed) -> Array:
        """Words [word, hidden] -> [boundary, width]

        before, after: the word on that side of each boundary, -1 for none. batch: the boundaries of each sentence.
        """
        left = self.left(gather_or(words, self.begin, before))
        right = self.right(gather_or(words, self.finish, after))
        states = self.norm(self.joined(left, right))
        for layer in self.attention:
            states = layer(states, batch)
        for refinement in self.refinement:
            states = refinement(states)
        return states


class TypeScores(Module):
    """x · qᵀ / sqrt(D) of boundaries or words x, and the marks q of types"""

    state: Linear = part(outputs="G", inputs="inputs")
    type: Linear = part(outputs="G", inputs="H")
    width: int = setting("boundary_dim")

    def forward(self, x: Array, types: Array, sentences: Integers, count: int) -> Array:
        """[row, width], [type, hidden] of `count` sentences -> [row, type]"""
        queries = divided(self.type(types), 0, count)
        return scale(label_scores(self.state(x), queries, sentences), factor=1 / self.width**0.5)


class Begin(TypeScores):
    """How likely an entity of a type begins at a boundary"""


class End(TypeScores):
    """How likely an entity of a type ends at a boundary"""


class Inside(TypeScores):
    """How likely a word is in an entity of a type"""


class Words(Module):
    """The states of words: of the first piece of each"""

    def forward(self, hidden: Array, rows: Integers) -> Array:
        """Hidden states [token, hidden] -> [word, hidden]"""
        return gather(hidden, rows)


class Types(Module):
    """The states of types: of the mark of each"""

    def forward(self, hidden: Array, rows: Integers) -> Array:
        """Hidden states [token, hidden] -> [type, hidden]"""
        return gather(hidden, rows)


class BoundaryFit(Module):
    """A vector of each boundary: the product of two says how well they fit, of any type"""

    output: Linear = part(outputs="G", inputs="G")

    def forward(self, states: Array) -> Array:
        """[boundary, width] -> [boundary, width]"""
        return self.output(states)


class Length(Module):
    """[log(1 + n), n / w, 1 / sqrt(n)] Wᵀ + b of spans of n words in a text of w"""

    weight: Array = parameter("outputs 3")
    bias: Array = parameter("outputs")

    def forward(self, pool: Pool, words: tuple[int, ...]) -> Array:
        """Spans, and the number of words of each sentence -> [pair, width]"""
        return length_terms(self.weight, self.bias, *pool, words=words)


class Prior(Module):
    """(x_s · y_e / sqrt(D)) W + b: how well two boundaries fit, of any type"""

    weight: Array = parameter("outputs 1")
    bias: Array = parameter("outputs")

    def forward(self, first: Array, last: Array, starts: Integers, ends: Integers) -> Array:
        """Vectors of boundaries [boundary, width] -> [pair, width]"""
        return pair_prior(first, last, self.weight, self.bias, starts, ends)


class Content(Module):
    """W Norm(mean of the span's words' values)"""

    value: Linear = part(outputs="c", inputs="H")
    norm: Norm = part(features="c")
    output: Linear = part(outputs="Z", inputs="c")

    def forward(self, words: Array, pool: Pool) -> Array:
        """[word, hidden] -> [pair, width]"""
        return self.output(self.norm(span_means(self.value(words), *pool)))


class Bounds(NamedTuple):
    """What is known of a batch before spans are chosen.

    types: the states of the marks. begin, end [boundary, type], inside [word, type]: logits. first, last: the vectors
    of boundaries whose products say how well two fit.
    """

    words: Array
    types: Array
    states: Array
    begin: Array
    end: Array
    inside: Array
    first: Array
    last: Array


class SpanScorer(Module):
    """s_p · q / sqrt(D) + MLP(s_p (1 + γ) + β) + begin + end + inside of spans p, of types with q, and γ and β of q"""

    start: Linear = part(outputs="Z", inputs="G")
    finish: Linear = part(outputs="Z", inputs="G")
    length: Length = part(outputs="Z")
    prior: Prior = part(outputs="Z")
    content: Content | None = part(when="has_content")
    norm: Norm = part(features="Z")
    type: Linear = part(outputs="Z", inputs="H")
    film: Linear = part(outputs="y", inputs="Z")
    inner: Linear = part(outputs="64", inputs="Z")
    output: Linear = part(outputs="1", inputs="64")
    width: int = setting("pair_dim")

    def forward(self, bounds: Bounds, pool: Pool, words: tuple[int, ...]) -> Array:
        """Bounds of sentences of so many words -> logits [pair, type]"""
        starts, ends, sentences = pool
        count = len(words)
        spans = add(gather(self.start(bounds.states), starts), gather(self.finish(bounds.states), ends))
        spans = add(self.length(pool, words), spans)
        spans = add(self.prior(bounds.first, bounds.last, starts, ends), spans)
        if self.content is not None:
            spans = add(self.content(bounds.words, pool), spans)
        spans = self.norm(spans)
        types = self.type(bounds.types)
        products = label_scores(spans, divided(types, 0, count), sentences)
        products = scale(products, factor=1 / self.width**0.5)
        by = divided(self.film(types), 0, count)

        def terms(some: slice) -> Array:
            modulated = modulate(spans[some], by, sentences[some])
            return self.output(self.inner(modulated, activation="gelu"))

        # Each span has a row for each type.
        of_types = in_parts(terms, len(sentences), max(1, MOST_TOGETHER * count // len(types)))
        return pair_logits(products, of_types, bounds.begin, bounds.end, bounds.inside, starts, ends, sentences)


class Absence(Module):
    """The logit that a text has no entity of a type, from its mark"""

    output: Linear = part(outputs="1", inputs="H")

    def forward(self, hidden: Array, rows: SchemaRows) -> Array:
        """Hidden states [token, hidden] -> logits [type, 1]"""
        return self.output(gather(hidden, rows.spans.labels))


class ScoredPool(NamedTuple):
    """A pool of spans, the rows where the boundaries of each sentence begin, and the logits [pair, type]."""

    pool: Pool
    offsets: Integers
    logits: Array


class BoundaryHeads(HeadsOnBackbone):
    """The heads of GLiNER2.5. What says where entities begin and end is no head, but what the scores of spans need."""

    words: Words = part()
    types: Types = part()
    boundaries: BoundaryStates = part()
    begin: Begin = part(inputs="G")
    end: End = part(inputs="G")
    inside: Inside = part(inputs="H")
    fit_start: BoundaryFit = part()
    fit_end: BoundaryFit = part()
    spans: SpanScorer | None = part()
    candidate_scores: CandidateScores | None = part(outputs="1", G="H")
    absence: Absence | None = part()
    limits: PoolLimits = setting("pool_limits")
    marks: dict[str, int] = setting("marks")
    own_heads = frozenset(HEADS)

    def predict(self, head: str, hidden: Array, batch: Any) -> Array:
        if head != "spans":
            return super().predict(head, hidden, batch)
        return self.scored(hidden, self.rows_of_pass(head, batch)).logits

    def rows_of_pass(self, head: str, batch: Any) -> SchemaRows:
        mark = self.marks[LABEL if head == "candidate_scores" else ENTITY]
        task, separator = self.marks[TASK], self.marks[BEFORE_TEXT]
        return rows_of_pass(untraced(batch.ids), untraced(batch.offsets), task, mark, separator, 1)

    def scored(self, hidden: Array, rows: SchemaRows) -> ScoredPool:
        """Score spans of the hidden states [token, hidden] of a batch; which there are depends on numbers."""
        assert self.spans is not None
        # A sentence has one boundary more than it has words.
        lengths = np.diff(rows.spans.offsets) + 1
        offsets, count = np.cumsum(np.append(0, lengths)), len(lengths)
        positions = np.concatenate([np.arange(length) for length in lengths])
        batch = Packed.of(np.zeros_like(positions), np.zeros_like(positions), positions, lengths)
        of_boundaries = np.repeat(np.arange(count), lengths)
        after = np.arange(offsets[-1]) - of_boundaries
        before = after - 1
        before[offsets[:-1]] = -1
        after[offsets[1:] - 1] = -1
        words, types = self.words(hidden, rows.spans.words), self.types(hidden, rows.spans.labels)
        states = self.boundaries(words, before, after, batch)
        bounds = Bounds(
            words=words,
            types=types,
            states=states,
            begin=self.begin(states, types, of_boundaries, count),
            end=self.end(states, types, of_boundaries, count),
            inside=self.inside(words, types, np.repeat(np.arange(count), lengths - 1), count),
            first=self.fit_start(states),
            last=self.fit_end(states),
        )
        pool = pool_of(SpanEnds(bounds.begin, bounds.end, bounds.first, bounds.last), offsets.tolist(), self.limits)
        return ScoredPool(pool, offsets, self.spans(bounds, pool, tuple((lengths - 1).tolist())))


STEP_NAMES = """
Boundaries
  Words gather                               | first pieces                  | Words
  Types gather                               | marks                         | Types
  BoundaryStates.left linear                 | linear                        | Left             | W_l
  BoundaryStates.right linear                | linear                        | Right            | W_r
  BoundaryStates.begin gather_or             | word before, or the beginning | Words before
  BoundaryStates.finish gather_or            | word after, or the end        | Words after
  BoundaryStates.joined linear_beside        | linear of both                | Joined           | W
  BoundaryStates.norm norm                   | layer norm                    | Boundaries       | γ, β
  AttentionLayer.norm new_norm               | layer norm                    | Normed           | γ, β
  BoundaryAttention.query linear             | linear Q                      | Query (Q)        | W_Q
  BoundaryAttention.key linear               | linear K                      | Key (K)          | W_K
  BoundaryAttention.value linear             | linear V                      | Value (V)        | W_V
  BoundaryAttention.value scores             | scaled dot product            | Attention scores
  BoundaryAttention.value within             | what is seen                  | Seen scores
  BoundaryAttention.value softmax            | softmax                       | Attention weights
  BoundaryAttention.value attend             | weighted sum                  | Heads output
  BoundaryAttention.output linear            | concat and project            | Attention output | W_O
  AttentionLayer.attention add               | residual                      | Boundaries
  Refinement.norm new_norm                   | layer norm                    | Normed           | γ, β
  Refinement.value linear                    | linear                        | Values           | W_v
  Refinement.gate linear                     | linear + {act}                | Gate             | W_g
  Refinement.gate multiply                   | gate                          | Gated values
  Refinement.output linear                   | linear                        | Refined          | W_o
  Refinement.output add                      | residual                      | Boundaries
  TypeScores.type linear                     | linear of types               | Queries          | W_q
  TypeScores.state linear                    | linear                        | Keys             | W_k
  TypeScores.state label_scores              | keys · queries                | Products
  Begin.state scale                          | divided by √D                 | Begin logits
  End.state scale                            | divided by √D                 | End logits
  Inside.state scale                         | divided by √D                 | Inside logits
  BoundaryFit.output linear                  | linear                        | Vectors of ends  | W
Spans
  SpanScorer.start linear                    | linear of boundaries          | Starts           | W_s
  SpanScorer.start gather                    | of each span                  | Start
  SpanScorer.finish linear                   | linear of boundaries          | Ends             | W_e
  SpanScorer.finish gather                   | of each span                  | End
  SpanScorer.finish add                      | sum                           | Span vectors
  Length length_terms                        | linear of the length          | Lengths          | W_n
  SpanScorer.length add                      | sum                           | Span vectors
  Prior pair_prior                           | product of first and last     | Prior            | W
  SpanScorer.prior add                       | sum                           | Span vectors
  Content.value linear                       | linear                        | Values           | W_v
  Content.value span_means                   | mean of the words             | Span contents
  Content.norm norm                          | layer norm                    | Normed contents  | γ, β
  Content.output linear                      | linear                        | Contents         | W_c
  SpanScorer.content add                     | sum                           | Span vectors
  SpanScorer.norm norm                       | layer norm                    | Spans            | γ, β
  SpanScorer.type linear                     | linear of types               | Queries          | W_q
  SpanScorer.type label_scores               | spans · queries               | Products
  SpanScorer.type scale                      | divided by √D                 | Scaled products
  SpanScorer.film linear                     | linear of queries             | Scale and shift  | W_f
  SpanScorer.film modulate                   | scaled and shifted by a type  | Spans of types
  SpanScorer.inner linear                    | linear 1 + {act}              | Inner            | W_1
  SpanScorer.output linear                   | linear 2                      | Terms            | W_2
  SpanScorer.output pair_logits              | sum with begin, end, inside   | Span logits
Absent types
  Absence gather                             | marks                         | Types
  Absence.output linear                      | linear                        | Absence logits   | W
"""
