"""A family of models for bertcli from outside: RoFormer."""

from bertcli.extensions import Extension

EXTENSION = Extension("roformer", families=("bertcli_roformer.roformer",))
