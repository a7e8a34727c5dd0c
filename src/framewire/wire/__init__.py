"""The wire: bytes in, values out, with no sockets, clocks or threads anywhere.

>>> from framewire.wire import Message, decode, encode
>>> frames = encode(Message(b"greet.hello", body_frames=(b"Ada",)))
>>> decode(frames).body
b'Ada'
"""

from framewire.errors import WireError
from framewire.wire import layout
from framewire.wire.codec import decode, encode, forward, layout_of, peek
from framewire.wire.explaining import Explanation, FrameNote, explain
from framewire.wire.message import (
    Distribution,
    Message,
    MessageId,
    RouterAddress,
    Selectors,
    TraceOptions,
)
from framewire.wire.upgrading import upgrade

__all__ = [
    "Distribution",
    "Explanation",
    "FrameNote",
    "Message",
    "MessageId",
    "RouterAddress",
    "Selectors",
    "TraceOptions",
    "WireError",
    "decode",
    "encode",
    "explain",
    "forward",
    "layout",
    "layout_of",
    "peek",
    "upgrade",
]
