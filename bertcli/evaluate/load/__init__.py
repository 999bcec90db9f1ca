"""Labelled data as rows with what is true of each: tables, CoNLL's columns, SQuAD's json, BEIR's and TREC's files."""
