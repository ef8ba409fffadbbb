"""Users and groups, guarded against two editors at once; tokens are not shown at all."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from rest_framework.authtoken.models import TokenProxy

from sessions_app.admin.revision import RevisionAdmin, RevisionForm

# Its pages print tokens in full, and so does the log of what was deleted there.
if admin.site.is_registered(TokenProxy):
    admin.site.unregister(TokenProxy)
admin.site.unregister(User)
admin.site.unregister(Group)


class PersonForm(RevisionForm, UserChangeForm):
    hidden_values = ("password",)


@admin.register(User)
class PersonAdmin(RevisionAdmin, UserAdmin):
    form = PersonForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        # Adding somebody is another form, which has nothing to compare with.
        return super().get_fieldsets(request, obj) if obj else UserAdmin.add_fieldsets

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody is deleted: decisions keep who made them. “Active” is switched off instead."""
        return False


@admin.register(Group)
class PeopleGroupAdmin(RevisionAdmin, GroupAdmin):
    pass
