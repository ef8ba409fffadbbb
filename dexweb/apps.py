from django.apps import AppConfig


class DexwebConfig(AppConfig):
    name = "dexweb"
    verbose_name = "Dexweb"

    def ready(self) -> None:
        from dexweb import checks  # noqa: F401
