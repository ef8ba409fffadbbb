"""Coming back: nothing missed, a replay, or a reset; never silence."""

from typing import Any

from sessions_app.models import AgentEvent, Session
from tests.sessions_app.stream.conftest import in_database, put, write


async def test_who_missed_nothing_is_told_so_by_the_hello(session: Session, watch: Any) -> None:
    await put("s-1", "one", "two")
    async with watch(after=2) as viewer:
        assert viewer.hello["type"] == "hello"
        assert (viewer.hello["seq"], viewer.hello["retained_from"]) == (2, 1)
        assert viewer.hello["protocol"] == 1
        assert viewer.hello["server_time"].endswith("+00:00")
        assert await viewer.quiet()


async def test_what_was_missed_is_replayed_and_marked_and_what_follows_is_not(
    session: Session, watch: Any
) -> None:
    await put("s-1", "one", "two", "three")
    async with watch(after=1) as viewer:
        assert await viewer.until(3) == [2, 3]
        await put("s-1", "four")
        assert await viewer.until(4) == [2, 3, 4]
    assert [frame["replay"] for frame in viewer.frames] == [True, False]
    assert viewer.events[-1]["payload"] == {"text": "four"}
    assert viewer.events[-1].keys() == {"seq", "type", "step_id", "attempt", "payload", "at"}


async def test_a_long_absence_is_replayed_whole_in_order(session: Session, watch: Any) -> None:
    await put("s-1", *(str(n) for n in range(1400)))
    async with watch() as viewer:
        assert await viewer.until(1400) == list(range(1, 1401))
    assert all(len(frame["events"]) <= 512 for frame in viewer.frames)


async def test_trimmed_numbers_are_named_so_that_a_hole_is_not_taken_for_a_loss(
    session: Session, watch: Any
) -> None:
    await put("s-1", *"abcdefgh")
    await in_database(AgentEvent.objects.filter(seq__in=[1, 2, 4, 7, 8]).delete)()
    async with watch() as viewer:
        await viewer.until(6)
        last = await viewer.next()
    assert [event["seq"] for event in viewer.events] == [3, 5, 6]
    assert [frame["trimmed"] for frame in viewer.frames] == [[[1, 2], [4, 4]]]
    assert (last["events"], last["trimmed"]) == ([], [[7, 8]])


async def test_a_number_older_than_what_is_kept_is_answered_by_a_reset(
    session: Session, watch: Any
) -> None:
    def age() -> None:
        write("s-1", *"abcdef")
        AgentEvent.objects.filter(seq__lt=4).delete()
        Session.objects.filter(pk="s-1").update(retained_from=4)

    await in_database(age)()
    async with watch(after=1) as viewer:
        reset = await viewer.next()
        await put("s-1", "g")
        assert await viewer.until(7) == [7]
    assert (reset["type"], reset["reason"], reset["seq"]) == ("reset", "trimmed", 6)
    assert "/api/v1/sessions/s-1/snapshot" in reset["snapshot"]
    async with watch(after=3) as viewer:
        assert await viewer.until(7) == [4, 5, 6, 7]


async def test_a_number_that_was_never_sent_is_answered_by_a_reset(
    session: Session, watch: Any
) -> None:
    await put("s-1", "one")
    async with watch(after=9) as viewer:
        reset = await viewer.next()
        assert (reset["type"], reset["reason"], reset["seq"]) == ("reset", "ahead", 1)
        await put("s-1", "two")
        assert await viewer.until(2) == [2]
