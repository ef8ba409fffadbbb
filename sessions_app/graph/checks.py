"""A system check that says what lays the session graphs out."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Info, Warning, register

from sessions_app.graph.program import layout_program


@register()
def check_layout_program(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Info with the program in use, or a warning that graphs are shown as lists."""
    program = layout_program()
    if program.path is not None:
        return [Info(f"Session graphs are laid out by {program.source}.", id="dexweb.graph.I001")]
    return [
        Warning(
            f"Session graphs are shown as lists: {program.source}.",
            hint="Install Graphviz or graphviz-pure, or set DEXWEB_DOT to a layout program.",
            id="dexweb.graph.W001",
        )
    ]
