"""Rows into a live cluster: the format ``framewire`` for Spark's batch and streaming writers.

>>> spark.dataSource.register(MessageSink)  # doctest: +SKIP
>>> df.write.format("framewire").option("rendezvous", "tcp://host:7400").mode("append").save()  # doctest: +SKIP

Each task is a node of the cluster while it writes. What went wrong is told to the driver, which fails the batch
when all tasks are through: a task that failed by itself would be tried again, and send again what it had sent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegralType, StringType, StructType

from framewire.errors import ConfigError
from framewire.spark.ledger import Ledger
from framewire.spark.sending import Outgoing, Sender, Tally, Target, refusal
from framewire.wire import MessageId
from framewire.wire.message import readable

__all__ = ["MessageSink"]

log = logging.getLogger("framewire.spark")

_OPTIONS = {
    "rendezvous": "addresses of rendezvous servers, with commas between them",
    "peers": "addresses of nodes, with commas between them",
    "bind": "where each writing node listens, like tcp://10.0.0.5:*",
    "keys": "a key file, at the same place on every worker",
    "receipts": "true (each message is confirmed) or false",
    "timeout": "seconds for a receipt, and what a message has to live",
    "rate": "messages a second and task, at most",
    "inflight": "messages of a task whose receipts are awaited at a time",
    "newids": "true for new correlation ids, false for those of the rows",
    "onfailure": "fail (the batch fails when a message did) or log",
    "ledger": "a directory that all workers share, where it is noted what was sent",
    "batch": "the name of this batch in the ledger; streams have their own",
}
_SPARKS_OWN = ("checkpointlocation", "path")
"""Options of the writer that Spark hands on to every format."""
_BATCH_ID, _QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
_COLUMNS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "identity": ((BinaryType, StringType), "binary or string"),
    "version": ((IntegralType,), "a whole number"),
    "partition": ((BinaryType, StringType), "binary or string"),
    "body": ((BinaryType, StringType), "binary or string"),
    "body_frames": ((ArrayType,), "array<binary>"),
    "correlation_id": ((BinaryType, StringType), "binary or string"),
    "distribution": ((IntegralType,), "a whole number: 1 for a broadcast"),
    "signature_state": ((StringType,), "string, as in the table messages"),
}
_NEEDED = (("identity",), ("body", "body_frames"))
"""Columns of which there must be one. ``body_frames`` is null where the body is one frame, which is in ``body``."""


class MessageSink(DataSource):
    """The format ``framewire``. Register it with ``spark.dataSource.register(MessageSink)``."""

    @classmethod
    def name(cls) -> str:
        return "framewire"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For ``df.write``."""
        plan = _planned(self.options, schema, overwrite=overwrite, stream=False)
        return _BatchWriter(plan)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        """For ``df.writeStream``."""
        return _StreamWriter(_planned(self.options, schema, overwrite=overwrite, stream=True))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the tasks are told."""

    target: Target
    columns: tuple[str, ...]
    new_ids: bool
    fail: bool
    ledger: str | None
    batch: str | None


@dataclass
class _Written(WriterCommitMessage):
    """What a task tells the driver."""

    tally: Tally = field(default_factory=Tally)
    ledger_batch: str | None = None


class _BatchWriter(DataSourceWriter):
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        return _write(self.plan, iterator, self.plan.batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self.plan, messages)


class _StreamWriter(DataSourceStreamWriter):
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        told = [None if context is None else context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID)]
        return _write(self.plan, iterator, "-".join(str(part) for part in told))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        _commit(self.plan, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Nothing can be taken back; what was sent is in the ledger."""


def _write(plan: _Plan, rows: Iterator[Row], batch: str | None) -> _Written:
    """What a task does."""
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    ledger = None if plan.ledger is None or batch is None else Ledger(plan.ledger, batch)
    if ledger is not None and ledger.done() is not None:
        return _Written(Tally(skipped=sum(1 for _ in rows)), None)
    before = ledger.sent(part) if ledger is not None else None
    notes = ledger.notes(part) if ledger is not None else None
    first = next(rows, None)
    if first is None:
        return _Written(Tally(), batch if ledger else None)
    tally = Tally()
    try:
        with Sender(plan.target) as sender:
            for row in chain([first], rows):
                message = _outgoing(row, plan, tally)
                if message is None:
                    continue
                digest = message.digest
                if before is not None and before[digest] > 0:
                    before[digest] -= 1
                    tally.skipped += 1
                    continue
                sender.send(message, None if notes is None else partial(notes.add, digest))
    finally:
        if notes is not None:
            notes.flush()
    tally.add(sender.tally)
    return _Written(tally, batch if ledger else None)


def _commit(plan: _Plan, messages: Iterable[WriterCommitMessage | None]) -> None:
    """What the driver does when all tasks are through."""
    tally = Tally()
    batches: set[str] = set()
    for message in messages:
        if isinstance(message, _Written):
            tally.add(message.tally)
            batches |= set() if message.ledger_batch is None else {message.ledger_batch}
    if tally.failed:
        examples = "".join(f"\n  {example}" for example in tally.examples)
        told = f"framewire: {tally}. For example:{examples}"
        if plan.fail:
            again = (
                "only what failed is sent again" if plan.ledger else "all of it is sent again, for want of a ledger"
            )
            raise RuntimeError(f"{told}\nIf the batch is written again, {again}.")
        log.warning("%s", told)
    for batch in batches:
        Ledger(plan.ledger or "", batch).finish({"confirmed": tally.confirmed, "told": tally.told})


def _outgoing(row: Row, plan: _Plan, tally: Tally) -> Outgoing | None:
    """A row as a message; None, and counted, if it is none."""
    value: dict[str, Any] = {name: row[name] for name in plan.columns}
    identity, body, version = _bytes(value["identity"]), _bytes(value.get("body")), value.get("version", 1)
    given = value.get("body_frames")
    frames = None if given is None or len(given) == 1 else tuple(map(_bytes, given))
    if given is not None:
        body = b"".join(map(_bytes, given))
    wrong = refusal(identity, body, value.get("signature_state"), frames)
    if not identity:
        wrong = "it has no identity"
    elif given is not None and None in given:
        wrong = "body_frames holds a null"
    elif version is None or not 0 <= version <= 0xFFFF:
        wrong = f"version {version} is not a number from 0 to 65535"
    if wrong is not None:
        tally.fail("Refused", f"{readable(identity)}: {wrong}")
        return None
    flow = _bytes(value.get("correlation_id"))
    message_id = MessageId(identity, version, _bytes(value.get("partition")))
    flow_id = None if plan.new_ids or not flow else flow
    return Outgoing(message_id, body, flow_id, value.get("distribution") == 1, frames)


def _bytes(value: str | bytes | bytearray | None) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else bytes(value)


def _planned(options: Mapping[str, str], schema: StructType, *, overwrite: bool, stream: bool) -> _Plan:
    """The options and columns as they are meant, or one error with all that is wrong with them."""
    told = {name.lower(): value for name, value in options.items() if name.lower() not in _SPARKS_OWN}
    known = "; ".join(f"{name}: {about}" for name, about in _OPTIONS.items())
    problems = [f"{name}: no such option; there are {known}" for name in sorted(told.keys() - _OPTIONS.keys())]
    problems += _wrong_columns(schema)
    if overwrite:
        problems.append("mode: messages cannot be taken back; use append")
    ledger, batch = told.get("ledger"), told.get("batch")
    if stream and batch is not None:
        problems.append("batch: a stream numbers its batches itself; leave it out")
    if not stream and (ledger is None) != (batch is None):
        problems.append("ledger and batch: a batch needs both to be known again, or neither")
    reading = _Reading(told, problems)
    new_ids, fail = reading.yes("newids", usually=False), reading.choice("onfailure", ("fail", "log")) == "fail"
    target = None
    try:
        target = Target(
            rendezvous=reading.many("rendezvous"),
            peers=reading.many("peers"),
            bind=told.get("bind"),
            keys=told.get("keys"),
            receipts=reading.yes("receipts", usually=True),
            timeout=reading.number("timeout", 30.0),
            rate=reading.number("rate", 0.0) if "rate" in told else None,
            in_flight=int(reading.number("inflight", 1000)),
        )
    except ConfigError as wrong:
        problems += wrong.problems
    if problems or target is None:
        raise ConfigError("format framewire", problems)
    columns = tuple(name for name in _COLUMNS if name in schema.names)
    return _Plan(target, columns, new_ids, fail, ledger, batch)


def _wrong_columns(schema: StructType) -> list[str]:
    kinds = {column.name: column.dataType for column in schema.fields}
    missing = [
        f"{names[0]}: no such column; the rows need it" for names in _NEEDED if kinds.keys().isdisjoint(names)
    ]
    frames = kinds.get("body_frames")
    if isinstance(frames, ArrayType) and not isinstance(frames.elementType, BinaryType):
        missing.append(f"body_frames: the column is {frames.simpleString()}; must be array<binary>")
    return missing + [
        f"{name}: the column is {kinds[name].simpleString()}; must be {accepted}"
        for name, (types, accepted) in _COLUMNS.items()
        if name in kinds and not isinstance(kinds[name], types)
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Options as values; what cannot be read is added to the problems."""

    told: Mapping[str, str]
    problems: list[str]

    def many(self, name: str) -> tuple[str, ...]:
        return tuple(filter(None, (part.strip() for part in self.told.get(name, "").split(","))))

    def yes(self, name: str, *, usually: bool) -> bool:
        return self.choice(name, ("true", "false") if usually else ("false", "true")) == "true"

    def choice(self, name: str, accepted: tuple[str, ...]) -> str:
        value = self.told.get(name, accepted[0]).lower()
        if value not in accepted:
            self.problems.append(f"{name}: {value!r}; must be {' or '.join(accepted)}")
        return value

    def number(self, name: str, usual: float) -> float:
        value = self.told.get(name, usual)
        try:
            return float(value)
        except ValueError:
            self.problems.append(f"{name}: {value!r} is not a number")
            return 1.0
