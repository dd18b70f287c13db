"""Fast and wrong is wrong: greedy answers at several batch sizes against the baseline's."""
