"""The page of delegations: hand a permission over, see what was given and got, take it back."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from approvals_app import audit, delegations
from approvals_app.delegations import Handed, InvalidDelegation
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal

may_see = permission_required("approvals_app.view_interrupt", raise_exception=True)


class DelegationForm(forms.Form):
    """Moments are in the zone that the page names beside them."""

    receiver = forms.CharField(max_length=150)
    key = forms.CharField(max_length=100)
    reason = forms.CharField(max_length=2000, required=False)
    starts_at = forms.DateTimeField(required=False)
    ends_at = forms.DateTimeField()


@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def delegation_list(request: HttpRequest) -> HttpResponse:
    """POST hands a permission over."""
    if request.method != "POST":
        return render(request, "delegations/list.html", _context(request))
    form = DelegationForm(request.POST)
    try:
        if not form.is_valid():
            faults = [f"{name}: {error}" for name, found in form.errors.items() for error in found]
            raise InvalidDelegation(errors=faults)
        with audit.via("page"):
            row = delegations.give(request.user, Handed(**form.cleaned_data))
    except DexwebError as refusal:
        return render_refusal(request, "delegations/list.html", _context(request), refusal)
    messages.success(request, f"{row.receiver.get_username()} may decide by {row.key} for you.")
    return redirect("delegation-list")


@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def delegation_revoke(request: HttpRequest, delegation_id: int) -> HttpResponse:
    """GET asks once more; POST revokes."""
    if request.method != "POST":
        row = delegations.find(request.user, delegation_id)
        if row is None:
            return redirect("delegation-list")
        context = {"delegation": row, "state": delegations.state_of(row)}
        return render(request, "delegations/revoke.html", context)
    try:
        with audit.via("page"):
            row = delegations.revoke(request.user, delegation_id)
    except DexwebError as refusal:
        return render_refusal(request, "delegations/list.html", _context(request), refusal)
    messages.success(request, f"{row.key} is no longer with {row.receiver.get_username()}.")
    return redirect("delegation-list")


def _context(request: HttpRequest) -> dict[str, Any]:
    user = request.user
    return {
        "given": delegations.with_states(delegations.of(user, "given")),
        "received": delegations.with_states(delegations.of(user, "received")),
        "keys": delegations.keys_to_give(user),
        "people": delegations.people_to_choose(user),
        "typed": request.POST,
        "zone": timezone.get_current_timezone_name(),
        "now": timezone.localtime().strftime("%Y-%m-%dT%H:%M"),
        "latest": (timezone.localtime() + delegations.LONGEST).strftime("%Y-%m-%dT%H:%M"),
        "refusal": None,
    }
