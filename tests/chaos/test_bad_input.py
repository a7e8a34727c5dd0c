"""A node and a server among hostile peers, for some seconds; ``make fuzz`` does it for longer."""

import pytest
import zmq
from fuzz import cluster as fuzzer
from tests.cluster.clustering import HEARTBEAT, between, peers
from tests.node.running import eventually

from framewire.cluster import service
from framewire.wire import encode


@pytest.mark.timeout(180)
def test_a_node_and_a_server_live_on_among_hostile_peers_and_count_all_that_is_bad():
    outcome = fuzzer.fuzz(seed=5, seconds=4)
    assert not outcome.problems
    assert outcome.asked > 10
    for attack in ("broken_messages", "broken_service_messages", "broken_heartbeats"):
        assert outcome.sent[attack].malformed > 10
    assert outcome.sent["huge_frames"].oversized > 0


def test_another_message_in_the_place_of_a_heartbeat_is_counted_and_those_after_it_are_heard():
    async def main(one, two, *_):
        liveness = two._transport._liveness
        with zmq.Context() as context, context.socket(zmq.PUB) as false:
            port = false.bind_to_random_port("tcp://127.0.0.1")
            liveness.watch(b"false", f"tcp://127.0.0.1:{port}", HEARTBEAT)

            def counted():
                false.send_multipart(encode(service.service_message(service.PING)))
                return two.dead_letters.counts["malformed"]

            await eventually(counted)
            false.setsockopt(zmq.LINGER, 0)
        assert liveness._thread.is_alive()
        heard = liveness._watched[one.identity].seen
        await eventually(lambda: liveness._watched[one.identity].seen > heard)
        assert peers(two) == {one.identity}

    between(main)
