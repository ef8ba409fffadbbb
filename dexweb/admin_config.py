from django.contrib.admin.apps import AdminConfig


class DexwebAdminConfig(AdminConfig):
    default_site = "dexweb.admin_site.DexwebAdminSite"
