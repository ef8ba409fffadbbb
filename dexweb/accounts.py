"""Signing in and out, at /accounts/."""

from typing import Any

from django.contrib.auth import views
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.utils.decorators import method_decorator

from dexweb.sign_in import SignInForm


@method_decorator(login_not_required, name="dispatch")
class LoginView(views.LoginView):
    redirect_authenticated_user = True
    authentication_form = SignInForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """A fragment asked for by somebody signed out gets a notice, not this form in it."""
        if request.htmx:
            return signed_out(request)
        return super().dispatch(request, *args, **kwargs)

    def form_invalid(self, form: SignInForm) -> HttpResponse:
        response = super().form_invalid(form)
        if form.wait:
            response.status_code = 429
            response["Retry-After"] = str(form.wait)
        return response


def signed_out(request: HttpRequest) -> HttpResponse:
    """401, shown above the page: what was typed stays where it is."""
    response = render(request, "registration/_signed_out.html", status=401)
    response["HX-Retarget"] = "#notices"
    response["HX-Reswap"] = "innerHTML"
    response["HX-Push-Url"] = "false"
    return response


urlpatterns = [
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
]
