"""A TCP proxy in front of a server: it can fall silent without closing, and slow everything down."""

import socket
import threading
import time
from pathlib import Path

from parts.sshd import Sshd


class Wire:
    """Connections of loopback, carried byte by byte as long as they flow."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._flowing = threading.Event()
        self._flowing.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.accepted = 0
        self.delay_s = 0.0
        """Before each piece in each direction."""
        threading.Thread(target=self._accept, daemon=True).start()

    def black_hole(self) -> None:
        """From now on all connections are silent, new ones too."""
        self._flowing.clear()

    def renew(self) -> None:
        """Connections that are made from now on flow; the silent ones stay silent."""
        self._flowing = threading.Event()
        self._flowing.set()

    def close(self) -> None:
        """End everything."""
        self._flowing.set()
        for sock in (self._listener, *self._sockets):
            sock.close()

    def known_hosts(self, sshd: Sshd, file: Path) -> Path:
        """A client's file in which the server's key stands under this port."""
        file.write_text(f"[127.0.0.1]:{self.port} {(sshd.folder / 'host_key.pub').read_text()}")
        return file

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._carry(client)

    def _carry(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        self._sockets += [client, server]
        self.accepted += 1
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(*pair, self._flowing), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, flowing: threading.Event) -> None:
        try:
            while data := source.recv(65536):
                flowing.wait()
                if self.delay_s:
                    time.sleep(self.delay_s)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            # What a silent connection would have said of its end is lost as well.
            flowing.wait()
            source.close()
            sink.close()
