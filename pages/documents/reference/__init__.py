"""The references of REST and of the streams, read from the OpenAPI and AsyncAPI documents."""
