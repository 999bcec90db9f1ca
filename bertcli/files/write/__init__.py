"""Write records and vectors to files; `resumable_output.py` keeps what an interrupted run has done."""
