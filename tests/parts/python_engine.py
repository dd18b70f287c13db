"""A Python engine that is quickly installed: a distribution with a version, a parser, a server that waits."""

import sys
from pathlib import Path

from moeagent.tools.engines.protocol import EngineInstall

PARSER = """
from pathlib import Path
with Path(__file__).with_name("imports").open("a") as file:
    file.write("x")
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--tp-size", type=int, default=1)
        parser.add_argument("{flag}", type=int, default=1)
"""
SERVER = "import time\nprint('started', flush=True)\ntime.sleep(600)\n"


def installed(folder: Path, version: str, flag: str) -> EngineInstall:
    """SGLang under this version, with one flag of its own."""
    package = folder / "sglang" / "srt"
    package.mkdir(parents=True)
    (package / "server_args.py").write_text(PARSER.format(flag=flag))
    (folder / "sglang" / "launch_server.py").write_text(SERVER)
    info = folder / f"sglang-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n")
    return EngineInstall(
        name=folder.name,
        command=(sys.executable, "-m", "sglang.launch_server"),
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def imports(folder: Path) -> int:
    """How often its parser was imported."""
    return len((folder / "sglang/srt/imports").read_text())
