"""What is said about a model: its parameters, the trace of a pass, its attention."""
