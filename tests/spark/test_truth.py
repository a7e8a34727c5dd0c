"""The tables of a lake are what really happened, as the made-up cluster tells it."""

import pytest
from tests.spark.lakes import Made, run

from framewire.synth import Options, synthesise

pytestmark = pytest.mark.timeout(600)
ID = 'identity, version, "partition"'


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    directory = tmp_path_factory.mktemp("troubled")
    faults = {"loss": 0.03, "malformed": 0.03, "tampered": 0.05, "duplicates": 0.1}
    synthesise(Options(messages=16_000, nodes=5, segment_rows=1000, seed=7, skew_ms=20, **faults), directory)
    run(spark, directory, directory / "lake")
    return Made(directory, directory / "lake")


def same(made, mine, told):
    assert made.differences(mine, told) == ([], [])
    assert made.ask(f"select count(*) > 0 from ({told})") == [(True,)]  # noqa: S608


def test_every_flow_is_there_with_its_outcome_and_figures(made):
    columns = f"correlation_id, outcome, exception, origin, {ID}, messages, hops, rows, nodes"
    same(made, f"select {columns} from {{flows}}", f"select {columns} from <flows>")  # noqa: S608


def test_every_flow_has_the_path_that_it_took(made):
    path = "[{'node': step.node, 'identity': step.identity} for step in path]"
    same(made, f"select correlation_id, {path} from {{flows}}", "select correlation_id, path from <flows>")  # noqa: S608


def test_every_flow_lists_why_its_messages_died(made):
    reasons = "correlation_id, list_sort(dead_reasons)"
    same(made, f"select {reasons} from {{flows}}", f"select {reasons} from <flows>")  # noqa: S608


def test_flows_tell_the_format_that_their_messages_have_on_the_wire(made):
    columns = "correlation_id, wire_version"
    same(
        made,
        f"select {columns} from {{flows}} where hops > 0",  # noqa: S608
        f"select {columns} from <flows> where hops > 0",  # noqa: S608
    )


def test_flows_begin_and_end_when_they_did_by_one_clock(made):
    off = """select max(abs(l.duration_us - epoch_us(t.ended_at) + epoch_us(t.started_at)))
             from {flows} l join <flows> t using (correlation_id)"""
    assert made.ask(off)[0][0] < 1000


def test_the_slowest_step_is_the_longest_wait_of_the_path(made):
    wrong = """
        with steps as (
            select correlation_id, slowest.us as told, started_at, unnest(path) as step,
                   generate_subscripts(path, 1) as place from {flows}),
        waits as (
            select correlation_id, told, epoch_us(step.at) - epoch_us(coalesce(
                lag(step.at) over (partition by correlation_id order by place), started_at)) as us
            from steps)
        select count(*) from (select any_value(told) as told, max(us) as us from waits group by correlation_id)
        where told != us"""
    assert made.ask(wrong) == [(0,)]


def test_every_send_is_matched_with_its_receive(made):
    columns = f"correlation_id, from_node, to_node, {ID}, sent_at, received_at"
    same(made, f"select {columns} from {{hops}}", f"select {columns} from <hops>")  # noqa: S608


def test_clocks_are_known_within_half_a_millisecond(made):
    pairs, off = made.ask("""
        select count(distinct (from_node, to_node)), max(abs(skew_us - (b.offset_us - a.offset_us))) from {clocks}
        join <skew> a on a.node = from_node join <skew> b on b.node = to_node""")[0]
    assert pairs == 20
    assert off < 500


def test_latencies_are_the_true_ones_within_half_a_millisecond(made):
    off = """select max(abs(l.latency_us - t.latency_us)) from {hops} l
             join <hops> t using (correlation_id, from_node, to_node, identity, sent_at)"""
    assert made.ask(off)[0][0] < 500


def test_every_loss_is_there_and_nothing_else_is_one(made):
    columns = f'correlation_id, kind, from_node, to_node, {ID}, "at"'
    same(made, f"select {columns} from {{losses}}", f"select {columns} from <losses>")  # noqa: S608


def test_edges_count_what_was_sent_received_lost_dead_and_failed(made):
    columns = f"from_node, to_node, {ID}, hour, sent, received, lost, dead, failed"
    same(made, f"select {columns} from {{edges}}", f"select {columns} from <edges>")  # noqa: S608


def test_the_percentiles_of_edges_are_the_true_ones_within_half_a_millisecond(made):
    off = f"""select max(abs(l.p50_us - t.p50_us)), max(abs(l.p95_us - t.p95_us)), max(abs(l.p99_us - t.p99_us))
              from {{edges}} l join <edges> t using (from_node, to_node, {ID}, hour)"""  # noqa: S608
    assert max(made.ask(off)[0]) < 500


def test_handlers_count_what_actors_got_and_what_failed(made):
    mine = f"select node, {ID}, sum(delivered)::bigint, sum(failed)::bigint from {{handlers}} group by all"  # noqa: S608
    same(made, mine, f"select node, {ID}, delivered, failed from <handlers>")  # noqa: S608


def test_every_tampered_signature_is_found_and_no_other(made):
    columns = f'correlation_id, node, "at", {ID}, domain'
    mine = f"select {columns} from {{messages}} where signature_state = 'invalid'"  # noqa: S608
    same(made, mine, f"select {columns} from <tampered>")  # noqa: S608


def test_what_cannot_be_decoded_is_in_quarantine_with_its_reason(made):
    columns = 'node, "at", direction, error'
    same(made, f"select {columns} from {{quarantine}}", f"select {columns} from <malformed>")  # noqa: S608


def test_dead_letters_keep_their_reasons(made):
    columns = f'correlation_id, node, "at", reason, {ID}'
    mine = f"select {columns} from {{messages}} where direction = 'dead'"  # noqa: S608
    same(made, mine, f"select {columns} from <dead>")  # noqa: S608


def test_audit_counts_signatures_by_domain_node_and_hour(made):
    state = "case signature_state when 'valid' then 'signed' when 'invalid' then 'tampered' else 'none' end"
    mine = f"select node, hour, domain, {state}, sum(rows)::bigint from {{audit}} group by all"  # noqa: S608
    same(made, mine, "select node, hour, domain, signature, rows from <audit>")


def test_adoption_counts_formats_by_node_and_day(made):
    mine = "select node, day, wire_version, sum(rows)::bigint from {adoption} group by all"
    same(made, mine, "select node, day::date, wire_version, rows from <adoption>")


def test_duckdb_finds_the_same_losses_in_the_messages(made):
    found = """
        with ways as (
            select *, if(direction = 'sent', node, peer) as a, if(direction = 'sent', peer, node) as b
            from {messages} where direction in ('sent', 'received')),
        numbered as (
            select *, row_number() over (partition by direction, a, b, digest order by "at") as nth
            from ways)
        select correlation_id, a, b, identity, "at" from (from numbered where direction = 'sent') s
        anti join (from numbered where direction = 'received') r using (a, b, digest, nth)"""
    told = """select correlation_id, from_node, to_node, identity, "at" from {losses} where kind = 'not_received'"""
    same(made, told, found)


def test_duckdb_counts_the_same_on_every_edge_of_the_messages(made):
    found = f"""select node, peer, {ID}, date_trunc('hour', "at"), count(*) from {{messages}}
                where direction = 'sent' group by all"""  # noqa: S608
    same(made, f"select from_node, to_node, {ID}, hour, sent from {{edges}}", found)  # noqa: S608


def test_duckdb_finds_the_same_outcomes_in_the_messages(made):
    found = """
        with rows as (
            select *, direction = 'delivered' and hex(peer) like '00%' as to_hub,
                identity = 'KINO.EXCEPTION'::blob as raised from {messages} where flow is not null)
        select correlation_id, case
                when bool_or(to_hub and answer and not raised) then 'completed'
                when bool_or(direction = 'dead' and reason in ('expired', 'late_reply')) then 'expired'
                when bool_or(to_hub and raised) then 'failed'
                when bool_or(direction = 'dead') then 'dead' else 'open' end,
            count(*), count(distinct node), count(*) filter (direction = 'sent')
        from rows group by correlation_id"""
    same(made, "select correlation_id, outcome, rows, nodes, hops from {flows}", found)


def test_every_table_has_the_columns_that_are_declared(made, spark):
    from framewire.spark.lake import Lake  # noqa: PLC0415
    from framewire.spark.periods import Periods  # noqa: PLC0415
    from framewire.spark.tables import TABLES  # noqa: PLC0415

    lake = Lake(spark, str(made.lake), Periods())
    made_up = {name: table for name, table in TABLES.items() if name != "traces"}  # see test_traced_flows.py
    for name, table in made_up.items():
        there = spark.read.option("basePath", f"{lake.root}/{name}").parquet(f"{lake.root}/{name}")
        plain = spark.createDataFrame([], table.schema).schema
        assert [field.name for field in there.schema] == [field.name for field in plain], name
        kinds = {field.name: field.dataType.simpleString() for field in plain if field.name != "batch"}
        found = {field.name: field.dataType.simpleString() for field in there.schema if field.name != "batch"}
        assert found == kinds, name
