"""One file per node of the graph, named as the node is."""
