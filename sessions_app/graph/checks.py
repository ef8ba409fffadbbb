"""System checks of what lays the session graphs out."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Info, Warning, register

from sessions_app.graph.program import layout_program


@register()
def check_layout_program(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """A warning where graphs are shown as lists."""
    program = layout_program()
    if program.path is not None:
        return []
    return [
        Warning(
            f"Session graphs are shown as lists: {program.source}.",
            hint="Install Graphviz or graphviz-pure, or set DEXWEB_DOT to a layout program.",
            id="dexweb.graph.W001",
        )
    ]


# Only for `manage.py check --deploy`: every other command would begin with it.
@register(deploy=True)
def name_layout_program(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Info with the program in use."""
    program = layout_program()
    if program.path is None:
        return []
    return [Info(f"Session graphs are laid out by {program.source}.", id="dexweb.graph.I001")]
