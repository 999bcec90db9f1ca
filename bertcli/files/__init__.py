"""Read texts, write results, search in stored vectors. formats.py lists the formats and what each holds.

formats           the table of formats, an entry for each, by the ending of a file's name; **which ending is read and
                  written how**
texts             `Text` and `Texts`, the input of a task; **how many texts make a group; that an empty text is noted**
read/, write/     texts, rows, passages and vectors from files; records and vectors into files, with --resume
labelled/         labelled texts: tables with named fields, and CoNLL's columns
arrays, parquet   what is inside .npy, .npz and .safetensors files, and tables by pyarrow; **how much a packed file may
                  unfold to**
search            similarities of vectors, and the best rows of a file; **how vectors are compared**
digest            a digest of files' contents
files_beside      where a result may be written, and the names of files beside it; **is such a file ours to
                  replace; that a result replaces no file that is read**
"""
