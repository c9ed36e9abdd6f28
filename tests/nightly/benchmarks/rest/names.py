"""The servers that are compared, as the tables call them."""

OURS = "ours"
SHARED = "ours, limits over Redis"
NODE = "Node"
GRANIAN = "granian"
SOCKETIFY = "socketify"
STARLETTE = "Starlette"
BOLT = "django-bolt"
FASTAPI = "FastAPI"
DRF = "DRF + ORM"
NGINX = "nginx"

# They send the bytes that ours sent, and but for nginx also its headers.
RAW = (NODE, GRANIAN, SOCKETIFY, STARLETTE, NGINX)
