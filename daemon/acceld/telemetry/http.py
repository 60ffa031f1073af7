"""Serves /metrics over HTTP, in a thread of its own: a scrape never waits for the event loop."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog

from acceld.fields.table import DEFAULT
from acceld.telemetry.exposition import Format
from acceld.telemetry.scrape import Page
from acceld.telemetry.selection import UnknownGroup, chosen, preferred, takes_gzip

log = structlog.get_logger()

Scrape = Callable[[frozenset[str], Format], Page]
GZIP_BYTES_MIN = 1400  # less fits into one packet as it is
PLAIN = "text/plain; charset=utf-8"
INDEX = b"acceld: metrics of emulated accelerator cards are at /metrics\n"


class MetricsServer:
    """Bound when made: raises OSError when the address is taken. Port 0 takes a free one."""

    def __init__(
        self,
        host: str,
        port: int,
        scrape: Scrape,
        groups: frozenset[str] = DEFAULT,
        bound: socket.socket | None = None,
    ) -> None:
        """`groups`: of metrics, that a scrape has which asks for none. `bound`: a socket that
        listens there already; it is ours from now on."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True
            # A second daemon must be refused, not share the port.
            allow_reuse_port = False

            def server_bind(self) -> None:
                # The base class asks DNS for our name here, which may take seconds.
                if bound is not None:
                    self.socket.close()
                    self.socket = bound
                else:
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    self.socket.bind(self.server_address)
                self.server_address = self.socket.getsockname()
                self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

            def handle_error(self, request: Any, client_address: Any) -> None:
                return  # A scraper that hangs up in the middle is no news.

        self._server = Server((host, port), _handler(scrape, groups))
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name="metrics", daemon=True)

    @property
    def address(self) -> str:
        """HOST:PORT as bound."""
        host, port = self._server.server_address[:2]
        host = host.decode() if isinstance(host, bytes | bytearray) else host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        if self._thread.is_alive():
            self._server.socket.shutdown(socket.SHUT_RDWR)  # Wakes the thread in its accept.
            self._thread.join()
        self._server.server_close()

    def _accept(self) -> None:
        # serve_forever would look twice a second whether it shall end, and end as late.
        while not self._closing:
            try:
                request, address = self._server.get_request()
            except OSError as error:
                if not self._closing:
                    log.warning("scraper_not_accepted", error=str(error))
                    time.sleep(1)  # Too many open files: what helps is time.
                continue
            self._server.process_request(request, address)


def _handler(scrape: Scrape, groups: frozenset[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30  # s; of a silent client

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == "/":
                self._answer(200, INDEX, PLAIN)
            elif path != "/metrics":
                self._answer(404, b"only /metrics is here\n", PLAIN)
            else:
                self._scrape(query)

        do_HEAD = do_GET

        def _scrape(self, query: str) -> None:
            form = preferred(self.headers.get("Accept", ""))
            try:
                body = scrape(chosen(query, groups), form).text.encode()
            except UnknownGroup as error:
                self._answer(400, f"{error}\n".encode(), PLAIN)
            except Exception:
                log.exception("scrape_failed")
                self._answer(500, b"the scrape failed; see the log of acceld\n", PLAIN)
            else:
                self._answer(200, body, form.value)

        def _answer(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            wanted = takes_gzip(self.headers.get("Accept-Encoding", ""))
            if wanted and len(body) > GZIP_BYTES_MIN:
                body = gzip.compress(body, 1)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler
