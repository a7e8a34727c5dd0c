"""What Prometheus is told."""

import re
from pathlib import Path

from tests.node.messages import Answer, Done, Question
from tests.node.running import run

import framewire as fw
from framewire.node.reports import ActorStats, HandlerStats
from framewire.operation.metrics import METRICS, MOST, OTHERS, exposition

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
LINE = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\.)*",?)+\})? -?[0-9.e+-]+')


class Asked(fw.Actor):
    @fw.handles(Question)
    async def asked(self, question):
        if question.text == "fail":
            raise ValueError("on purpose")
        return Answer(question.text)


def told():
    """The stats of a node that has done something."""

    async def main():
        async with fw.Node(identity="me", signals=False) as node:
            await node.host(Asked())
            for text in ("a", "b", "fail"):
                try:
                    await node.hub.ask(Question(text), Answer)
                except fw.RemoteError:
                    continue
            await node.hub.tell(Done())
            return node.stats()

    return run(main())


def test_a_node_tells_what_it_has_done():
    text = exposition({"": told()})
    for line in (
        'framewire_handled_total{handler="Asked.asked",message="test.question v1"} 3',
        'framewire_failed_total{handler="Asked.asked",message="test.question v1"} 1',
        'framewire_mailbox_limit{actor="Asked"} 1000',
        'framewire_dead_letters_total{reason="no_route"} 1',
        "framewire_pending 0",
        "framewire_replies_total 2",
        "# TYPE framewire_handled_total counter",
    ):
        assert f"{line}\n" in text


def test_every_line_is_one_that_prometheus_understands():
    text = exposition({"1": told(), "2": told()})
    assert text.endswith("\n")
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in samples), [line for line in samples if not LINE.fullmatch(line)]
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples)
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            assert line.split()[3] in ("counter", "gauge")


def test_what_nodes_run_the_cluster_with_is_left_out():
    assert "FRAMEWIRE." not in exposition({"": told()})
    assert "Introspection" not in exposition({"": told()})


def actor(name, queued):
    handler = HandlerStats(name=f"{name}.h", message=f"m.{name} v1", handled=1, failed=0, seconds=1, longest=queued)
    return ActorStats(
        name=name,
        identity="01",
        queued=queued,
        waiting=0,
        busy=0,
        limit=10,
        overflow="wait",
        restarts=0,
        handlers=[handler],
    )


def test_however_many_actors_there_are_the_series_are_few_and_nothing_is_lost():
    stats = told()
    stats.actors = [actor(f"A{number}", 1) for number in range(MOST + 50)]
    lines = exposition({"": stats}).splitlines()
    mailboxes = [line for line in lines if line.startswith("framewire_mailbox_messages{")]
    assert len(mailboxes) == MOST + 1
    assert mailboxes[-1] == f'framewire_mailbox_messages{{actor="{OTHERS}"}} 50.0'


def test_actors_of_one_name_are_one_series():
    stats = told()
    stats.actors = [actor("A", 2), actor("A", 3)]
    text = exposition({"": stats})
    assert 'framewire_mailbox_messages{actor="A"} 5.0\n' in text
    assert 'framewire_handler_longest_seconds{handler="A.h",message="m.A v1"} 3.0\n' in text


def test_labels_are_escaped():
    stats = told()
    stats.actors = [actor('a"b\\c\nd', 1)]
    assert 'framewire_mailbox_messages{actor="a\\"b\\\\c\\nd"} 1\n' in exposition({"": stats})


def test_every_metric_is_documented():
    page = PAGE.read_text()
    for metric in METRICS:
        assert f"| `{metric.name}` |" in page, metric.name
