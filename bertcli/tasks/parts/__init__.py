"""What several tasks share: chunks, targets, candidates, scores."""
