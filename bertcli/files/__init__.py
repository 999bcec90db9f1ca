"""Reading texts, writing results, searching in stored vectors."""
