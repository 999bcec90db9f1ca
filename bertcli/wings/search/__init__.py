"""Semantic search: in files, and among stored vectors."""
