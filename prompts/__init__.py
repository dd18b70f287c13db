"""The prompt templates, as plain files, and their loader."""
