from django.apps import AppConfig


class DexwebConfig(AppConfig):
    name = "dexweb"
    verbose_name = "Dexweb"
