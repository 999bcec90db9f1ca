"""Which entities count where windows of a long text overlap, in numbers that can be followed by hand."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.compute.tag import Entity, merged, merged_pieces
from bertcli.tasks.parts.label_schemes import Tag


def an_entity(label: str, score: float, start: int, end: int, position: int) -> Entity:
    return Entity(label, score, "", start, end, position, Tag("I", label))


def test_entities_of_overlapping_windows_keep_the_longer_then_the_likelier() -> None:
    short, long = an_entity("PER", 0.9, 4, 8, 2), an_entity("LOC", 0.2, 2, 9, 1)
    later, likelier = an_entity("PER", 0.5, 20, 25, 5), an_entity("LOC", 0.6, 20, 25, 5)
    assert merged([[short, later], [long, likelier]]) == [long, likelier]
    assert merged([[long], [later]]) == [long, later]
    assert merged([[short, long]]) == [short, long]  # of one window nothing is taken away


spans = st.tuples(st.integers(0, 30), st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.9])).map(
    lambda span: an_entity("X", span[2], span[0], span[0] + span[1], span[0])
)


@given(st.lists(st.lists(spans), min_size=2))
def test_entities_of_several_windows_never_overlap_and_none_is_made_up(windows: list[list[Entity]]) -> None:
    kept, every = merged(windows), [entity for window in windows for entity in window]
    assert all(one.end <= other.start for one, other in pairwise(kept))
    assert set(kept) <= set(every)
    assert not every or max(entity.end - entity.start for entity in every) in [e.end - e.start for e in kept]


def test_entities_of_pieces_in_two_windows_are_there_once() -> None:
    one, other = an_entity("B-PER", 0.4, 0, 1, 3), an_entity("B-LOC", 0.7, 0, 1, 3)
    last = an_entity("MISC", 0.5, 0, 1, 4)  # the same range: a character that is two pieces
    assert merged_pieces([[one], [other, last]]) == [other, last]
