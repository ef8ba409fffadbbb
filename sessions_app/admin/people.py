"""Users and groups, guarded against two editors at once; tokens are not shown at all."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from rest_framework.authtoken.models import TokenProxy

from approvals_app import audit
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
    audited_secrets = {"password1": "password"}

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """The page of its own that sets a password, or makes it unusable."""
        with transaction.atomic():
            held = User.objects.filter(pk=id).values_list("password", flat=True).first()
            response: HttpResponse = super().user_change_password(request, id, form_url)
            user = User.objects.filter(pk=id).first()
            if user is not None and user.password != held:
                subject = f"user:{user.get_username()}"
                audit.record(request.user, "user.password_changed", subject)
        return response

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        # Adding somebody is another form, which has nothing to compare with.
        return super().get_fieldsets(request, obj) if obj else UserAdmin.add_fieldsets

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody is deleted: decisions keep who made them. “Active” is switched off instead."""
        return False


@admin.register(Group)
class PeopleGroupAdmin(RevisionAdmin, GroupAdmin):
    pass
