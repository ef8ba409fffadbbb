import subprocess
import sys
from decimal import Decimal

import pytest

from sessions_app.tools.shop.ledger import Ledger, ShopError
from sessions_app.tools.shop.orders import SEED_ORDERS, find_policies
from sessions_app.tools.shop.server import parse_delays


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "deep" / "shop.sqlite3")


def test_a_refund_is_begun_before_and_done_after_the_work(ledger, tmp_path):
    number = ledger.begin_refund("A-1042", Decimal("184.90"), "EUR", "late", "call-1")
    assert ledger.order("A-1042")[1] == Decimal("184.90")
    ledger.finish_refund(number)


@pytest.mark.parametrize(
    ("order", "amount", "currency", "words"),
    [
        ("A-0000", "1", "EUR", "no order A-0000"),
        ("A-1042", "184.91", "EUR", "At most 184.90 EUR"),
        ("A-1042", "1", "USD", "paid in EUR"),
        ("A-1042", "0", "EUR", "more than zero"),
        ("A-1042", "-5", "EUR", "more than zero"),
        ("A-1042", "NaN", "EUR", "more than zero"),
    ],
)
def test_a_refund_that_may_not_be_is_refused_in_words(ledger, order, amount, currency, words):
    with pytest.raises(ShopError, match=words):
        ledger.begin_refund(order, Decimal(amount), currency, "late", "c")


def test_refunds_together_never_exceed_what_was_paid(ledger):
    ledger.begin_refund("A-0977", Decimal("40"), "EUR", "late", "one")
    with pytest.raises(ShopError, match=r"At most 22\.00 EUR"):
        ledger.begin_refund("A-0977", Decimal("40"), "EUR", "late", "two")


def test_several_processes_may_open_the_same_new_file(tmp_path):
    code = (
        "import sys; from sessions_app.tools.shop.ledger import Ledger\n"
        "ledger = Ledger(sys.argv[1])\n"
        "for n in range(20): ledger.note_lookup('A-1042', sys.argv[2] + str(n))"
    )
    path = tmp_path / "shop.sqlite3"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(number)])
        for number in range(4)
    ]
    assert [process.wait(20) for process in running] == [0] * 4
    import sqlite3

    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM lookups").fetchone() == (80,)
    assert connection.execute("SELECT count(*) FROM orders").fetchone() == (len(SEED_ORDERS),)
    connection.close()


def test_a_search_finds_the_rule_it_asks_for():
    assert find_policies("late delivery refund")[0]["id"] == "4.2"
    assert len(find_policies("zzz")) > 1


def test_delays_are_read_by_tool():
    assert parse_delays("lookup_order=2s, issue_refund=250ms") == {
        "lookup_order": 2,
        "issue_refund": 0.25,
    }
    assert parse_delays("") == {}
