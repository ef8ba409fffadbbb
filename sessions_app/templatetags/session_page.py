"""Filters that only the page of a session needs."""

from django import template
from django.utils.safestring import SafeString

from sessions_app import markdown as markdown_text
from sessions_app.conversation import tool_words
from sessions_app.json_text import indented

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown as sanitised HTML."""
    return markdown_text.to_html(text or "")


@register.filter
def json_lines(text: str) -> str:
    """JSON text over several lines, every value untouched; other text as it is."""
    return indented(text or "")


@register.filter
def short_count(number: int) -> str:
    """1,234 as it is; from 10,000 on in thousands: 18.4k, 128k."""
    if number < 10_000:
        return f"{number:,}"
    small, unit = (number / 1000, "k") if number < 1_000_000 else (number / 1_000_000, "M")
    return f"{small:,.1f}".removesuffix(".0") + unit


@register.filter
def tool_name(tool: str) -> str:
    """A tool's own name, without its connection's."""
    return tool_words(tool)


@register.filter
def get(mapping: dict[str, str], key: str) -> str:
    return mapping.get(key, "")
