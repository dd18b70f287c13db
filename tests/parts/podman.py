"""A real podman with an image made from nothing: one static program that answers HTTP."""

import os
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

IMAGE = "localhost/moeagent-test:1"
CONFIGURATION = """
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:1024"]
"""
"""crun refuses hosts with both versions of cgroups; ulimits above the caller's own are refused."""
SERVER = r"""
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void end(int number) { _exit(0); }
int main(int count, char **word) {
  if (count < 2) return 3;
  struct sockaddr_in at = {AF_INET, htons(atoi(word[1])), {htonl(INADDR_LOOPBACK)}};
  const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  signal(SIGTERM, end);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8)) return 3;
  printf("colour %s\n", getenv("COLOUR") ? getenv("COLOUR") : "none");
  fflush(stdout);
  for (;;) {
    char asked[4096];
    int client = accept(listener, 0, 0);
    if (read(client, asked, sizeof asked) > 0) write(client, answer, strlen(answer));
    close(client);
  }
}
"""


@cache
def works() -> bool:
    """Whether a container of that image runs here; the image is made on the way."""
    folder = Path(mkdtemp(prefix="moeagent-podman-"))
    (folder / "containers.conf").write_text(CONFIGURATION)
    (folder / "server.c").write_text(SERVER)
    os.environ["CONTAINERS_CONF"] = str(folder / "containers.conf")
    try:
        _run("cc", "-static", "-O", "-w", "-o", str(folder / "server"), str(folder / "server.c"))
        with tarfile.open(folder / "image.tar", "w") as tar:
            tar.add(folder / "server", arcname="bin/server", filter=_undated)
        _run("podman", "import", str(folder / "image.tar"), IMAGE)
        return _run("podman", "run", "--rm", "--network=host", IMAGE, "/bin/server", check=False) == 3
    except (OSError, subprocess.SubprocessError):
        return False


def _undated(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same image each time, so that imports leave no old ones behind."""
    file.mtime = 0
    return file


def _run(*words: str, check: bool = True) -> int:
    return subprocess.run(words, check=check, capture_output=True, timeout=60).returncode


@pytest.fixture
def no_container_left() -> Iterator[None]:
    """Whatever a test left behind is removed."""
    yield
    ids = subprocess.run(
        ["podman", "ps", "--all", "--quiet", "--filter", f"ancestor={IMAGE}"], capture_output=True, text=True
    )
    for id_ in ids.stdout.split():
        _run("podman", "rm", "--force", "--time", "0", id_, check=False)
