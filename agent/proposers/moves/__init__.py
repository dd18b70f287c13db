"""The playbook's data, one TOML file per engine; see moeagent.agent.proposers.book for its form."""
