from django.urls import path, re_path

from . import views

urlpatterns = [
    path("ledger/checkpoint", views.newest_checkpoint, name="ledger_checkpoint"),
    re_path(r"^ledger/checkpoints/(?P<size>0|[1-9]\d{0,17})$", views.checkpoint, name="ledger_checkpoint_of"),
    path("ledger/proofs", views.proofs, name="ledger_proofs"),
    path("ledger/key", views.keys, name="ledger_key"),
]
