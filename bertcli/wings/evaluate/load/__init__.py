"""Read labelled data: tables, CoNLL, SQuAD, BEIR and TREC files, as rows with their labels. Begin at data_file.py."""
