"""Both makes of channel, on real sockets: whatever is true of one is true of the other."""

import contextlib
import errno
import os
import platform
import resource
import shutil
import subprocess
import sys
import sysconfig
import threading
from functools import partial

import pytest
import zmq
from tests.node.running import until

from framewire.cluster.channel import COMPILED, PureChannel, _compiled, open_channel
from framewire.wire import Message, RouterAddress, encode
from framewire.wire.moulds import DESCRIPTORS, FIXED, HOLES

COMPILED_MAKE = _compiled()
MAKES = {
    "pure": PureChannel,
    "compiled": COMPILED_MAKE and partial(COMPILED_MAKE, holes=HOLES, descriptors=DESCRIPTORS, fixed=FIXED),
}
PURE = os.environ.get("FRAMEWIRE_PURE", "") not in ("", "0")


def can_compile():
    """Whether an extension could have been built here: a compiler, and Python's own headers."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(compiler[0]) is None:
        return False
    headers = sysconfig.get_paths()["include"]
    command = [*compiler, "-fsyntax-only", f"-I{headers}", "-x", "c", "-"]
    checked = subprocess.run(command, input=b"#include <Python.h>\n", capture_output=True, timeout=60, check=False)
    return checked.returncode == 0


@pytest.fixture(params=[name for name, make in MAKES.items() if make is not None])
def make(request):
    """A channel of either make on a socket."""
    return lambda socket, max_frames=1000, max_bytes=10_000_000: MAKES[request.param](socket, max_frames, max_bytes)


@pytest.fixture
def context():
    context = zmq.Context()
    yield context
    context.destroy(0)


@pytest.fixture
def pair(context):
    """Two sockets that are connected to each other, with room for few messages."""
    left, right = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    for socket in (left, right):
        socket.setsockopt(zmq.SNDHWM, 10)
        socket.setsockopt(zmq.RCVHWM, 10)
    left.bind("inproc://pair")
    right.connect("inproc://pair")
    return left, right


@pytest.fixture
def connected(context):
    """Two sockets that are connected over a network."""
    with context.socket(zmq.PAIR) as sender, context.socket(zmq.PAIR) as receiver:
        port = receiver.bind_to_random_port("tcp://127.0.0.1")
        sender.connect(f"tcp://127.0.0.1:{port}")
        yield sender, receiver


@pytest.mark.skipif(PURE, reason="FRAMEWIRE_PURE is set")
@pytest.mark.skipif(not can_compile(), reason="there is no C compiler here, or no Python headers")
def test_the_compiled_channel_is_built_and_used_where_there_is_a_compiler(pair):
    assert COMPILED
    assert not isinstance(open_channel(pair[0]), PureChannel)


def test_framewire_pure_forces_the_fallback():
    script = (
        "import zmq\n"
        "from framewire.cluster import channel\n"
        "socket = zmq.Context().socket(zmq.PAIR)\n"
        "print(channel.COMPILED, type(channel.open_channel(socket)).__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "FRAMEWIRE_PURE": "1"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.split() == [b"False", b"PureChannel"]


@pytest.mark.parametrize(
    "frames",
    [
        [b"one"],
        [b""],
        [b"", b"", b""],
        [b"\x00", b"", bytes(range(256))],
        [b"%d" % number for number in range(500)],
        [b"", b"x" * 1_000_000, b"", b"y" * 1_000_000],
    ],
    ids=["one", "empty", "all empty", "binary", "many", "large"],
)
def test_a_message_arrives_whole(make, pair, frames):
    sender, receiver = map(make, pair)
    assert sender.send(frames)
    assert receiver.receive(10) == [frames]


def test_frames_may_come_in_any_sequence(make, pair):
    sender, receiver = map(make, pair)
    assert sender.send((b"a", b"b"))
    assert receiver.receive(1) == [[b"a", b"b"]]


def test_what_is_done_to_a_message_does_not_show_in_the_next_one_like_it(make, pair):
    sender, receiver = map(make, pair)
    for frames in ([b"a", b"same", b"x" * 64], [b"b", b"same"], [b"same", b"b", b"x" * 64, b"x" * 65]):
        for _ in range(2):
            sender.send(frames)
            [received] = receiver.receive(1)
            assert received == frames
            received[0] = b"changed"
            received.append(b"more")


def test_no_more_messages_are_received_than_asked_for(make, pair):
    sender, receiver = map(make, pair)
    for number in range(5):
        sender.send([b"%d" % number, b"."])
    assert receiver.receive(0) == []
    assert receiver.receive(2) == [[b"0", b"."], [b"1", b"."]]
    assert receiver.receive(10) == [[b"2", b"."], [b"3", b"."], [b"4", b"."]]
    assert receiver.receive(10) == []


def test_where_there_is_no_room_nothing_is_sent(make, pair):
    sender, receiver = map(make, pair)
    sent = 0
    while sender.send([b"%d" % sent, b"end"]):
        sent += 1
        assert sent <= 20
    assert receiver.receive(100) == [[b"%d" % number, b"end"] for number in range(sent)]
    until(lambda: sender.send([b"later"]))
    assert receiver.receive(100) == [[b"later"]]


def test_many_messages_go_in_order_until_there_is_no_room(make, pair):
    sender, receiver = map(make, pair)
    messages = [[b"%d" % number, b"end"] for number in range(100)]
    sent = sender.send_many(messages)
    assert 0 < sent < 100
    assert sender.send_many(messages) == 0
    assert receiver.receive(100) == messages[:sent]
    assert sender.send_many([]) == 0


def test_of_many_messages_those_before_a_bad_one_are_sent(make, pair):
    sender, receiver = map(make, pair)
    with pytest.raises(TypeError, match="frame 0 is str"):
        sender.send_many([[b"good"], ["bad"], [b"never"]])
    assert receiver.receive(10) == [[b"good"]]


def test_of_many_messages_those_before_one_that_reaches_nobody_are_sent(make, context):
    with context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        dealer.setsockopt(zmq.ROUTING_ID, b"somebody")
        router.bind("inproc://router")
        dealer.connect("inproc://router")
        channel = make(router)
        assert channel.receive(1) == []  # makes the socket look who is there
        assert channel.send_many([[b"somebody", b"1"], [b"nobody", b"2"], [b"somebody", b"3"]]) == 1
        with pytest.raises(OSError, match=os.strerror(errno.EHOSTUNREACH)):
            channel.send_many([[b"nobody", b"2"], [b"somebody", b"3"]])
        assert make(dealer).receive(10) == [[b"1"]]


def test_a_mandatory_router_tells_that_a_peer_is_not_there(make, context):
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.ROUTER_MANDATORY, 1)
    channel = make(router)
    with pytest.raises(OSError, match=os.strerror(errno.EHOSTUNREACH)) as caught:
        channel.send([b"nobody", b"", b"body"])
    assert caught.value.errno == errno.EHOSTUNREACH
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.ROUTING_ID, b"somebody")
    router.bind("inproc://router")
    dealer.connect("inproc://router")
    assert channel.receive(1) == []  # makes the socket look who is there
    assert channel.send([b"somebody", b"", b"body"])
    assert make(dealer).receive(1) == [[b"", b"body"]]


@pytest.mark.parametrize(
    ("limits", "fits", "too_much"),
    [
        ({"max_frames": 3}, [b"1", b"2", b"3"], [b"1", b"2", b"3", b"4"]),
        ({"max_frames": 1}, [b"1"], [b"%d" % number for number in range(1000)]),
        ({"max_bytes": 100}, [b"x" * 50, b"y" * 50], [b"x" * 50, b"y" * 51]),
        ({"max_bytes": 0}, [b"", b""], [b"x"]),
        ({"max_bytes": 100}, [b"x" * 100], [b"x" * 1_000_000, b"", b"y"]),
    ],
)
def test_what_is_too_large_is_dropped_and_counted_and_the_next_message_is_intact(
    make, pair, limits, fits, too_much
):
    sender, receiver = make(pair[0]), make(pair[1], **limits)
    for frames in (fits, too_much, fits, too_much):
        assert sender.send(frames)
    assert receiver.receive(10) == [fits, fits]
    assert receiver.oversized == 2


@pytest.mark.parametrize("limits", [{"max_frames": 2}, {"max_bytes": 10}])
def test_what_is_too_large_is_not_even_begun_to_be_sent(make, pair, limits):
    sender, receiver = make(pair[0], **limits), make(pair[1])
    for send, argument in (
        (sender.send, [b"12345", b"67890", b"x"]),
        (sender.send_many, [[b"1", b"2", b"x" * 10]]),
    ):
        with pytest.raises(OSError, match=os.strerror(errno.EMSGSIZE)):
            send(argument)
    assert sender.send([b"12345", b"67890"])
    assert receiver.receive(10) == [[b"12345", b"67890"]]


def test_what_is_too_large_counts_towards_the_limit_of_one_call(make, pair):
    sender, receiver = make(pair[0]), make(pair[1], max_frames=1)
    for frames in ([b"a", b"b"], [b"c"]):
        sender.send(frames)
    assert receiver.receive(1) == []
    assert receiver.receive(1) == [[b"c"]]


def test_a_closed_socket_is_an_os_error(make, pair):
    channel = make(pair[0])
    pair[0].close(0)
    for call, argument in ((channel.receive, 1), (channel.send, [b"x"]), (channel.send_many, [[b"x"]])):
        with pytest.raises(OSError, match=os.strerror(errno.ENOTSOCK)) as caught:
            call(argument)
        assert caught.value.errno == errno.ENOTSOCK


def test_a_terminated_context_is_an_os_error(make, context):
    socket = context.socket(zmq.PULL)
    channel = make(socket)
    ending = threading.Thread(target=context.term)
    ending.start()

    def terminated():
        try:
            return channel.receive(1)
        except OSError as problem:
            return problem.errno == zmq.ETERM

    until(terminated)
    socket.close(0)
    ending.join(10)
    assert not ending.is_alive()


def test_another_thread_is_refused(make, pair):
    channel = make(pair[0])
    refused = []

    def intrude():
        for call, argument in ((channel.receive, 1), (channel.send, [b"x"]), (channel.send_many, [[b"x"]])):
            try:
                call(argument)
            except RuntimeError as problem:
                refused.append(str(problem))

    thread = threading.Thread(target=intrude)
    thread.start()
    thread.join(10)
    assert refused == ["a channel belongs to the thread that made it"] * 3
    assert make(pair[1]).receive(1) == []


@pytest.mark.parametrize(
    ("frames", "problem"),
    [
        ([b"fine", "text"], "frame 1 is str, not bytes"),
        ([b"fine", None], "frame 1 is NoneType, not bytes"),
        ([bytearray(b"mutable")], "frame 0 is bytearray, not bytes"),
        (7, "int|list of bytes"),
    ],
)
def test_a_frame_of_the_wrong_type_is_refused_before_anything_is_sent(make, pair, frames, problem):
    sender, receiver = map(make, pair)
    with pytest.raises(TypeError, match=problem):
        sender.send(frames)
    assert sender.send([b"whole"])
    assert receiver.receive(10) == [[b"whole"]]


def test_a_message_without_frames_is_refused(make, pair):
    with pytest.raises(ValueError, match="at least one frame"):
        make(pair[0]).send([])


@pytest.mark.parametrize("limits", [{"max_frames": 0}, {"max_frames": -1}, {"max_bytes": -1}])
def test_limits_that_make_no_sense_are_refused(make, pair, limits):
    with pytest.raises(ValueError, match="at least 1"):
        make(pair[0], **limits)


@pytest.mark.parametrize("limit", ["10", None, 1.5])
def test_a_limit_that_is_no_whole_number_is_refused(make, pair, limit):
    with pytest.raises(TypeError):
        make(pair[0]).receive(limit)


def test_frames_are_let_go_of_whatever_becomes_of_them(make, pair):
    sender, receiver = map(make, pair)
    frame = bytes(bytearray(1000))
    before = sys.getrefcount(frame)
    for _ in range(100):
        sender.send([frame, frame])
        with contextlib.suppress(TypeError):
            sender.send([frame, None])
        with contextlib.suppress(TypeError):
            sender.send_many([[frame], [frame, None]])
    assert sys.getrefcount(frame) == before
    [frames] = receiver.receive(1)
    assert [sys.getrefcount(part) for part in frames] == [3, 3]  # the list, the loop and the call


def test_a_large_frame_arrives_over_a_network_and_is_let_go_of_when_it_is_there(make, connected):
    sender, receiver = connected
    here, there = make(sender), make(receiver)
    large = os.urandom(3_000_000)
    before = sys.getrefcount(large)
    for _ in range(3):
        assert here.send([b"small", large, b"small"])
        until(lambda: receiver.poll(0))
        assert there.receive(1) == [[b"small", large, b"small"]]
    until(lambda: here.receive(1) == [] and sys.getrefcount(large) == before)


def test_a_large_frame_for_which_there_is_no_room_is_let_go_of(make, context):
    with context.socket(zmq.PUSH) as alone:
        here, large = make(alone), bytes(3_000_000)
        before = sys.getrefcount(large)
        assert not here.send([large])
        assert not here.send([b"small"]), "whoever calls next lets go of it"
        assert sys.getrefcount(large) == before


@pytest.mark.skipif(
    MAKES["compiled"] is None or platform.libc_ver()[0] != "glibc",
    reason="only the compiled channel speaks to glibc",
)
def test_large_frames_take_the_same_memory_again(connected):
    source, target = (MAKES["compiled"](each, 1000, 10_000_000) for each in connected)

    def pass_four():
        for _ in range(4):
            assert source.send([bytes(1_000_000)])
        came = []
        until(lambda: came.extend(target.receive(10)) or len(came) == 4)

    def faults(times):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(times):
            pass_four()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults(times=20)
    # Anew, each frame takes 245 pages where it is made, and as many where it comes in.
    assert faults(times=20) < 20 * 4 * 25


@pytest.mark.skipif(MAKES["compiled"] is None, reason="the compiled channel is not built")
def test_a_compiled_channel_of_another_version_is_not_used(monkeypatch, caplog):
    from framewire.cluster import _zmqio  # noqa: PLC0415 - not there without a compiler

    monkeypatch.setattr(_zmqio, "EDITION", 1)
    assert _compiled() is None
    assert "install it again" in caplog.text


@pytest.mark.skipif(MAKES["compiled"] is None, reason="the compiled channel is not built")
def test_a_compiled_channel_that_was_never_made_properly_does_nothing():
    half_made = COMPILED_MAKE.__new__(COMPILED_MAKE)
    with pytest.raises(RuntimeError):
        half_made.receive(1)
    with pytest.raises(RuntimeError):
        half_made.send([b"x"])


@pytest.mark.skipif(MAKES["compiled"] is None, reason="the compiled channel is not built")
def test_what_is_no_socket_is_refused_when_it_is_used():
    for impostor in (object(), 7, None):
        with pytest.raises(AttributeError):
            MAKES["compiled"](impostor, 10, 10).receive(1)


@pytest.mark.skipif(MAKES["compiled"] is None, reason="the compiled channel is not built")
def test_a_library_that_is_not_loaded_is_refused():
    from framewire.cluster import _zmqio  # noqa: PLC0415 - may not be built

    for path in ("/nowhere/libzmq.so", "", "."):
        with pytest.raises(OSError, match=r"not loaded|not in that library"):
            _zmqio.load(path)


def told(number, sender=b"peer", uri="tcp://127.0.0.1:7001", identity=b"shop.note"):
    message = Message(
        identity,
        body_frames=(b"body %d" % number,),
        correlation_id=b"flow %d" % number,
        ttl_ticks=number,
        callback_key=number,
        signature=b"%d" % number,
        socket_identity=sender,
        routing=(RouterAddress(uri, b"node"),),
    )
    return encode(message)


def test_messages_that_are_alike_come_together_and_all_come_in_order(make, pair):
    out, into = map(make, pair)
    far = "tcp://" + "a" * 80 + ":7001"
    runs = [
        [told(1), told(2), told(3)],
        [told(4, sender=b"other")],
        [told(5), told(6)],
        [told(7, identity=b"shop.other")],
        [told(8, uri=far), told(9, uri=far)],
        [[b"no", b"message"]],
        [[b"neither"]],
        [told(10)],
    ]
    for run in runs:
        for frames in run:
            assert out.send(frames)
    assert into.receive_runs(2) == [[told(1), told(2)]]
    assert into.receive_runs(100) == [[told(3)], *runs[1:]]
    assert into.receive_runs(100) == []


# --- bodies of several frames

LARGE = b"l" * 100_000


def several(*body, **fields):
    return encode(Message(b"several", body_frames=body, socket_identity=b"peer", **fields))


def received(channel):
    found = []
    until(lambda: found or found.extend(channel.receive(10)))
    return found


def test_views_are_sent_as_frames_and_what_they_show_arrives(connected, make):
    sender, receiver = (make(socket) for socket in connected)
    memory = bytearray(LARGE)
    frames = [memoryview(b"small"), memoryview(memory), b"bytes", memoryview(LARGE)[10:20], memoryview(b"")]
    assert sender.send(frames)
    assert received(receiver) == [[b"small", LARGE, b"bytes", LARGE[10:20], b""]]


def test_the_memory_of_a_view_lives_until_it_is_sent(connected, make):
    sender, receiver = (make(socket) for socket in connected)
    for number in range(20):
        assert sender.send([memoryview(bytearray([number]) * 100_000)])
    found = []
    until(lambda: found.extend(receiver.receive(10)) or len(found) == 20)
    assert found == [[bytes([number]) * 100_000] for number in range(20)]


def test_a_view_that_cannot_be_a_frame_is_refused_before_anything_is_sent(pair, make):
    sender, receiver = (make(socket) for socket in pair)
    released = memoryview(b"gone")
    released.release()
    with pytest.raises(ValueError, match="released"):
        sender.send([b"first", released])
    with pytest.raises((ValueError, BufferError)):
        sender.send([b"first", memoryview(b"abcd")[::2]])
    with pytest.raises(TypeError, match="frame 1 is bytearray, not bytes"):
        sender.send([b"first", bytearray(b"x")])
    assert sender.send([b"next"])
    assert received(receiver) == [[b"next"]]


def test_a_view_counts_with_all_of_its_bytes(pair, make):
    sender, receiver = make(pair[0], max_bytes=1000), make(pair[1])
    with pytest.raises(OSError, match="Message too long"):
        sender.send([memoryview(bytes(1001))])
    with pytest.raises(OSError, match="Message too long"):
        sender.send([memoryview(bytes(2000)).cast("d")])
    assert sender.send([memoryview(bytes(1000))])
    assert received(receiver) == [[bytes(1000)]]


def test_large_frames_of_a_body_of_several_are_views_of_what_came(connected):
    sender, receiver = (open_channel(socket) for socket in connected)
    frames = several(b"head", LARGE, b"small", LARGE)
    assert sender.send(frames)
    (found,) = received(receiver)
    assert found == frames
    large = [frame for frame in found if len(frame) == len(LARGE)]
    assert {type(frame) for frame in large} == ({memoryview} if COMPILED else {bytes})
    assert all(frame.readonly and frame.format == "B" for frame in large if isinstance(frame, memoryview))
    assert {type(frame) for frame in found if len(frame) < len(LARGE)} == {bytes}
    sender.send(found)  # as they are, to somebody else
    assert received(receiver) == [frames]


def test_all_other_large_frames_are_bytes(connected):
    sender, receiver = (open_channel(socket) for socket in connected)
    routed = {"routing": (RouterAddress("tcp://x", LARGE),)}
    overlapping = several(b"head", LARGE, **routed)
    lanes = [int.from_bytes(overlapping[DESCRIPTORS[1]][place : place + 2], "little") for place in (0, 2, 4, 6)]
    lanes[1] += 1  # the routing reaches into the body
    overlapping[DESCRIPTORS[1]] = b"".join(lane.to_bytes(2, "little") for lane in lanes)
    cases = [
        several(LARGE),
        several(b"head", b"small", **routed),
        several(b"head", b"small", correlation_id=LARGE),
        overlapping,
        [LARGE, *several(b"head", b"small")[1:]],
        several(b"head", LARGE)[2:],
        [b"peer", b"", LARGE],
        [*several(b"head", LARGE)[:-2], LARGE, b"\x05\x00"],
        [b"peer", b"", *[LARGE] * 3, *[b"\xff" * 8] * 17],
    ]
    for frames in cases:
        assert sender.send(frames)
        (found,) = received(receiver)
        assert found == frames
        assert {type(frame) for frame in found} == {bytes}


def test_a_view_of_what_came_lives_longer_than_its_socket():
    context = zmq.Context()
    with context.socket(zmq.PAIR) as left, context.socket(zmq.PAIR) as right:
        port = right.bind_to_random_port("tcp://127.0.0.1")
        left.connect(f"tcp://127.0.0.1:{port}")
        open_channel(left).send(several(b"head", LARGE))
        (found,) = received(open_channel(right))
    context.term()
    assert found[2] == LARGE
    if COMPILED:
        with pytest.raises(TypeError, match="cannot create"):
            type(found[2].obj)()


def test_like_messages_of_several_frames_are_in_their_order(connected, make):
    sender, receiver = (make(socket) for socket in connected)
    bodies = [bytes([number]) * 100_000 for number in range(4)]
    for body in bodies:
        assert sender.send(several(b"head", body))
    found = []
    until(lambda: found.extend(each for run in receiver.receive_runs(10) for each in run) or len(found) == 4)
    assert [frames[2] for frames in found] == bodies


def test_a_message_of_several_large_frames_that_is_too_large_is_dropped_whole(connected, make):
    sender, receiver = make(connected[0]), make(connected[1], max_bytes=250_000)
    assert sender.send(several(b"head", LARGE, LARGE, LARGE))
    assert sender.send(several(b"head", LARGE))
    assert received(receiver) == [several(b"head", LARGE)]
    assert receiver.oversized == 1
    assert receiver.offenders == [b"peer"]
