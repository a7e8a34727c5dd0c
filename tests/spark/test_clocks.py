"""How far clocks are apart, worked out from the quickest messages of each way."""

from framewire.spark.clocks import Way, clock_skews, clocks_ahead


def way(sender, receiver, least, hops=10, context=1):
    return Way(context, sender, receiver, hops, least)


def both(one, other, ahead, latency=1500, hops=10):
    """Messages both ways between two nodes, of which the other's clock is ahead."""
    return [way(one, other, latency + ahead, hops), way(other, one, latency - ahead, hops)]


def test_half_the_difference_of_both_ways_is_the_skew():
    skews = {(each.from_node, each.to_node): skew for each, skew in clock_skews(both(b"a", b"b", 20_000))}
    assert skews == {(b"a", b"b"): 20_000, (b"b", b"a"): -20_000}


def test_one_way_alone_tells_nothing():
    found = list(clock_skews([way(b"a", b"b", 5000)]))
    assert [skew for _, skew in found] == [None]
    assert clocks_ahead([way(b"a", b"b", 5000)]) == {}


def test_buckets_are_kept_apart():
    found = [way(b"a", b"b", 100, context=1), way(b"b", b"a", 100, context=2)]
    assert [skew for _, skew in clock_skews(found)] == [None, None]


def test_clocks_are_put_right_over_nodes_between():
    ways = [*both(b"a", b"b", 1000, hops=100), *both(b"b", b"c", 200), *both(b"c", b"d", 30), *both(b"d", b"e", 4)]
    ahead = clocks_ahead(ways)
    off = ahead[1, b"a"]
    assert {node: us - off for (_, node), us in ahead.items()} == {
        b"a": 0,
        b"b": 1000,
        b"c": 1200,
        b"d": 1230,
        b"e": 1234,
    }


def test_the_busiest_node_is_the_reference():
    ahead = clocks_ahead([*both(b"hub", b"x", 10, hops=50), *both(b"x", b"y", 20, hops=40)])
    assert ahead == {(1, b"hub"): -10, (1, b"x"): 0, (1, b"y"): 20}


def test_a_slow_message_is_not_believed_where_quick_ones_over_another_node_say_otherwise():
    quick = [*both(b"a", b"b", 0, latency=100), *both(b"b", b"c", 0, latency=100)]
    skews = {(w.from_node, w.to_node): skew for w, skew in clock_skews([*quick, way(b"a", b"c", 9000, hops=1)])}
    assert skews[b"a", b"c"] == 0


def test_no_latency_is_negative():
    ways = [
        *both(b"a", b"b", 700, latency=90),
        way(b"b", b"c", 5000),
        way(b"c", b"a", -4000),
        way(b"a", b"c", 9000),
        *both(b"c", b"d", -100, latency=20),
    ]
    assert all(each.least_us - skew >= 0 for each, skew in clock_skews(ways))


def test_ways_around_and_the_direct_way_tell_the_same():
    ways = [*both(b"a", b"b", 500), *both(b"b", b"c", 70, latency=90), way(b"a", b"c", 3000), way(b"c", b"a", 40)]
    skews = {(w.from_node, w.to_node): skew for w, skew in clock_skews(ways)}
    assert skews[b"a", b"b"] + skews[b"b", b"c"] == skews[b"a", b"c"] == -skews[b"c", b"a"]


def test_groups_of_nodes_that_do_not_talk_to_each_other_are_known_each_by_itself():
    ways = [*both(b"a", b"b", 100, hops=50), *both(b"c", b"d", 7)]
    skews = {(w.from_node, w.to_node): skew for w, skew in clock_skews(ways)}
    assert (skews[b"a", b"b"], skews[b"c", b"d"]) == (100, 7)
    assert {node for _, node in clocks_ahead(ways)} == {b"a", b"b"}
