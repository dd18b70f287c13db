"""Where a real llama.cpp server is reached over SSH: the beginning of such a campaign's settings."""

LLAMA_BOX = """
model = "{model}"
load_from = "{load_from}"
[host]
target = "box"
ssh_config = "{folder}/ssh_config"
folder = "{folder}/remote"
[engine]
name = "llamacpp"
command = ["{python}", "-m", "moeagent.tools.engines.llama_serve"]
"""
