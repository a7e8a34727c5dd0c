"""Flows as OTLP traces: ids, parents, times, status, and the form that readers of OTLP insist on."""

import base64
import copy
import json
import re

import pytest
from click.testing import CliRunner
from tests.spark.lake_rows import after, at_node, flow_id, make_lake, message_id, way
from tests.spark.storied import FLOW, make_storied_lake

from framewire.cli import main
from framewire.spark.traces import trace_id

START = 1_772_352_000_000_000_000
"""2026-03-01T08:00Z in nanoseconds."""
MS = 1_000_000


@pytest.fixture
def lake(tmp_path):
    return make_storied_lake(tmp_path / "lake")


def export(lake, *arguments):
    done = CliRunner().invoke(main, ["pipeline", "export-traces", "--lake", str(lake), *arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def spans(requests):
    """Every span by its name, with the service that it belongs to."""
    found = {}
    for request in requests:
        for resource in request["resourceSpans"]:
            service = attributes(resource["resource"])["service.name"]
            for span in resource["scopeSpans"][0]["spans"]:
                found[span["name"]] = span | {"service": service}
    return found


def attributes(holder):
    return {each["key"]: next(iter(each["value"].values())) for each in holder["attributes"]}


def times(span):
    return tuple((int(span[name]) - START) / MS for name in ("startTimeUnixNano", "endTimeUnixNano"))


def test_a_flow_is_a_trace_with_its_own_id(lake):
    found = spans(export(lake))
    assert {span["traceId"] for span in found.values()} == {trace_id(FLOW.encode())}
    assert export(lake) == export(lake)


def test_spans_are_below_what_they_came_of(lake):
    found = spans(export(lake))
    names = {span["spanId"]: name for name, span in found.items()}
    assert {name: names.get(span.get("parentSpanId")) for name, span in found.items()} == {
        "stock.reserve v1": None,
        "send stock.reserve v1": "stock.reserve v1",
        "process stock.reserve v1": "send stock.reserve v1",
        "send mail.send v1": "process stock.reserve v1",
        "process audit.note v1": "process stock.reserve v1",
        "send stock.reserved v1": "process stock.reserve v1",
        "receive stock.reserved v1": "send stock.reserved v1",
    }


def test_spans_belong_to_the_node_that_did_the_work(lake):
    services = {name: span["service"] for name, span in spans(export(lake)).items()}
    assert services["send stock.reserve v1"] == "shop"
    assert services["process stock.reserve v1"] == "stock"


def test_times_are_nanoseconds_by_one_clock(lake):
    found = spans(export(lake))
    assert times(found["send stock.reserve v1"]) == (0, 5)
    assert times(found["process stock.reserve v1"]) == (5, 16)
    assert times(found["send stock.reserved v1"]) == (16, 21)
    assert times(found["stock.reserve v1"]) == (0, 21)


def test_what_went_wrong_is_an_error(lake):
    found = spans(export(lake))
    assert found["send mail.send v1"]["status"] == {"code": 2, "message": "never received"}
    assert found["process audit.note v1"]["status"]["message"] == "dead letter: no_route"
    assert attributes(found["process audit.note v1"])["error.type"] == "no_route"
    assert "status" not in found["process stock.reserve v1"]


def test_a_failed_flow_tells_its_exception(tmp_path):
    lake = make_storied_lake(tmp_path / "l", outcome="failed", exception="OutOfStock", exception_text="no tea")
    root = spans(export(lake))["stock.reserve v1"]
    assert root["status"] == {"code": 2, "message": "no tea"}
    (event,) = root["events"]
    assert event["name"] == "exception"
    assert attributes(event) == {"exception.type": "OutOfStock", "exception.message": "no tea"}


def test_attributes_keep_to_the_messaging_conventions(lake):
    told = attributes(spans(export(lake))["process stock.reserve v1"])
    assert told["messaging.system"] == "framewire"
    assert told["messaging.message.conversation_id"] == FLOW
    assert told["messaging.destination.name"] == "stock.reserve"
    assert told["messaging.operation.type"] == "process"


def test_what_was_passed_on_is_below_the_way_it_came(lake, tmp_path):
    flow, work = flow_id("passed"), message_id(b"job.do")
    hops = [("a", "b", 0, "sent"), ("b", "c", 6, "delivered")]
    lake = make_lake(
        tmp_path / "passed",
        flows=[{**flow, **work, "origin": b"a", "origin_name": "a", "outcome": "open", "started_at": after(0)}],
        hops=[
            {**flow, **work, **way(one, two), "sent_at": after(at), "received_at": after(at + 2), "fate": fate}
            for one, two, at, fate in hops
        ],
        handlings=[{**flow, **work, **at_node("c"), "came_from": b"b", "received_at": after(8), "at": after(9)}],
    )
    listed = [span for each in export(lake)[0]["resourceSpans"] for span in each["scopeSpans"][0]["spans"]]
    by_start = sorted(listed, key=lambda span: (int(span["startTimeUnixNano"]), -int(span["endTimeUnixNano"])))
    root, first, second, work = by_start
    assert [span.get("parentSpanId") for span in (first, second, work)] == [
        root["spanId"],
        first["spanId"],
        second["spanId"],
    ]


def test_flows_are_chosen_by_time_and_condition(lake):
    make_storied_lake(lake, flow="another", outcome="failed", started_at=after(60_000))
    both = export(lake)
    assert len(both) == 2
    chosen = export(lake, "--where", "outcome = 'failed'")
    assert [spans([one])["stock.reserve v1"]["traceId"] for one in chosen] == [trace_id(b"another")]
    assert export(lake, "--since", "2026-03-01T08:01") == chosen
    assert export(lake, "--until", "2026-03-01T08:01") == [one for one in both if one not in chosen]


def test_a_long_flow_is_written_in_part_and_says_so(lake):
    found = spans(export(lake, "--most", "1"))
    assert attributes(found["stock.reserve v1"])["framewire.left_out"] == "5"
    assert "send stock.reserved v1" not in found


def test_a_wrong_condition_is_told_in_a_paragraph(lake):
    done = CliRunner().invoke(main, ["pipeline", "export-traces", "--lake", str(lake), "--where", "nonsense = 1"])
    assert done.exit_code == 2
    assert "nonsense" in done.output
    assert "Traceback" not in done.output


HEX = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
KNOWN = {
    "resourceSpans": {"resource", "scopeSpans", "schemaUrl"},
    "scopeSpans": {"scope", "spans", "schemaUrl"},
    "spans": {
        *("traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
        *("attributes", "events", "status", "links"),
    },
    "events": {"timeUnixNano", "name", "attributes"},
    "attributes": {"key", "value"},
}


def test_every_line_is_in_the_form_that_otlp_asks_for(tmp_path):
    lake = make_storied_lake(tmp_path / "l", outcome="failed", exception="OutOfStock", exception_text="no tea")

    def check(name, holder):
        if isinstance(holder, list):
            for each in holder:
                assert set(each) <= KNOWN[name], name
                check(name, each)
        elif isinstance(holder, dict):
            for key, value in holder.items():
                if key in HEX:
                    assert re.fullmatch(rf"[0-9a-f]{{{HEX[key]}}}", value)
                    assert set(value) != {"0"}
                if key.endswith("UnixNano") or key == "intValue":
                    assert re.fullmatch(r"\d+", value), "64-bit numbers are text"
                if key in ("kind", "code"):
                    assert isinstance(value, int), "enums are numbers"
                check(key, value)

    for request in export(lake):
        assert set(request) == {"resourceSpans"}
        check("", request)


def test_the_official_schema_takes_every_line(tmp_path):
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    lake = make_storied_lake(tmp_path / "l", outcome="failed", exception="OutOfStock", exception_text="no tea")

    def as_protobuf_writes_it(holder):
        # OTLP's JSON is protobuf's but for ids, which are hex there and base64 here.
        if isinstance(holder, dict):
            return {
                key: base64.b64encode(bytes.fromhex(value)).decode() if key in HEX else as_protobuf_writes_it(value)
                for key, value in holder.items()
            }
        return [as_protobuf_writes_it(each) for each in holder] if isinstance(holder, list) else holder

    for line in export(lake):
        request = json_format.ParseDict(
            as_protobuf_writes_it(copy.deepcopy(line)), service.ExportTraceServiceRequest()
        )
        (first, *_) = request.resource_spans
        assert len(first.scope_spans[0].spans[0].trace_id) == 16
