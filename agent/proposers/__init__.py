"""Who proposes the next hypothesis: the playbook, or a language model with the playbook behind it."""
