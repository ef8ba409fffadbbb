from django.apps import AppConfig
from django.urls import register_converter

from dexweb.converters import NameConverter


class DexwebConfig(AppConfig):
    name = "dexweb"
    verbose_name = "Dexweb"

    def ready(self) -> None:
        from dexweb import checks  # noqa: F401

        register_converter(NameConverter, "name")
