"""The version; the build reads it from here."""

__version__ = "1.0.0"
