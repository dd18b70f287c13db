"""Who states the next hypothesis: the playbook and the language model, on one interface."""
