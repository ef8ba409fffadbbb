from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class DexwebConfig(AppConfig):
    name = "dexweb"
    verbose_name = "Dexweb"


class DexwebAdminConfig(AdminConfig):
    default_site = "dexweb.admin_site.DexwebAdminSite"
