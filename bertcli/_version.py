"""The version; the build reads it from here."""

__version__ = "0.8.0.dev0"
