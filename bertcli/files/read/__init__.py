r"""Read texts, rows, passages and vectors from files; `formats.py` in the folder above names the readers.

inputs         read texts from files and pipes, one at a time: no file is in memory as a whole; **which files of a
               folder are read; does a pipe hold lines or rows**
line_reader    read the lines of a file, a gzip or a pipe as they arrive: UTF-8, ended by \n or \r\n only; **when a pipe
               pauses, and how long a line may be**
passages       the passages of files that are searched: lines, paragraphs and rows, each with its file and line; **what
               a passage is**
row_columns    which fields of a row are read; **which field is the text, and what it may be**
rows           read the rows of text files; a function for each format: plain lines, FASTA, JSON lines, CSV, tabs;
               **which delimiter a .csv has**
vector_reader  read the vectors in a file, a block of rows at a time, and the file's notes on how they were made;
               **which arrays are vectors**
"""
