"""A `bertcli doctor` that measures next to nothing: measuring takes a second, and most tests look at the rest."""

MEASURE_LITTLE = """
from bertcli import doctor
doctor.TOKENS = doctor.TOKENS[:1]
doctor.matrix_rate = doctor.memory_rate = lambda: 1e9
"""
