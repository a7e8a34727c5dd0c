"""What the cluster side of a node can be told, and everything that is wrong with it at once."""

import pytest

import framewire as fw
from framewire.cluster import ClusterSettings
from framewire.cluster.addresses import (
    any_port,
    can_bind,
    can_connect,
    candidates,
    is_loopback,
    next_port,
    reachable,
)


def test_all_problems_are_listed_at_once_those_of_the_node_included():
    with pytest.raises(fw.ConfigError) as caught:
        fw.Node(
            rendezvous=["nowhere", ("tcp://a:1", "tcp://*:2")],
            peers=["tcp://host"],
            bind="tcp://127.0.0.1",
            advertise="tcp://*:7",
            heartbeat="often",
            misses=0,
            send_queue=0,
            send_overflow="panic",
            max_frames=1,
            max_message_bytes=1,
            rediscover=-1,
            wire_version=3,
            versions={"2.5": 1},
            mailbox=0,
            colour="blue",
        )
    named = [problem.split(":")[0] for problem in caught.value.problems]
    assert named == [
        "colour",
        "bind",
        "advertise",
        "heartbeat",
        "misses",
        "send_queue",
        "send_overflow",
        "max_message_bytes",
        "max_frames",
        "rediscover",
        "wire_version",
        "versions",
        "rendezvous",
        "rendezvous",
        "peers",
        "mailbox",
    ]


def test_an_unknown_setting_is_told_with_those_that_there_are():
    with pytest.raises(fw.ConfigError, match=r"hartbeat: no such setting; there are .*heartbeat.*mailbox"):
        fw.Node(hartbeat=1)


def test_one_address_may_be_given_as_it_is():
    assert fw.Node(rendezvous="tcp://127.0.0.1:7400")._transport._settings.rendezvous == ("tcp://127.0.0.1:7400",)


@pytest.mark.parametrize("pair", [list, tuple])
def test_a_server_with_two_addresses_is_given_as_a_list_or_as_a_tuple(pair):
    place = ("tcp://127.0.0.1:7400", "tcp://127.0.0.1:7500")
    for told in ([pair(place)], (pair(place),)):
        settings = fw.Node(rendezvous=told)._transport._settings
        assert settings.rendezvous == (place,)
        assert hash(settings.rendezvous)
    for wrong in (place[:1], (*place, *place)):
        with pytest.raises(fw.ConfigError, match="rendezvous: "):
            fw.Node(rendezvous=[pair(wrong)])


def test_a_node_that_is_told_nothing_of_others_opens_no_socket():
    assert fw.Node()._transport is None


def test_patience_is_the_misses():
    assert ClusterSettings(heartbeat=0.5, misses=4).patience == 2


@pytest.mark.parametrize(
    ("uri", "bind", "connect"),
    [
        ("tcp://127.0.0.1:7400", True, True),
        ("tcp://some-host.example:7400", True, True),
        ("tcp://[::1]:7400", True, True),
        ("tcp://*:7400", True, False),
        ("tcp://127.0.0.1:*", True, False),
        ("tcp://127.0.0.1:7400-7410", True, False),
        ("tcp://127.0.0.1:7410-7400", False, False),
        ("tcp://127.0.0.1:0", False, False),
        ("tcp://127.0.0.1:65536", False, False),
        ("tcp://127.0.0.1:*-7400", False, False),
        ("tcp://127.0.0.1", False, False),
        ("tcp://:7400", False, False),
        ("ipc:///tmp/place", True, True),
        ("ipc://*", True, False),
        ("ipc://", False, False),
        ("inproc://place", False, False),
        ("udp://127.0.0.1:7400", False, False),
        ("", False, False),
        (b"tcp://127.0.0.1:7400", False, False),
        (None, False, False),
    ],
)
def test_what_an_address_is_good_for(uri, bind, connect):
    assert (can_bind(uri), can_connect(uri)) == (bind, connect)


def test_a_range_stands_for_each_of_its_ports():
    assert candidates("tcp://[::1]:7400-7402") == [f"tcp://[::1]:{port}" for port in (7400, 7401, 7402)]
    assert candidates("tcp://*:*") == ["tcp://*:*"]
    assert candidates("ipc:///tmp/1-2") == ["ipc:///tmp/1-2"]


def test_the_next_port_of_a_path_is_another_path():
    assert next_port("tcp://[::1]:7400") == "tcp://[::1]:7401"
    assert next_port("ipc:///tmp/place", 2) == "ipc:///tmp/place.2"
    assert any_port("tcp://[::1]:7400") == "tcp://[::1]:*"
    assert any_port("ipc:///tmp/place") == "ipc:///tmp/place.health"


def test_what_listens_everywhere_is_reached_at_the_hosts_own_address():
    assert reachable("tcp://0.0.0.0:7400", None, "10.1.2.3") == "tcp://10.1.2.3:7400"
    assert reachable("tcp://[::]:7400", None, "10.1.2.3") == "tcp://10.1.2.3:7400"
    assert reachable("tcp://127.0.0.1:7400", None, "10.1.2.3") == "tcp://127.0.0.1:7400"
    assert reachable("tcp://0.0.0.0:7400", "tcp://public:80", "10.1.2.3") == "tcp://public:80"
    assert reachable("tcp://0.0.0.0:7400", "tcp://public:*", "10.1.2.3") == "tcp://public:7400"


def test_what_listens_everywhere_needs_an_address_to_be_advertised():
    with pytest.raises(fw.ConfigError, match=r"advertise: tcp://0\.0\.0\.0:7400 is no address that others reach"):
        reachable("tcp://0.0.0.0:7400", None)


@pytest.mark.parametrize(
    ("uri", "loopback"),
    [
        ("tcp://127.0.0.1:7400", True),
        ("tcp://127.9.9.9:7400", True),
        ("tcp://127.0.0.1:*", True),
        ("tcp://127.0.0.1:7500-7599", True),
        ("tcp://[::1]:7400", True),
        ("tcp://localhost:7400", True),
        ("tcp://10.0.0.1:7400", False),
        ("tcp://0.0.0.0:7400", False),
        ("tcp://host:7400", False),
        ("ipc:///tmp/place", False),
    ],
)
def test_which_addresses_are_reached_from_their_own_host_only(uri, loopback):
    assert is_loopback(uri) == loopback
