"""The way in over TCP for tests: a home whose daemon listens there, its token, and requests that may be forged."""

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from .home import Answer, Home
from .surface import STATUS, Reply, Surface, undressed


class Port:
    """Where a daemon listens."""

    def __init__(self, home: Home, *args: str) -> None:
        self.home = home
        self.ready = home.serve("--port", "0", *args)
        self.url = str(self.ready["url"]).rstrip("/")
        self.netloc = urlsplit(self.url).netloc
        self.token = token_of(home.path)

    @property
    def number(self) -> int:
        return int(self.netloc.rpartition(":")[2])

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def request(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"", host: str | None = None
    ) -> Reply:
        """One request with exactly these headers, and a Host that may lie."""
        connection = http.client.HTTPConnection(self.netloc, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", self.netloc if host is None else host)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body or method == "POST":
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            response = connection.getresponse()
            media = response.getheader("Content-Type", "").partition(";")[0].strip()
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, media, response.read())
        finally:
            connection.close()

    def post(self, op: str, params: Answer, headers: dict[str, str] | None = None, host: str | None = None) -> Reply:
        """JSON, with the token unless other headers are given."""
        headers = {"Content-Type": "application/json", **(self.bearer if headers is None else headers)}
        return self.request("POST", f"/v1/call/{op}", headers, json.dumps(params).encode(), host)


def token_of(home: Path) -> str:
    return (home / "token").read_text().strip()


class Tcp(Surface):
    """Every operation over TCP, with the token."""

    name = "tcp"

    def __init__(self, port: Port) -> None:
        self._port = port

    def call(self, op: str, params: Answer | None = None) -> Answer:
        reply = self._port.post(op, params or {})
        answer = reply.answer()
        assert reply.status == (200 if answer["ok"] else STATUS[answer["error"]]), reply
        return undressed(reply.status, answer) if reply.status >= 400 else answer
