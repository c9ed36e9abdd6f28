"""What staff are told where they write of incidents."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from status.models import Incident
from tests.accounts.back_office.office import Office, add_to, logged, said, text_of

pytestmark = pytest.mark.django_db
FORM = {
    "title": "Slow prices",
    "impact": "minor",
    "started_at_0": "2026-11-18",
    "started_at_1": "12:00:00",
    "ended_at_0": "2026-11-18",
    "ended_at_1": "12:30:00",
    "notes-TOTAL_FORMS": "0",
    "notes-INITIAL_FORMS": "0",
}


def test_an_end_before_the_start_is_refused_at_the_field_and_in_words(office: Office) -> None:
    answer = office.post(add_to(Incident), **FORM | {"ended_at_1": "11:59:00"})
    form = answer.context["adminform"].form
    assert form.errors == {"ended_at": ["An incident cannot end before it starts."]}
    assert "incident_ends_after_it_begins" not in text_of(answer)
    assert office.post(add_to(Incident), **FORM).status_code == 302


def test_ending_says_which_incidents_were_left_alone(office: Office) -> None:
    now = timezone.now()
    begun = Incident.objects.create(title="Slow prices")
    planned = Incident.objects.create(title="Upgrade", started_at=now + timedelta(days=1))
    over = Incident.objects.create(title="Outage", started_at=now - timedelta(days=1), ended_at=now)
    answer = office.act("end_chosen", begun, planned, over)
    assert said(answer) == [
        "Ended: 1.",
        "Planned, so left alone: 1. To call an incident off, delete it.",
        "Already over: 1.",
    ]
    # Nor is success claimed where nothing was done.
    assert said(office.act("end_chosen", planned))[3:] == said(answer)[1:2]
    assert [len(logged(each)) for each in (begun, planned, over)] == [1, 0, 0]
    ends = dict(Incident.objects.values_list("pk", "ended_at"))
    assert ends[begun.pk] is not None
    assert (ends[planned.pk], ends[over.pk]) == (None, now)
