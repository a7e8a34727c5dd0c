"""The live cluster as a drawing: what each node does, what goes from one to another, and who is gone.

Nodes stay where they are: neither what is sent nor a node that dies moves the others, or nobody could follow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from framewire._counts import counted
from framewire.dashboard.graph import (
    MOST_NODES,
    Address,
    Drawing,
    DrawnEdge,
    DrawnNode,
    latency,
    radius,
    tone,
    width,
)
from framewire.dashboard.layout import Places
from framewire.dashboard.sendings import Sending
from framewire.dashboard.showing import brief, count, rate, shown, span
from framewire.dashboard.watching import Gone, Look
from framewire.history import Edge
from framewire.node.reports import PendingStats
from framewire.operation.observing import Seen

__all__ = ["Recorded", "Way", "asks_by_way", "drawn_live"]

Way = tuple[str, str]
"""From one node to another."""
Recorded = Mapping[Way, Edge]
"""What a lake tells of ways."""
_TOLD = 3
"""Messages that are told of where something is pointed at."""


def drawn_live(
    look: Look, address: Address, picked: tuple[str, ...], recorded: Recorded, standing: Places
) -> Drawing:
    """The cluster as it is now; ``picked`` is a node, or a sender and a receiver."""
    names = [each.name for each in look.everyone][:MOST_NODES]
    keys = {name: str(at) for at, name in enumerate(names)}
    known = _acquaintances(look, keys)
    missed = {(name, gone.name) for gone in look.gone if gone.name in keys for name in names}
    places = standing.of(names, known | missed)
    busiest = max((stats.rates.get("handled", 0.0) for stats in look.stats), default=0.0)
    nodes = [
        DrawnNode(
            keys[each.name],
            brief(each.name),
            *places[each.name],
            r=radius(_rate(each, "handled"), busiest),
            said=f"{brief(each.name)}: {_doing(look, each)}",
            href=address(node=each.name),
            tone="gone" if isinstance(each, Gone) else "bad" if each.stats is None or _rate(each, "failed") else "",
            picked=picked == (each.name,),
        )
        for each in look.everyone
        if each.name in keys
    ]
    return Drawing(
        tuple(nodes),
        tuple(_edges(look, keys, known, address, picked, recorded)),
        len(look.everyone) - len(names),
    )


def asks_by_way(look: Look) -> dict[Way, list[PendingStats]]:
    """Open asks by who asked and who has them, as far as that is known; the oldest first."""
    found: dict[Way, list[PendingStats]] = defaultdict(list)
    for node in look.nodes:
        for each in node.stats.pending if node.stats is not None else ():
            if each.sent_to and each.sent_to != node.name:
                found[node.name, each.sent_to].append(each)
    return {way: sorted(asks, key=lambda ask: -ask.age) for way, asks in found.items()}


def _edges(
    look: Look,
    keys: Mapping[str, str],
    known: Collection[Way],
    address: Address,
    picked: tuple[str, ...],
    recorded: Recorded,
) -> list[DrawnEdge]:
    """An arrow where something was sent lately or is awaited, a thin line where two only know each other."""
    sendings = {(each.sender, each.receiver): each for each in look.sendings}
    asks = asks_by_way(look)
    busy = {way for way, each in sendings.items() if each.lately or each.waiting} | asks.keys()
    arrows = sorted(way for way in busy if keys.keys() >= set(way))
    quiet = sorted(way for way in known if way not in busy and way[::-1] not in busy)
    most = max((sendings[way].rate for way in arrows if way in sendings), default=0.0)
    edges = [
        DrawnEdge(
            keys[one],
            keys[other],
            0.6,
            f"{brief(one)} and {brief(other)} know each other, and sent nothing lately",
            address(sender=one, receiver=other),
            tone="faint",
            picked=picked == (one, other),
        )
        for one, other in quiet
    ]
    for way in arrows:
        one, other = way
        sending = sendings.get(way)
        told = [_sent(sending), _by_message(sending), _awaited(asks.get(way, [])), _recorded(recorded.get(way))]
        edges.append(
            DrawnEdge(
                keys[one],
                keys[other],
                width(sending.rate if sending is not None else 0.0, most),
                f"{brief(one)} → {brief(other)}: {'; '.join(filter(None, told))}",
                address(sender=one, receiver=other),
                tone=tone(sending.trouble) if sending is not None else "",
                picked=picked == way,
            )
        )
    return edges


def _sent(sending: Sending | None) -> str:
    if sending is None:
        return ""
    told = [
        f"{rate(sending.rate)} a second",
        f"{count(sending.sent)} sent in all",
        f"{count(sending.dropped)} dropped",
    ]
    return ", ".join([*told, f"{count(sending.waiting)} waiting"] if sending.waiting else told)


def _by_message(sending: Sending | None) -> str:
    """What is sent, and how long its answers take, as far as the sender looks at it."""
    lately = [each for each in sending.messages if each.rate] if sending is not None else []
    return "; ".join(
        f"{shown(each.message, 40)} {rate(each.rate)} a second"
        + (f", answered in {span(each.p50)} (p50), {span(each.p95)} (p95)" if each.p50 is not None else "")
        for each in lately[:_TOLD]
    )


def _awaited(asks: list[PendingStats]) -> str:
    if not asks:
        return ""
    return f"{counted(len(asks), 'open ask')}, the oldest {shown(asks[0].message, 60)} for {span(asks[0].age)}"


def _recorded(edge: Edge | None) -> str:
    """How long messages took, all and by message, as far as the lake tells."""
    if edge is None or not latency(edge.traffic):
        return ""
    each = [
        f"{shown(one.message, 40)} {latency(one)}" for one in edge.messages[:_TOLD] if one.message and latency(one)
    ]
    return f"recorded: {'; '.join([latency(edge.traffic), *each])}"


def _doing(look: Look, node: Seen | Gone) -> str:
    if isinstance(node, Gone):
        return f"gone; last seen {node.last_seen:%H:%M:%S} UTC"
    if node.stats is None:
        return shown(node.problem)
    busiest = sorted((each for each in look.handlers if each.node == node.name), key=lambda each: -each.rate)
    told = [
        f"{shown(each.handler.message, 40)} {rate(each.rate)} a second in {span(each.took)}"
        for each in busiest[:_TOLD]
        if each.rate
    ]
    said = f"handles {rate(_rate(node, 'handled'))} a second, of which {rate(_rate(node, 'failed'))} fail"
    return "; ".join([said, *told])


def _rate(node: Seen | Gone, name: str) -> float:
    return node.stats.rates.get(name, 0.0) if isinstance(node, Seen) and node.stats is not None else 0.0


def _acquaintances(look: Look, keys: Collection[str]) -> set[Way]:
    return {
        (node.name, peer)
        for node in look.nodes
        if node.stats is not None
        for peer in node.stats.peers
        if node.name in keys and peer in keys and node.name < peer
    }
