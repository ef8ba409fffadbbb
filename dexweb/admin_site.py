"""The admin site: Dexweb's name on it, and our own sign-in page in front of it."""

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache


class DexwebAdminSite(AdminSite):
    site_title = "Dexweb admin"
    site_header = "Dexweb admin"
    index_title = "Agents, connections and credentials"
    site_url = "/"
    enable_nav_sidebar = True

    @method_decorator(never_cache)
    @login_not_required
    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """On to the sign-in page; a person who is signed in but no staff is told so."""
        target = request.GET.get(REDIRECT_FIELD_NAME, "")
        if not url_has_allowed_host_and_scheme(
            target, {request.get_host()}, require_https=request.is_secure()
        ):
            target = reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(target)
        if request.user.is_authenticated:
            raise PermissionDenied(
                "The admin site is for staff. Ask for access, or use another account."
            )
        return redirect_to_login(target, settings.LOGIN_URL)
