"""What clients send and what they are sent: frames of JSON, judged as every request is."""

from typing import Annotated, Any, Final

import msgspec
from websockets.frames import Frame, Opcode

from limpet.model.errors import Refusal
from limpet.model.misfit import explain

PROTOCOL: Final = 1
SUBSCRIBE: Final = "subscribe"
Id = Annotated[str, msgspec.Meta(max_length=128)] | int
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Req(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="req"):
    """`{"type": "req", "id", "method", "params"}`: the only kind of frame that clients send."""

    id: Id
    method: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    params: msgspec.Raw = msgspec.Raw(b"{}")


class SubscribeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be heard from now on; with `after`, beginning with what is kept behind that number."""

    events: Annotated[list[_Text], msgspec.Meta(max_length=100)] | None = None
    session: _Text | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | None = None


class _Named(msgspec.Struct, frozen=True):
    """As much of a frame that does not fit as is needed to answer it."""

    id: Id | None = None


_requests: Final = msgspec.json.Decoder(Req)
_subscriptions: Final = msgspec.json.Decoder(SubscribeParams)
_named: Final = msgspec.json.Decoder(_Named)
encode: Final = msgspec.json.Encoder().encode


def request_of(data: bytes | bytearray) -> Req:
    """The request in a frame, or a refusal that names the field."""
    try:
        return _requests.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise explain(error, data, Req) from None


def subscription_of(data: bytes | bytearray) -> SubscribeParams:
    """The parameters of `subscribe`."""
    try:
        return _subscriptions.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise explain(error, data, SubscribeParams) from None


def id_of(data: bytes | bytearray) -> Id | None:
    """The id in a frame that is no request, so that whoever sent it finds the answer; None where there is none."""
    try:
        return _named.decode(data).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def hello(events: list[str], methods: list[str]) -> bytes:
    """The server's first frame."""
    return encode({"type": "hello", "protocol": PROTOCOL, "events": events, "methods": methods})


def answered(request_id: Id | None, answer: bytes) -> bytes:
    """The answer to a request that was done."""
    return b'{"type":"res","id":%b,"ok":true,"payload":%b}' % (encode(request_id), answer)


def refused(request_id: Id | None, failure: dict[str, Any] | Refusal) -> bytes:
    """The answer to one that was not."""
    failure = failure.answer() if isinstance(failure, Refusal) else failure
    return encode({"type": "res", "id": request_id, "ok": False, "error": failure})


def text_frame(data: bytes) -> bytes:
    """A frame as it stands on the wire: the same bytes for every client, as nothing that a server sends is masked."""
    return Frame(Opcode.TEXT, data).serialize(mask=False)
