"""/publishers/{name}/bundle.zip: everything of a publisher, to be verified without this service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from io import BufferedReader
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from core.contract.errors import Overloaded, page_or_body
from signals_feed.bundle.files import open_bundle
from signals_feed.publishers.lookup import find

BLOCK_BYTES = 256 * 1024


class FileBlocks:
    """Read as fast as somebody takes them."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self.close = file, file.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await asyncio.to_thread(self._file.read, BLOCK_BYTES):
            yield block


@require_safe
def publisher_bundle(request: HttpRequest, user: str) -> HttpResponseBase:
    publisher = find(user)
    if publisher is None:
        raise Http404
    try:
        file = open_bundle(publisher.user_id)
    except Overloaded as refusal:
        return page_or_body(request, refusal)
    etag = f'"{Path(file.name).stem}"'
    headers = {
        "Content-Length": str(os.fstat(file.fileno()).st_size),
        "Content-Disposition": 'attachment; filename="bundle.zip"',
        "Cache-Control": "no-cache",
        "ETag": etag,
    }
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is None and request.method == "GET":
        return StreamingHttpResponse(FileBlocks(file), headers=headers, content_type="application/zip")
    file.close()
    return unchanged or HttpResponse(headers=headers, content_type="application/zip")
