"""The digests by which stories and drafts are recognised."""

from hashlib import sha256


def digest(text: str) -> str:
    """Also of text that a feed has broken: half of a surrogate pair cannot be encoded otherwise."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
