"""Events: no holes in their numbers, none forgotten before a driver has it, and a bound."""

from hypothesis import given
from hypothesis import strategies as st

from accelhw.chassis.journal import Journal
from accelhw.model.event import Severity


def journal(kept_max=1000):
    return Journal(lambda: 0, kept_max)


def record(book, count):
    return [book.record("LINK_UP", Severity.INFO, "card0/oe0", "up") for _ in range(count)]


@given(
    st.lists(
        st.one_of(st.tuples(st.just("record"), st.integers(1, 5)),
                  st.tuples(st.just("acknowledge"), st.integers(0, 40))),
        max_size=20,
    ),
    st.integers(0, 40),
)  # fmt: skip
def test_what_is_not_acknowledged_is_kept_whole_and_in_order(steps, cursor):
    book = journal()
    acknowledged = 0
    for what, number in steps:
        if what == "record":
            record(book, number)
        else:
            number = min(number, book.newest)
            book.acknowledge(number)
            acknowledged = max(acknowledged, number)
    kept = [event.sequence for event in book.after(cursor)]
    assert kept == list(range(max(acknowledged, cursor) + 1, book.newest + 1))
    assert book.oldest_kept == acknowledged + 1
    assert book.tell_loss() is None


def test_more_than_can_be_kept_is_told_as_a_loss_once():
    book = journal(kept_max=10)
    record(book, 25)
    assert book.oldest_kept == 16
    loss = book.tell_loss()
    assert loss is not None
    assert (loss.kind, loss.sequence, loss.detail) == ("EVENTS_LOST", 26, {"lost": 15})
    assert len(list(book.after(0))) == 10
    # Telling it cost one more, which is told the next time.
    assert book.tell_loss().detail == {"lost": 1}


def test_an_acknowledgement_of_the_future_loses_nothing_to_come():
    book = journal()
    record(book, 3)
    book.acknowledge(99)
    (new,) = record(book, 1)
    assert [event.sequence for event in book.after(3)] == [new.sequence] == [4]
