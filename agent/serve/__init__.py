"""A local, read-only web page over the runs folder and the findings store."""
