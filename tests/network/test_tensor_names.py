"""The notation of the families' tables of names; that each name is a file's is held by the recorded numbers."""

from bertcli.models.tensor_names import TensorSlice, tensor_slices

TABLES = (
    """
encoder.layers.#.attention.{query,key}.*   layer.#.self.{q,k}_proj.*
                                           layer.#.qkv.*[{0,1}/3 of a head]
encoder.layers.#.{inner,outer}.*           shared.{w1,w2}
""",
    "encoder.layers.#.attention.{query,value}.*   other.{q,v}.#.*",
)


def test_signs_stand_for_what_they_stand_for_in_the_path() -> None:
    assert tensor_slices(TABLES, "encoder.layers.11.attention.key.bias") == (
        TensorSlice("layer.11.self.k_proj.bias"),
        TensorSlice("layer.11.qkv.bias", 1, 3, of_head=True),
    )
    # A name may have fewer signs than the path.
    assert tensor_slices(TABLES, "encoder.layers.0.outer.weight") == (TensorSlice("shared.w2"),)


def test_the_first_line_that_has_a_path_holds() -> None:
    assert tensor_slices(TABLES, "encoder.layers.2.attention.query.weight")[0].name == "layer.2.self.q_proj.weight"
    assert tensor_slices(TABLES, "encoder.layers.2.attention.value.weight") == (TensorSlice("other.v.2.weight"),)
    assert tensor_slices(TABLES, "encoder.layers.x.attention.query.weight") == ()
