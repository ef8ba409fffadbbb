"""Pages of events after a number, as REST gives them and the socket sends them."""

import pytest

from dexweb.engine.errors import SessionNotFound
from sessions_app.models import AgentEvent, Session
from sessions_app.stream.feed import KEPT_BYTES, KEPT_EVENTS, Feed, Reader
from sessions_app.stream.read import EventsGone, Item, events_after
from tests.sessions_app.stream.conftest import write


def test_pages_follow_each_other_without_a_hole(session: Session) -> None:
    write("s-1", *(str(n) for n in range(7)))
    first = events_after("s-1", 0, limit=4)
    second = events_after("s-1", first.events[-1]["seq"], limit=4)
    assert [event["seq"] for event in first.events + second.events] == [1, 2, 3, 4, 5, 6, 7]
    assert (first.more, second.more) == (True, False)
    assert (second.last_seq, second.retained_from, second.trimmed) == (7, 1, [])


def test_a_page_is_cut_by_bytes_but_never_empty(session: Session) -> None:
    write("s-1", *["x" * 1000] * 5)
    assert len(events_after("s-1", 0, max_bytes=2500).events) == 2
    assert len(events_after("s-1", 0, max_bytes=10).events) == 1


def test_trimmed_numbers_are_ranges_at_the_start_the_middle_and_the_end(session: Session) -> None:
    write("s-1", *"abcdefgh")
    AgentEvent.objects.filter(seq__in=[1, 4, 5]).delete()
    assert events_after("s-1", 0).trimmed == [[1, 1], [4, 5]]
    assert events_after("s-1", 2, limit=1).trimmed == []
    AgentEvent.objects.filter(seq__in=[7, 8]).delete()
    page = events_after("s-1", 6)
    assert (page.events, page.trimmed, page.more) == ([], [[7, 8]], False)


def test_what_is_no_longer_kept_is_gone_with_the_way_on(session: Session) -> None:
    Session.objects.update(last_seq=9, retained_from=5)
    for after, reason in ((3, "trimmed"), (10, "ahead")):
        with pytest.raises(EventsGone) as gone:
            events_after("s-1", after)
        details = gone.value.details()
        assert (gone.value.status, details["reason"], details["last_seq"]) == (410, reason, 9)
        assert "snapshot" in details["snapshot"]
    assert events_after("s-1", 4).trimmed == [[5, 9]]


def test_an_unknown_session_is_not_found(transactional_db: None) -> None:
    with pytest.raises(SessionNotFound):
        events_after("nowhere", 0)


def test_any_text_arrives_as_it_is(session: Session) -> None:
    text = 'quotes " and \\, \u202eright to left, \u2028 and \U0001d4b3'
    write("s-1", text)
    assert events_after("s-1", 0).events[0]["payload"] == {"text": text}


@pytest.mark.parametrize("text", ["x", "x" * 50_000])
def test_a_feed_stays_within_its_bounds_however_slow_its_reader(text: str) -> None:
    feed = Feed(0, drained=lambda: None)
    slow, quick = Reader(feed, 0, lambda: None), Reader(feed, 0, lambda: None)
    feed.readers |= {slow, quick}
    for batch in range(300):
        feed.add([Item(batch * 5 + n, text) for n in range(1, 6)])
        taken = quick.take(512, 10**9, at_least=1)
        assert taken
        quick.cursor = taken[-1].seq
    kept = feed.after(feed.floor)
    assert kept is not None
    assert len(kept) <= KEPT_EVENTS
    assert sum(item.size for item in kept) <= KEPT_BYTES
    assert slow.take(512, 10**9, at_least=1) is None, "it reads from the database instead"


def test_a_feed_whose_readers_have_everything_keeps_one_batch_at_most() -> None:
    feed = Feed(0, drained=lambda: None)
    reader = Reader(feed, 0, lambda: None)
    feed.readers.add(reader)
    for seq in range(1, 100):
        feed.add([Item(seq, "x")])
        assert reader.take(512, 1000, at_least=1) == [Item(seq, "x")]
        reader.cursor = seq
    assert feed.floor >= 98
