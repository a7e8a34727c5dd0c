"""``framewire trace``: the way of a message through a live cluster, taken or only looked at."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter
from typing import Any

import click

from framewire._counts import counted
from framewire.cli.letters import Letter, letter, letter_options
from framewire.cli.live import chosen, cluster_options, duration, join, row, table
from framewire.errors import MessageError, NoRoute
from framewire.node.payloads import type_of
from framewire.operation.observing import Observer, Seen, Step
from framewire.operation.sending import message_id, plain

__all__ = ["trace"]

_QUIET = 0.3
"""Seconds without another step after which a message has come to its end."""


@click.command()
@letter_options
@click.option("--reply", "replies", multiple=True, metavar="MESSAGE", help="What counts as the answer; else none.")
@click.option("--dry-run", is_flag=True, help="Send nothing; tell where it would go.")
@cluster_options()
def trace(
    message: str,
    payload: str,
    replies: tuple[str, ...],
    *,
    app: str | None,
    node: str | None,
    dry_run: bool,
    as_json: bool,
    **told: Any,
) -> None:
    """Send a traced message to a live cluster, and show every step that it and what came of it took.

    MESSAGE and PAYLOAD are as for `framewire ask`. Each node tells the steps that it remembers; its clock does not
    matter. With --dry-run nothing is sent: it is told who would get the message, in turn if there are several.

    Exit status: as for `framewire ask`; of a dry run, 0 if somebody would get it, and 5 if nobody would.

    Example: framewire trace orders.place@2 '{"article": "tea"}' --reply orders.placed@2 --app shop.messages
    """
    timeout = told["timeout"]
    if dry_run:
        found = join(told, lambda observer: _would_go(observer, message, node))
        _show_routes(found, as_json=as_json)
        return
    sent = letter(message, payload, app, replies)

    async def main(observer: Observer) -> None:
        nodes = await observer.find()
        answer, problem = None, None
        try:
            answer = await _sent(observer, sent, sent.options(nodes, node), timeout)
        except MessageError as error:
            problem = error
        steps = await _named(observer, nodes, await _steps(observer, nodes, sent.flow, timeout))
        _show_steps(sent, steps, answer, problem, as_json=as_json)
        if problem is not None:
            raise problem

    join(told, main)


async def _sent(observer: Observer, sent: Letter, options: dict[str, Any], timeout: float) -> Any:  # noqa: ASYNC109 - its ttl
    if sent.replies:
        return await observer.hub.ask(sent.payload, *sent.replies, timeout=timeout, trace=True, **options)
    await observer.hub.send(sent.payload, timeout=timeout, trace=True, **options)
    return None


async def _steps(observer: Observer, nodes: list[Seen], flow: bytes, limit: float) -> list[Step]:
    """The steps, once there are no more of them."""
    began = changed = perf_counter()
    known: list[Step] = []
    while True:
        found = await observer.steps(nodes, flow)
        if len(found) != len(known):
            changed = perf_counter()
        known = found
        if perf_counter() - changed >= _QUIET or perf_counter() - began >= limit:
            return known
        await asyncio.sleep(_QUIET / 3)


async def _named(observer: Observer, nodes: list[Seen], steps: list[Step]) -> list[Step]:
    """The same with the names of actors after their identities, as far as nodes tell them."""
    seen = [node.stats for node in await observer.look(nodes) if node.stats is not None]
    names = {f"to {actor.identity}": actor.name for stats in seen for actor in stats.actors}
    for step in steps:
        if (name := names.get(step.told.detail)) is not None:
            step.told.detail += f" ({name})"
    return steps


def _show_steps(
    sent: Letter, steps: list[Step], answer: Any, problem: MessageError | None, *, as_json: bool
) -> None:
    began = steps[0].at if steps else 0.0
    if as_json:
        data = {
            "flow": sent.flow.decode(),
            "steps": [
                {
                    "after": step.at - began,
                    "node": step.node,
                    "step": step.told.step,
                    "message": step.told.message,
                    "detail": step.told.detail,
                }
                for step in steps
            ],
            "answer": None
            if answer is None
            else {"message": str(type_of(type(answer)).message_id), "payload": plain(answer)},
            "problem": None if problem is None else f"{type(problem).__name__}: {problem.detail}",
        }
        click.echo(json.dumps(data))
        return
    from framewire.cli.tables import output  # noqa: PLC0415 - programs need not wait for rich

    made = table("after>", "node", "step", "message", "", title=f"flow {sent.flow.decode()}")
    for step in steps:
        row(made, duration(step.at - began), step.node, step.told.step, step.told.message, step.told.detail)
    output().print(made)


_MAX_KNOWN = 5
"""Messages like the one that nobody handles that are named."""


async def _would_go(observer: Observer, message: str, node: str | None) -> list[dict[str, Any]]:
    wanted, _ = message_id(message)
    nodes = await observer.find()
    among = nodes if node is None else chosen(nodes, [node])
    handling = [each for each in among if wanted in each.handles]
    if not handling:
        alike = sorted(
            {str(known) for each in nodes for known in each.handles if known.identity == wanted.identity}
        )
        more = f" and {len(alike) - _MAX_KNOWN:,} more" if len(alike) > _MAX_KNOWN else ""
        hint = f" Known: {', '.join(alike[:_MAX_KNOWN])}{more}." if alike else ""
        looked = counted(len(among), "node was", "nodes were")
        raise NoRoute(f"nobody {'there ' if node else ''}handles {wanted}; {looked} looked at.{hint}")
    found = []
    for seen in await observer.look(handling):
        actors = [] if seen.stats is None else seen.stats.actors
        named: list[dict[str, Any]] = [
            {"handler": handler.name, "actor": actor.identity, "queued": actor.queued, "limit": actor.limit}
            for actor in actors
            for handler in actor.handlers
            if handler.handles(wanted)
        ]
        unknown: dict[str, Any] = {"handler": None, "actor": None, "queued": None, "limit": None}
        found += [
            {"message": str(wanted), "node": seen.name, "uri": seen.uri, **each} for each in named or [unknown]
        ]
    return found


def _show_routes(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"sent": False, "routes": found}))
        return
    from framewire.cli.tables import output  # noqa: PLC0415 - programs need not wait for rich

    title = f"{found[0]['message']} would go to" + (" one of these, in turn" if len(found) > 1 else "")
    made = table("node", "handler", "queued>", "where", title=title)
    for each in found:
        queued = "" if each["queued"] is None else f"{each['queued']} of {each['limit']}"
        row(made, each["node"], each["handler"] or "(does not tell)", queued, each["uri"])
    output().print(made)
