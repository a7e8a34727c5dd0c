"""CURVE, over real sockets: who has an allowed key is a member, and everybody else gets nowhere."""

import logging
import shutil
import stat

import pytest
import zmq
from tests.cluster.clustering import (
    Named,
    acquainted,
    handled_by,
    make_node,
    peers,
    rendezvous,
    served,
    uri_of,
)
from tests.cluster.curves import Keys
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run
from zmq.utils.monitor import recv_monitor_message

import framewire as fw
from framewire.cluster import service
from framewire.security.curve import Allowed
from framewire.wire import decode, encode

FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
MADE = zmq.EVENT_HANDSHAKE_SUCCEEDED


@pytest.fixture
def keys(tmp_path):
    made = Keys(tmp_path / "keys", "server", "one", "two")
    made.make("stranger")
    return made


def test_members_find_and_ask_each_other_and_hear_each_others_heartbeats(keys):
    async def main(server):
        async with (
            make_node(server, curve=keys.of("one"), misses=3) as one,
            make_node(server, curve=keys.of("two"), misses=3) as two,
        ):
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"
            heard = set()
            one._transport._liveness._hear = lambda frames, _: heard.add(
                service.parse(decode(frames)).socket_identity
            )
            await eventually(lambda: two.identity in heard)

    run(served(main, curve=keys.of("server")))


def test_members_without_a_rendezvous_find_each_other(keys, tmp_path):
    uri = f"ipc://{tmp_path}/home"

    async def main():
        async with (
            make_node(bind=uri, curve=keys.of("one")) as one,
            make_node(peers=uri, curve=keys.of("two")) as two,
        ):
            await two.host(Named("two"))
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "two"

    run(main())


def test_servers_with_allowed_keys_relay_to_each_other(keys):
    async def main(left):
        with rendezvous(partners=[left.uri], curve=keys.of("two")) as right:
            async with (
                make_node(left, curve=keys.of("one")) as speaks,
                make_node(right, curve=keys.of("one")) as hears,
            ):
                await eventually(lambda: speaks.identity in peers(hears))

    run(served(main, curve=keys.of("server")))


# --- strangers


class Stranger:
    """A socket that is connected to somebody who should not let it in."""

    def __init__(self, kind, uri, keys=None, server=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.linger = 0
        if kind == zmq.SUB:
            self.socket.subscribe(b"")
        if keys is not None:
            self.socket.curve_publickey, self.socket.curve_secretkey = keys.own.public, keys.own.secret
            self.socket.curve_serverkey = keys.cluster.public if server is None else server
        self.monitor = self.socket.get_monitor_socket(FAILED | MADE | zmq.EVENT_DISCONNECTED)
        self.socket.connect(uri)

    def outcome(self):
        """What became of the first connection."""
        assert self.monitor.poll(10_000), "nothing happened"
        return recv_monitor_message(self.monitor)["event"]

    def close(self):
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.context.destroy(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def places(server, node):
    return {
        "front": (zmq.DEALER, uri_of(node)),
        "heartbeats": (zmq.SUB, node._transport._liveness.uri),
        "rendezvous": (zmq.DEALER, server.uri),
        "broadcast": (zmq.SUB, server.broadcast),
        "relay": (zmq.SUB, server.relay),
    }


@pytest.mark.parametrize("place", ["front", "heartbeats", "rendezvous", "broadcast", "relay"])
@pytest.mark.parametrize("how", ["plaintext", "unknown key", "allowed key", "allowed key, other cluster"])
def test_nobody_without_an_allowed_key_gets_through_the_handshake_of_any_socket(keys, place, how):
    async def main(server):
        async with make_node(server, curve=keys.of("one")) as node:
            name = {"plaintext": None, "unknown key": "stranger"}.get(how, "two")
            other = keys.of("stranger").read().own.public if how.endswith("other cluster") else None
            kind, uri = places(server, node)[place]
            with Stranger(kind, uri, None if name is None else keys.of(name).read(), other) as stranger:
                if how == "allowed key":
                    assert stranger.outcome() == MADE
                else:
                    assert stranger.outcome() != MADE

    run(served(main, curve=keys.of("server")))


@pytest.mark.parametrize("how", ["stranger", None], ids=["unknown key", "plaintext"])
def test_a_node_that_is_a_stranger_is_counted_and_neither_knows_nor_is_known(keys, how):
    async def main(server):
        theirs = {} if how is None else {"curve": keys.of(how)}
        place = f"ipc://{keys.folder}/one"
        async with (
            make_node(server, bind=place, curve=keys.of("one")) as one,
            make_node(server, peers=[place], **theirs) as other,
        ):
            await other.host(Named("other"))
            await eventually(lambda: one.stats().totals["turned_away"] >= 2)
            assert not peers(one)
            assert not peers(other)

    run(served(main, curve=keys.of("server")))


def test_a_server_that_is_not_of_the_cluster_hears_nothing_of_a_node(keys):
    async def main(server):
        async with make_node(server, curve=keys.of("one")) as node:
            await node.host(Named("secret"))
            with Stranger(zmq.SUB, server.broadcast) as listener:
                assert listener.outcome() == MADE  # it is a plain server, and anybody may listen
                said = encode(service.service_message(service.PING))
                with Stranger(zmq.DEALER, server.uri) as speaker:
                    heard = set()
                    while service.PONG.identity not in heard:  # what the node said before would have come before
                        speaker.socket.send_multipart(said)
                        while listener.socket.poll(50):
                            heard.add(decode(listener.socket.recv_multipart()).identity)
                assert heard <= {service.PONG.identity, service.HEARTBEAT.identity}

    run(served(main))


def test_a_refused_key_is_logged_with_its_address_and_no_secret(keys, caplog):
    caplog.set_level(logging.WARNING)

    async def main():
        async with make_node(curve=keys.of("one")) as node:
            with Stranger(zmq.DEALER, uri_of(node), keys.of("stranger").read()) as stranger:
                assert stranger.outcome() != MADE
            stranger_keys = keys.of("stranger").read().own
            assert f"from 127.0.0.1 is refused: the public key {stranger_keys.public.decode()}" in caplog.text
            assert stranger_keys.secret.decode() not in caplog.text

    run(main())


# --- a directory that changes


def test_a_key_that_is_allowed_later_is_let_in_without_a_restart(keys):
    async def main(server):
        async with (
            make_node(server, curve=keys.of("one"), misses=3) as one,
            make_node(server, curve=keys.of("stranger"), misses=3) as late,
        ):
            await late.host(Named("late"))
            assert not peers(one)
            keys.allow("stranger")
            await handled_by(1, one)
            assert (await one.hub.ask(Question(), Answer)).text == "late"

    run(served(main, curve=keys.of("server")))


def test_a_peer_whose_key_is_allowed_later_is_let_in_without_a_restart(keys):
    async def main():
        place = f"ipc://{keys.folder}/one"
        async with (
            make_node(bind=place, curve=keys.of("one")) as one,
            make_node(peers=[place], curve=keys.of("stranger")) as late,
        ):
            await eventually(lambda: one.stats().totals["turned_away"] >= 1)
            keys.allow("stranger")
            await acquainted(one, late)

    run(main())


def test_a_node_that_another_refuses_is_let_in_when_that_one_allows_it(keys):
    async def main(server):
        narrow = keys.folder / "narrow"
        narrow.mkdir()
        async with (
            make_node(server, curve=keys.of("one"), misses=3) as one,
            make_node(server, curve=keys.of("two", narrow), misses=3) as two,
        ):
            await two.host(Named("two"))
            await eventually(lambda: two.stats().totals["turned_away"] > 0 or peers(one))
            with pytest.raises(fw.MessageError):
                await one.hub.ask(Question(), Answer, to_node=two.identity, timeout=2)
            shutil.copy(keys.folder / "one.key", narrow)
            await eventually(lambda: peers(one) == {two.identity})
            assert (await one.hub.ask(Question(), Answer, to_node=two.identity)).text == "two"

    run(served(main, curve=keys.of("server")))


def test_a_key_that_is_removed_keeps_its_connections_and_makes_no_new_ones(keys):
    async def main():
        async with make_node(curve=keys.of("one")) as one:
            with Stranger(zmq.DEALER, uri_of(one), keys.of("two").read()) as old:
                assert old.outcome() == MADE
                keys.forbid("two")
                with Stranger(zmq.DEALER, uri_of(one), keys.of("two").read()) as new:
                    assert new.outcome() != MADE
                before = one.stats().totals["received"]
                old.socket.send_multipart([b"", b"junk"])
                await eventually(lambda: one.stats().totals["received"] > before)

    run(main())


def test_a_directory_that_is_gone_lets_nobody_in(keys):
    async def main():
        async with make_node(curve=keys.of("one")) as one:
            member = keys.of("two").read()
            shutil.rmtree(keys.allowed)
            with Stranger(zmq.DEALER, uri_of(one), member) as two:
                assert two.outcome() != MADE

    run(main())


# --- what it is told


def test_everything_that_is_wrong_with_the_files_is_told_at_once(keys):
    (keys.folder / "one.key_secret").chmod(0o640)
    (keys.folder / "cluster.key_secret").write_text("nothing")
    curve = fw.Curve(
        key=keys.folder / "one.key_secret", cluster=keys.folder / "cluster.key_secret", allowed="nowhere"
    )

    async def main():
        with pytest.raises(fw.ConfigError) as caught:
            async with make_node(curve=curve):
                pass
        assert len(caught.value.problems) == 3
        assert "chmod 600" in str(caught.value)
        assert "framewire keys new cluster" in str(caught.value)
        assert "nowhere is no directory" in str(caught.value)

    run(main())


def test_a_key_in_the_place_of_its_file_is_not_shown(keys):
    secret = keys.of("one").read().own.secret.decode()
    with pytest.raises(fw.ConfigError) as caught:
        fw.Curve(key=secret, cluster=keys.folder / "cluster.key_secret", allowed=keys.allowed).read()
    assert "key: what is given cannot be read" in str(caught.value)
    assert secret not in str(caught.value)


def test_a_curve_that_is_none_is_refused_with_the_accepted_values():
    with pytest.raises(fw.ConfigError, match="curve: 'x'; must be a Curve"):
        fw.Node(curve="x")


def test_neither_keys_nor_sockets_show_their_secrets(keys):
    read = keys.of("one").read()
    shown = f"{keys.of('one')} {keys.of('one')!r} {read} {read.own!r}"
    assert read.own.secret.decode() not in shown
    assert read.cluster.secret.decode() not in shown


def test_only_their_owner_can_read_secret_keys(keys):
    assert stat.S_IMODE((keys.folder / "one.key_secret").stat().st_mode) == 0o600


def test_a_public_key_that_anybody_could_have_written_lets_nobody_in(tmp_path, caplog):
    keys = Keys(tmp_path, "member")
    (path,) = keys.allowed.glob("*.key")
    public = keys.of("member").read().own.public
    assert Allowed(keys.allowed).name_of(public) == path.stem
    path.chmod(0o646)
    assert Allowed(keys.allowed).name_of(public) is None
    assert f"{path} lets nobody in: anybody can let themselves in: {path} has mode 0646" in caplog.text
