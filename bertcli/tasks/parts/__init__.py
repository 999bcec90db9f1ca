"""What several tasks share: pairs, chunks, targets, candidates, scores."""
