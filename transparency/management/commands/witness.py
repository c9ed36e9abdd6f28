from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from transparency.checkpoints import Note, NoteRefused, OfferRefused
from transparency.keys import KeyRefused
from transparency.witness import KEY, Witness, WitnessApp, key_in


class Command(BaseCommand):
    help = (
        "Cosign the checkpoints of other installations' ledgers (C2SP tlog-witness). WITNESSED_LOGS names the"
        " keys of their logs; each has to be accepted once, with a checkpoint that you have read yourself."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="Default: 127.0.0.1.")
        parser.add_argument("--port", type=int, default=8010, help="Default: 8010.")
        parser.add_argument(
            "--accept",
            nargs=2,
            metavar=("ORIGIN", "CHECKPOINT"),
            help="Follow a log from this checkpoint on, a file as /ledger/checkpoint shows it; then end.",
        )

    def handle(self, *, host: str, port: int, accept: list[str] | None, **options: Any) -> None:
        folder = Path(settings.VAR_DIR)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not settings.WITNESS_NAME and not (folder / KEY).exists():
            raise CommandError("Name this witness first, for example WITNESS_NAME=witness.example.")
        try:
            witness = Witness(folder, key_in(folder, settings.WITNESS_NAME), settings.WITNESSED_LOGS)
        except KeyRefused as refused:
            raise CommandError(f"{folder / KEY}: {refused}") from None
        if accept is not None:
            self._accept(witness, *accept)
            return
        self.stdout.write(f"Witness: {witness.key.verifier}")
        self.stdout.flush()
        app = WitnessApp(witness)
        uvicorn.run(app, host=host, port=port, lifespan="off", log_config=None, server_header=False)

    def _accept(self, witness: Witness, origin: str, checkpoint: str) -> None:
        try:
            accepted = witness.accept(origin, Note.read(Path(checkpoint).read_bytes()))
        except (OSError, NoteRefused, OfferRefused) as error:
            raise CommandError(str(error).strip()) from None
        self.stdout.write(f"{origin} is followed from {accepted.size} entries on.")
