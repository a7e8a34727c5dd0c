"""The trouble of a run comes from its seed alone."""

from tests.chaos.plan import LINKS, NAMES, NODES, PROCESSES, SERVERS, STRANGERS, rounds, ways


def test_the_same_seed_is_the_same_trouble_and_another_is_not():
    assert rounds(7, 120) == rounds(7, 120)
    assert rounds(7, 120) != rounds(8, 120)


def test_a_longer_run_begins_as_a_shorter_one():
    short = rounds(7, 60)
    assert rounds(7, 600)[: len(short)] == short
    assert rounds(7, 1)


def test_everything_that_can_go_wrong_does_in_a_long_run():
    faults = [fault for faults in rounds(1, 3600) for fault in faults]
    nodes = {(fault.kind, fault.where) for fault in faults if fault.where in NODES}
    assert nodes == {(kind, node) for kind in PROCESSES for node in NODES}
    servers = {(fault.kind, fault.where) for fault in faults if fault.where in SERVERS}
    assert servers == {(kind, server) for kind in ("kill", "stop") for server in SERVERS}
    assert {fault.kind for fault in faults if fault.where in ways()} == set(LINKS)
    assert {fault.kind for fault in faults if fault.where == NAMES} == {"silence"}
    assert {fault.kind for fault in faults if fault.where == STRANGERS} == {"attack"}
    assert {fault.where for fault in faults} == {*NODES, *SERVERS, NAMES, STRANGERS, *ways()}


def test_no_place_has_two_faults_at_a_time():
    for faults in rounds(3, 3600):
        assert len({fault.where for fault in faults}) == len(faults)
