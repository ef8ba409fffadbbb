"""What the shop holds at its first start, and what it says about an order.

Days are counted from today, both at seeding and at look-up, so that "arrived 3 days ago" stays true
however old the database gets.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal


@dataclass(frozen=True)
class Order:
    """One order. Promised and delivered are days from today, negative in the past; delivered is
    None if not yet.
    """

    order_id: str
    customer: str
    email: str
    item: str
    paid: str
    currency: str
    status: str
    promised_in_days: int
    delivered_in_days: int | None


SEED_ORDERS = (
    Order(
        "A-1042",
        "Mira Okafor",
        "mira.okafor@example.com",
        "Walnut desk lamp",
        "184.90",
        "EUR",
        "delivered",
        -12,
        -3,
    ),
    Order(
        "A-0977",
        "Mira Okafor",
        "mira.okafor@example.com",
        "Linen curtain, pair",
        "62.00",
        "EUR",
        "delivered",
        -8,
        -8,
    ),
    Order(
        "A-0831",
        "Jonas Brandt",
        "jonas.brandt@example.com",
        "Oak side table",
        "349.00",
        "EUR",
        "delivered",
        -45,
        -30,
    ),
    Order(
        "A-1108",
        "Ana Sousa",
        "ana.sousa@example.com",
        "Wool throw",
        "79.50",
        "EUR",
        "in transit",
        -2,
        None,
    ),
    Order(
        "A-1113",
        "Priya Raman",
        "priya.raman@example.com",
        "Ceramic planter",
        "41.25",
        "USD",
        "delivered",
        -5,
        -4,
    ),
    Order(
        "A-1120",
        "Lucas Weber",
        "lucas.weber@example.com",
        "Reading chair",
        "1290.00",
        "EUR",
        "delivered",
        -15,
        -6,
    ),
    Order(
        "A-1127",
        "Hanna Lind",
        "hanna.lind@example.com",
        "Bookshelf",
        "220.00",
        "EUR",
        "in transit",
        3,
        None,
    ),
    Order(
        "A-1131",
        "Tom Adeyemi",
        "tom.adeyemi@example.com",
        "Desk mat",
        "35.00",
        "GBP",
        "canceled",
        -4,
        None,
    ),
)

POLICIES = (
    {
        "id": "4.2",
        "title": "Late delivery",
        "text": "An order that arrived later than promised is refunded in full up to 14 days"
        " after it arrived.",
        "window_days": 14,
    },
    {
        "id": "4.3",
        "title": "On time",
        "text": "An order that arrived by the promised day is not refunded for its delivery; it can"
        " be sent back unused within 30 days.",
        "window_days": 30,
    },
    {
        "id": "4.5",
        "title": "Not yet arrived",
        "text": "An order still on its way is not refunded. After 21 days of delay it counts as"
        " lost.",
        "window_days": 21,
    },
    {
        "id": "5.1",
        "title": "Amounts",
        "text": "A refund is never more than was paid and goes back in the currency of the"
        " payment.",
        "window_days": None,
    },
)


def describe(order: Order, refunded: Decimal) -> dict[str, object]:
    """The order as `lookup_order` answers it: dates as ISO days (UTC), amounts as numbers with two
    decimals.
    """
    today = datetime.now(UTC).date()
    delivered = order.delivered_in_days
    return {
        **{name: value for name, value in asdict(order).items() if not name.endswith("_in_days")},
        "paid": float(order.paid),
        "refunded": float(refunded),
        "promised_on": _day(today, order.promised_in_days),
        "delivered_on": _day(today, delivered) if delivered is not None else None,
        "days_late": max(0, (delivered if delivered is not None else 0) - order.promised_in_days),
        "days_since_delivery": -delivered if delivered is not None else None,
    }


def find_policies(query: str) -> list[dict[str, object]]:
    """The rules that share a word of four letters or more with the query, best first; all of them
    where none does.
    """
    words = {word for word in query.lower().split() if len(word) > 3}
    scored = [
        (sum(word in f"{policy['title']} {policy['text']}".lower() for word in words), policy)
        for policy in POLICIES
    ]
    found = [policy for score, policy in sorted(scored, key=lambda pair: -pair[0]) if score]
    return [dict(policy) for policy in found or POLICIES]


def _day(today: date, offset: int) -> str:
    return (today + timedelta(days=offset)).isoformat()
