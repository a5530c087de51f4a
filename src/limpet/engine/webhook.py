"""A sink that posts what happens to an address: signed, with an id, and tried again by whoever calls it."""

import hashlib
import hmac
import http.client
import socket
import threading
from typing import Final
from urllib.parse import urlsplit

import msgspec

from limpet.config import WebhookConfig, webhook_name
from limpet.engine import clock
from limpet.engine.sinks import OutputEvent, SinkEvent, StatusEvent, WatchEvent
from limpet.model.version import VERSION

SIGNATURE_HEADER: Final = "Limpet-Signature"
_ANSWER_MAX_BYTES: Final = 1 << 16

_encode: Final = msgspec.json.Encoder().encode


class WebhookError(Exception):
    """The address did not take it: what it said, or why it could not be reached."""


class WebhookSink:
    """One address. Each call posts one event, and raises unless the answer is 2xx, in time. No redirect is followed."""

    def __init__(self, config: WebhookConfig) -> None:
        self.name: Final = webhook_name(config)
        self.events: Final = tuple(config.events)
        self.give_up_s: Final = config.give_up_s
        self._secret: Final = config.secret.encode()
        self._timeout_s: Final = config.timeout_s
        parts = urlsplit(config.url)
        self._is_safe: Final = parts.scheme == "https"
        self._host: Final = parts.hostname or ""
        self._port: Final = parts.port
        self._target: Final = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def on_status(self, event: StatusEvent) -> None:
        self._post(event)

    def on_watch(self, event: WatchEvent) -> None:
        self._post(event)

    def on_output(self, event: OutputEvent) -> None:
        self._post(event)

    def _post(self, event: SinkEvent) -> None:
        body = _encode(msgspec.to_builtins(event) | {"sent_at": clock.now_ms()})
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"limpet/{VERSION}",
            "Idempotency-Key": event.id,
            SIGNATURE_HEADER: f"sha256={sign(self._secret, body)}",
            "Connection": "close",
        }
        kind = http.client.HTTPSConnection if self._is_safe else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout_s)
        # The connection's own timeout is for each step: one that trickles would never be over.
        over = threading.Timer(self._timeout_s, _cut, (connection,))
        over.daemon = True
        try:
            connection.connect()
            over.start()
            connection.request("POST", self._target, body, headers)
            answer = connection.getresponse()
            answer.read(_ANSWER_MAX_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise WebhookError(f"{self._host} could not be reached or did not answer: {error!r}") from error
        finally:
            over.cancel()
            connection.close()
        if not 200 <= answer.status < 300:
            raise WebhookError(f"{self._host} answered with status {answer.status}")


def sign(secret: bytes, body: bytes) -> str:
    """What stands in the header: HMAC-SHA256 of the body, which says when it was sent."""
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


def _cut(connection: http.client.HTTPConnection) -> None:
    try:
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it was over already
