"""Markdown of models and people as safe HTML: the one place where their text becomes markup."""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from sessions_app.graph.text import visible

# Deep quotes and lists cost more than they tell; past this depth they stay plain.
MAX_NESTING = 20

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
# Models write these between a number and its unit; in prose they are spaces and no trick.
_FIXED_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))

_parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
_parser.enable(["table", "strikethrough"])
# An image would call its address on every look at the page; its words stay as a link's.
_parser.disable("image")


def to_html(text: str) -> SafeString:
    """``text`` as sanitised HTML: no raw HTML, image or script; links send no referrer."""
    html = _parser.render(_visible_lines(text))
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)


def _visible_lines(text: str) -> str:
    """Invisible and direction-changing characters shown, with the line structure kept."""
    return "\n".join(
        "\t".join(visible(cell) for cell in line.split("\t"))
        for line in text.translate(_FIXED_SPACES).replace("\r\n", "\n").split("\n")
    )
