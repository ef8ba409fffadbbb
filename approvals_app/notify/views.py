"""The page where a person says what they want to be told by mail."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from approvals_app.notify import mail
from approvals_app.notify.forms import PreferenceForm, preference_of, save_preference


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("approvals_app.view_interrupt", raise_exception=True)
def preferences(request: HttpRequest) -> HttpResponse:
    form = PreferenceForm(request.POST or None, instance=preference_of(request.user))
    if request.method == "POST" and form.is_valid():
        save_preference(request.user, form)
        messages.success(request, "Saved.")
        return redirect("notification-preferences")
    return render(
        request,
        "notifications/preferences.html",
        {"form": form, "mail_is_set_up": mail.is_set_up()},
        status=400 if form.errors else 200,
    )
