"""Other load generators: run them, read their result files, and say which of their figures mislead."""
