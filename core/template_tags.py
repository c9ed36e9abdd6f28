"""`{% load commands %}{% command "issue_key NAME" %}`: what to type, as it works here."""

from django.template import Library

from .program import command

register = Library()
register.simple_tag(command)
