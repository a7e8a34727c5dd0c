"""What people ask of a lake, answered as plain values: summaries, topologies, courses, flows and what went wrong.

>>> from framewire.history import History
>>> with History("lake/") as history:  # doctest: +SKIP
...     history.summary().flows.failed

The report and the dashboard are made from this. DuckDB answers, so neither Spark nor Java is needed.
"""

from framewire.history.accounts import Adopted, Audited, AuditGroup, FormatDay, Handler
from framewire.history.courses import LatencyCourse, LatencyPoint, OutcomeCourse, OutcomePoint
from framewire.history.flows import ORDERS, WRONG, Flow, FlowPage, FlowSearch, SlowStep
from framewire.history.history import History
from framewire.history.mishaps import DeadGroup, DeadLetter, Loss, LossGroup, Page, Quarantined, QuarantineGroup
from framewire.history.recorded import Recorded, Told
from framewire.history.summary import OUTCOMES, Outcomes, Summary
from framewire.history.topology import Edge, Node, Topology, Traffic
from framewire.history.windows import ALWAYS, Window

__all__ = [
    "ALWAYS",
    "ORDERS",
    "OUTCOMES",
    "WRONG",
    "Adopted",
    "AuditGroup",
    "Audited",
    "DeadGroup",
    "DeadLetter",
    "Edge",
    "Flow",
    "FlowPage",
    "FlowSearch",
    "FormatDay",
    "Handler",
    "History",
    "LatencyCourse",
    "LatencyPoint",
    "Loss",
    "LossGroup",
    "Node",
    "OutcomeCourse",
    "OutcomePoint",
    "Outcomes",
    "Page",
    "QuarantineGroup",
    "Quarantined",
    "Recorded",
    "SlowStep",
    "Summary",
    "Told",
    "Topology",
    "Traffic",
    "Window",
]
