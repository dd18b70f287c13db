"""The real-process face: `python -m moeagent.tools.sim.sglang_server` takes SGLang's command line and
behaves like it.

Everything that it says carries the mark of a simulation: the first log line, `simulated` in /server_info,
and the
driver version of its nvidia-smi.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from moeagent.tools.sim import catalogue
from moeagent.tools.sim.failure import KILLED, death_under_load
from moeagent.tools.sim.hosting import Box, ModelPathError, box_for
from moeagent.tools.sim.logs import READY_LINE, LogLine
from moeagent.tools.sim.serving import Server
from moeagent.tools.sim.startup import Startup, plan_startup
from moeagent.tools.sim.state import register, unregister


class Log:
    """The server's log on standard error, in simulated time."""

    def __init__(self, start: datetime) -> None:
        self._start = start

    def write(self, line: LogLine) -> None:
        """Print one line."""
        text = line.render(self._start).replace("{pid}", str(os.getpid()))
        sys.stderr.write(text + "\n")

    def write_all(self, lines: Sequence[LogLine]) -> None:
        """Print lines and make sure that they are out."""
        for line in lines:
            self.write(line)
        sys.stderr.flush()


def leave(box: Box, code: int) -> None:
    """End the process as the engine ends itself: 137 is its own SIGKILL."""
    unregister(box.folder)
    sys.stderr.flush()
    if code == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(code)


def _listen(host: str, port: int) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        return None
    listener.listen(2048)
    return listener


async def _play(box: Box, startup: Startup, log: Log, server: Server) -> None:
    """Print the start-up at its pace; open the port when the engine would."""
    loop = asyncio.get_running_loop()
    began, scale = loop.time(), box.config.startup_scale
    memory = list(startup.memory)
    for line in startup.lines:
        delay = began + line.at / scale - loop.time()
        if delay > 0.002:
            sys.stderr.flush()
            await asyncio.sleep(delay)
        while memory and memory[0][0] <= line.at:
            register(box.folder, box.gpus, memory.pop(0)[1])
        if line.text.startswith("INFO:     Uvicorn running"):
            await _open(box, log, server, line)
        if line.text == READY_LINE:
            server.mark_ready()
        if line.text or line.tag is None:
            log.write(line)
    sys.stderr.flush()
    if startup.hangs:
        await asyncio.Event().wait()
    if startup.exit_code is not None:
        leave(box, startup.exit_code)


async def _open(box: Box, log: Log, server: Server, line: LogLine) -> None:
    args = box.instance.settings.args
    listener = _listen(str(args["host"]), int(args["port"]))
    if listener is None:
        address = (args["host"], args["port"])
        text = f"ERROR:    [Errno 98] error while attempting to bind on address {address}: "
        text += "address already in use"
        log.write_all(
            [LogLine(line.at, text, ""), LogLine(line.at, "INFO:     Application shutdown complete.", "")]
        )
        leave(box, 3)
    assert listener is not None
    await asyncio.get_running_loop().create_server(server.connection, sock=listener)


async def _run(box: Box, startup: Startup, start: datetime) -> None:
    loop = asyncio.get_running_loop()
    log = Log(start)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = Server(box, log.write_all, ready_at=startup.ready_at or 0.0)
    playing = loop.create_task(_play(box, startup, log, server))
    stop = loop.create_task(stopping.wait())
    await asyncio.wait({playing, stop}, return_when=asyncio.FIRST_COMPLETED)
    if playing.done():
        playing.result()
        serving = loop.create_task(server.serve())
        await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            at, running = serving.result()
            ending = death_under_load(at, box.world, box.instance.settings, box.instance.plan, running)
            log.write_all(ending.lines)
            leave(box, KILLED)
    log.write_all([LogLine(server.now, "SIGTERM received. Draining requests and exiting.", "")])
    leave(box, 0)


def refuse_model(path: str) -> int:
    """The engine's answer to a model path that does not exist."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/sgl-workspace/sglang/python/sglang/srt/configs/model_config.py", line 1056, in get_config',
        "    config = AutoConfig.from_pretrained(",
        "OSError: Incorrect path_or_model_id: "
        f"'{path}'. Please provide either the path to a local folder or the repo_id of a model on the Hub.",
    ]
    sys.stderr.write("\n".join(lines) + "\n")
    return 1


def dump_parser() -> str:
    """The parser's own table, for tools that ask the engine what it accepts."""
    return json.dumps(
        [
            {"flag": entry.flag, "aliases": entry.aliases, "dest": entry.dest, "type": entry.type,
             "switch": entry.is_switch,
             "choices": entry.choices, "default": entry.default, "help": entry.help}
            for entry in catalogue.load_catalogue().flags
        ]
    )  # fmt: skip


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the server; returns only when it never started."""
    if list(arguments) in (["--version"], ["--dump-parser"]):
        sys.stdout.write((catalogue.VERSION if "--version" in arguments else dump_parser()) + "\n")
        return 0
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(catalogue.parser().format_help())
        return 0
    try:
        parsed = catalogue.parse(list(arguments))
        box = box_for(parsed, env)
    except catalogue.CommandLineError as error:
        sys.stderr.write(error.text)
        return error.status
    except ModelPathError as error:
        return refuse_model(str(error))
    start = datetime.now().astimezone()
    rng = random.Random(f"{box.world.seed}-{box.nonce}")
    startup = plan_startup(
        box.world, box.instance.settings, box.instance.plan, rng=rng, start=start, port=parsed["port"]
    )
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_run(box, startup, start))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
