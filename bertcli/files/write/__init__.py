"""Write records and vectors to files; `resumable_output.py` keeps what an interrupted run has done.

print_records      records on standard output; **when records are collected before they are printed**
record_writer      records in a file; json_and_csv: the JSON arrays and separated values in it
rewritten          files of texts, written again with another text in place of each (tag --redact); **what stays of a
                   file**
vector_writer      the vectors of `encode` in a file; **which arrays a file has; how int8 is rounded**
save               what is in memory, in a file: bytes, or arrays
resumable_output   the file itself: every result is written through it, whole or not at all; **when segments are
                   written, kept and joined**
atomic             a file that is written whole or not at all
draft_folder       several files that belong together, such as those of an export
"""
