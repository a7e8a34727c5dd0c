"""A second decoder, written from docs/wire.md alone: slow, plain, and with no code in common with the first.

A message comes back as a plain dict under the names that ``Message`` uses, anything else as the one word that
says what is wrong. ``plain`` and ``plain_selectors`` bring the product's values into the same form.
"""

from __future__ import annotations

I64_MIN, I64_MAX = -(2**63), 2**63 - 1


def decode(frames, ttl_unit="ms"):
    version = format_of(frames)
    if isinstance(version, str):
        return version
    return read_v1(frames, ttl_unit) if version == 1 else read_versioned(frames, version)


def peek(frames):
    version = format_of(frames)
    if isinstance(version, str):
        return version
    n = len(frames)
    if version == 1:
        if len(frames[n - 8]) != 4:
            return "bad_integer"
        distribution = signed(frames[n - 8])
        number, partition, node, receiver = frames[n - 11], b"", b"", frames[n - 9]
        identity = frames[n - 10]
    else:
        if len(frames[n - 5]) != 8 or len(frames[n - 7]) != 2:
            return "bad_integer"
        distribution = lane(frames[n - 5], 2)
        number, partition, node, receiver = (
            unsigned(frames[n - 7]),
            frames[n - 8],
            frames[n - 9],
            frames[n - 11],
        )
        identity = frames[n - 6]
    if distribution not in (0, 1):
        return "bad_distribution"
    return {
        "distribution": distribution,
        "identity": identity,
        "version": number,
        "partition": partition,
        "receiver_node_identity": node,
        "receiver_identity": receiver,
    }


def format_of(frames):
    n = len(frames)
    if n >= 2 and frames[n - 2] != b"" and len(frames[n - 1]) in (2, 4):
        version = signed(frames[n - 1]) if len(frames[n - 1]) == 4 else unsigned(frames[n - 1])
        if version not in (4, 5):
            return "unknown_version"
        return version if n >= 17 else "too_few_frames"
    if n >= 2 and frames[n - 2] == b"":
        return 1 if n >= 15 else "too_few_frames"
    return "too_few_frames" if n < 15 else "unknown_version"


def read_versioned(frames, wire_version):
    n = len(frames)

    for k, size in ((2, 8), (3, 8), (5, 8), (7, 2), (12, 8), (13, 8), (16, 8)):
        if len(frames[n - k]) != size:
            return "bad_integer"

    body_offset, body_count = lane(frames[n - 2], 1), lane(frames[n - 2], 2)
    trace_options, distribution = lane(frames[n - 5], 1), lane(frames[n - 5], 2)
    callback_offset, callback_count, callback_step = (lane(frames[n - 12], i) for i in (1, 2, 3))
    routing_offset, routing_count, routing_step, hops = (lane(frames[n - 13], i) for i in (1, 2, 3, 4))

    if callback_count > 0 and callback_step < 3:
        return "bad_divisor"
    if routing_count > 0 and routing_step < 2:
        return "bad_divisor"

    highest = 17
    for offset, count, step in (
        (callback_offset, callback_count, callback_step),
        (routing_offset, routing_count, routing_step),
        (body_offset, body_count, 1),
    ):
        if count > 0:
            top = offset + count * step - 1
            if offset < 18 or top > n:
                return "bad_offset"
            highest = max(highest, top)

    callback_points = []
    for i in range(callback_count):
        o = callback_offset + i * callback_step
        if len(frames[n - (o + 1)]) != 2:
            return "bad_integer"
        callback_points.append((frames[n - o], unsigned(frames[n - (o + 1)]), frames[n - (o + 2)]))

    if distribution not in (0, 1):
        return "bad_distribution"

    domain = text(frames[n - 15])
    if domain is None:
        return "bad_text"
    routing = []
    for i in range(routing_count):
        o = routing_offset + i * routing_step
        uri = text(frames[n - (o + 1)])
        if uri is None:
            return "bad_text"
        routing.append((uri, frames[n - o]))

    return {
        "identity": frames[n - 6],
        "version": unsigned(frames[n - 7]),
        "partition": frames[n - 8],
        "body_frames": [frames[n - (body_offset + i)] for i in range(body_count)],
        "correlation_id": frames[n - 4],
        "ttl_ticks": signed(frames[n - 3]),
        "distribution": distribution,
        "trace_options": trace_options,
        "receiver_identity": frames[n - 11],
        "receiver_node_identity": frames[n - 9],
        "callback_receiver_identity": frames[n - 10],
        "callback_receiver_node_identity": frames[n - 17],
        "callback_key": signed(frames[n - 16]),
        "callback_points": callback_points,
        "routing": routing,
        "hops": hops,
        "domain": domain,
        "signature": frames[n - 14],
        "socket_identity": envelope(frames, highest),
        "wire_version": wire_version,
    }


def read_v1(frames, ttl_unit):
    n = len(frames)

    for k, size in ((3, 8), (8, 4), (12, 8), (15, 4)):
        if len(frames[n - k]) != size:
            return "bad_integer"
    for k in (5, 6, 13, 14):
        if len(frames[n - k]) not in (0, 4):
            return "bad_integer"
    ttl_ticks = signed(frames[n - 3]) * (10_000 if ttl_unit == "ms" else 1)
    if ttl_ticks < I64_MIN or ttl_ticks > I64_MAX:
        return "bad_integer"

    callback_offset, callback_count = signed(frames[n - 5]), signed(frames[n - 6])
    routing_offset, routing_count = signed(frames[n - 13]), signed(frames[n - 14])
    highest = 15
    for offset, count in ((callback_offset, callback_count), (routing_offset, routing_count)):
        if count < 0:
            return "bad_offset"
        if count > 0:
            top = offset + count * 2 - 1
            if offset < 16 or top > n:
                return "bad_offset"
            highest = max(highest, top)

    distribution = signed(frames[n - 8])
    if distribution not in (0, 1):
        return "bad_distribution"

    callback_points = []
    for i in range(callback_count):
        o = callback_offset + i * 2
        callback_points.append((frames[n - o], frames[n - (o + 1)], b""))
    routing = []
    for i in range(routing_count):
        o = routing_offset + i * 2
        uri = text(frames[n - (o + 1)])
        if uri is None:
            return "bad_text"
        routing.append((uri, frames[n - o]))

    return {
        "identity": frames[n - 10],
        "version": frames[n - 11],
        "partition": b"",
        "body_frames": [frames[n - 1]],
        "correlation_id": frames[n - 7],
        "ttl_ticks": ttl_ticks,
        "distribution": distribution,
        "trace_options": signed(frames[n - 12]),
        "receiver_identity": frames[n - 9],
        "receiver_node_identity": b"",
        "callback_receiver_identity": frames[n - 4],
        "callback_receiver_node_identity": b"",
        "callback_key": 0,
        "callback_points": callback_points,
        "routing": routing,
        "hops": signed(frames[n - 15]),
        "domain": "",
        "signature": b"",
        "socket_identity": envelope(frames, highest),
        "wire_version": 1,
    }


def envelope(frames, highest):
    """Frame 0, where frame 1 is empty and both lie above n-``highest``, the topmost frame of the message."""
    if len(frames) - highest < 2 or frames[1] != b"":
        return None
    return frames[0]


def lane(frame, number):
    return frame[2 * number - 2] + 256 * frame[2 * number - 1]


def unsigned(frame):
    return int.from_bytes(frame, "little")


def signed(frame):
    return int.from_bytes(frame, "little", signed=True)


def text(frame):
    try:
        return frame.decode("utf-8")
    except UnicodeDecodeError:
        return None


def plain(message):
    """A decoded ``Message`` as the dict that this decoder makes."""
    made = {name: getattr(message, name) for name in message.__struct_fields__}
    made["distribution"] = int(message.distribution)
    made["body_frames"] = list(message.body_frames)
    made["callback_points"] = [
        (point.identity, point.version, point.partition) for point in message.callback_points
    ]
    made["routing"] = [(address.uri, address.identity) for address in message.routing]
    return made


def plain_selectors(selectors):
    """The product's ``Selectors`` as the dict that ``peek`` here makes."""
    made = {name: getattr(selectors, name) for name in selectors.__struct_fields__}
    made["distribution"] = int(selectors.distribution)
    return made
