"""The shop's SQLite file: orders, and a row for everything the tools ever did.

Several processes may serve the same file, so every write is one short `BEGIN IMMEDIATE`
transaction. A refund's row is written as `begun` before the work and marked `done` after it: a row
that stays `begun` is an execution that was cut off. There is a row per execution, so tests can
count them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from sessions_app.tools.shop.orders import SEED_ORDERS, Order

_SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    order_id TEXT PRIMARY KEY, customer TEXT NOT NULL, email TEXT NOT NULL, item TEXT NOT NULL,
    paid TEXT NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL,
    promised_in_days INTEGER NOT NULL, delivered_in_days INTEGER);
CREATE TABLE IF NOT EXISTS refunds (
    id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, order_id TEXT NOT NULL, amount TEXT NOT NULL,
    currency TEXT NOT NULL, reason TEXT NOT NULL, status TEXT NOT NULL,
    begun_at TEXT NOT NULL, done_at TEXT);
CREATE TABLE IF NOT EXISTS emails (
    id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, "to" TEXT NOT NULL, subject TEXT NOT NULL,
    body TEXT NOT NULL, at TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS emails_once_per_call ON emails (call_id) WHERE call_id <> '';
CREATE TABLE IF NOT EXISTS lookups (
    id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, order_id TEXT NOT NULL, at TEXT NOT NULL);
"""


class ShopError(Exception):
    """The shop refuses; the message is for the model."""


class Ledger:
    """The shop's file; created and filled at its first use. Every method is one transaction."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with self._write() as connection:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.executemany(
                "INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                map(astuple, SEED_ORDERS),
            )

    def note_lookup(self, order_id: str, call_id: str) -> None:
        """Counts a look-up, of an unknown order too."""
        with self._write() as connection:
            connection.execute(
                "INSERT INTO lookups (call_id, order_id, at) VALUES (?, ?, ?)",
                (call_id, order_id, _now()),
            )

    def order(self, order_id: str) -> tuple[Order, Decimal]:
        """The order and how much of it was refunded. Raises `ShopError` for an unknown one."""
        with closing(self._connect()) as connection:
            return self._order(connection, order_id), self._refunded(connection, order_id)

    def begin_refund(
        self, order_id: str, amount: Decimal, currency: str, reason: str, call_id: str
    ) -> int:
        """Writes the refund's row as begun and gives its number. Raises `ShopError` where it may
        not be.

        What is begun counts as refunded, so two at once cannot together exceed what was paid.
        """
        with self._write() as connection:
            order = self._order(connection, order_id)
            if currency != order.currency:
                raise ShopError(
                    f"Order {order_id} was paid in {order.currency}, not in {currency}."
                )
            if not amount.is_finite() or amount <= 0:
                raise ShopError("The amount must be more than zero.")
            left = Decimal(order.paid) - self._refunded(connection, order_id)
            if amount > left:
                raise ShopError(
                    f"At most {left:.2f} {currency} of order {order_id} can still be refunded."
                )
            cursor = connection.execute(
                "INSERT INTO refunds"
                " (call_id, order_id, amount, currency, reason, status, begun_at)"
                " VALUES (?, ?, ?, ?, ?, 'begun', ?)",
                (call_id, order_id, f"{amount:.2f}", currency, reason, _now()),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def finish_refund(self, number: int) -> None:
        """Marks a begun refund as done."""
        with self._write() as connection:
            connection.execute(
                "UPDATE refunds SET status = 'done', done_at = ? WHERE id = ?", (_now(), number)
            )

    def send_email(self, to: str, subject: str, body: str, call_id: str) -> tuple[int, bool]:
        """Puts an e-mail in the outbox; gives its number and whether this call id had already sent
        it.
        """
        with self._write() as connection:
            row = connection.execute(
                "SELECT id FROM emails WHERE call_id = ? AND call_id <> ''", (call_id,)
            ).fetchone()
            if row is not None:
                return row[0], True
            cursor = connection.execute(
                'INSERT INTO emails (call_id, "to", subject, body, at) VALUES (?, ?, ?, ?, ?)',
                (call_id, to, subject, body, _now()),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid, False

    def _order(self, connection: sqlite3.Connection, order_id: str) -> Order:
        row = connection.execute(
            "SELECT * FROM orders WHERE order_id = ?", (order_id.strip().upper(),)
        ).fetchone()
        if row is None:
            raise ShopError(f"There is no order {order_id}.")
        return Order(*row)

    def _refunded(self, connection: sqlite3.Connection, order_id: str) -> Decimal:
        rows = connection.execute(
            "SELECT amount FROM refunds WHERE order_id = ?", (order_id.strip().upper(),)
        )
        return sum((Decimal(amount) for (amount,) in rows), Decimal(0))

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=10, isolation_level=None)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
