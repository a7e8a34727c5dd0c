"""ZMTP by hand: the bytes that ZeroMQ would put on the wire."""


def command(name, data):
    content = bytes([len(name)]) + name + data
    return bytes([4, len(content)]) + content


READY = command(b"READY", b"\x0bSocket-Type\x00\x00\x00\x03REQ")
PING = command(b"PING", b"\x00\x00")


def greeting(major=3, mechanism=b"NULL"):
    return b"\xff" + bytes(7) + b"\x01\x7f" + bytes([major, 1]) + mechanism.ljust(20, b"\0") + bytes(32)


def on_the_wire(frames):
    out = b""
    for left, frame in zip(reversed(range(len(frames))), frames, strict=True):
        more = 1 if left else 0
        if len(frame) > 255:
            out += bytes([more | 2]) + len(frame).to_bytes(8, "big") + frame
        else:
            out += bytes([more, len(frame)]) + frame
    return out
