"""Budgets and prices."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from sessions_app.admin.revision import RevisionAdmin, RevisionForm
from sessions_app.models import ModelPrice, SpendBudget


@admin.register(SpendBudget)
class SpendBudgetAdmin(RevisionAdmin):
    list_display = ["name", "scope", "agent", "user", "period", "amount", "enabled", "revision"]
    list_filter = ["enabled", "scope", "period"]
    list_select_related = ["agent", "user"]
    search_fields = ["name", "agent__name", "user__username"]
    fieldsets = [
        (None, {"fields": ["name", "enabled"]}),
        ("What is counted", {"fields": ["scope", "agent", "user", "period"]}),
        ("How much", {"fields": ["amount", "allow_unknown"]}),
    ]


class ModelPriceForm(RevisionForm):
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        return name


@admin.register(ModelPrice)
class ModelPriceAdmin(RevisionAdmin):
    form = ModelPriceForm
    list_display = ["name", "input", "output", "cache_read", "cache_write", "valid_from"]
    search_fields = ["name"]
    fieldsets = [
        (None, {"fields": ["name", "valid_from"]}),
        (
            "US dollars for a million tokens",
            {
                "fields": [("input", "output"), ("cache_read", "cache_write")],
                "description": "Goes over the provider's list price. Of several that fit a model, "
                "the exact name wins, then the longest pattern, then the newest.",
            },
        ),
    ]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field, forms.DecimalField):
            field.widget.attrs["step"] = "any"
        return field
