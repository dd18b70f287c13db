"""What is kept: records, the tape, the run folder, the findings store, reports."""
