from django.apps import AppConfig
from django.db.models.signals import post_delete
from prometheus_client import REGISTRY


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allauth.mfa.signals import authenticator_used
        from django.contrib.sessions.models import Session

        from core.events.kinds import FACT_WORDS
        from serving.draining import draining

        from .keys.cache import keys_trusted
        from .limits.redis_window import limit_fallbacks
        from .login import factors, mails
        from .models import end_page_sessions
        from .open_streams.redis_slots import stream_fallbacks
        from .open_streams.registry import open_streams

        factors.name_factors()
        FACT_WORDS["factor"] = factors.FACTOR_NAMES
        for changing in (factors, mails):
            for changed in changing.KINDS:
                changed.connect(changing.publish_change)
        authenticator_used.connect(factors.mail_recovery_code_use)
        post_delete.connect(end_page_sessions, sender=Session)
        # Disconnected clients find free slots on whichever process they reach next.
        draining.before_closing.append(open_streams.hand_over)
        for counter in (keys_trusted, limit_fallbacks, mails.mails_lost, stream_fallbacks):
            REGISTRY.register(counter)
