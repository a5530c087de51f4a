#!/usr/bin/env bash
# A server that needs a moment to be ready, and complains once it is.
sleep 0.3
echo "listening on port 8080"
sleep 0.3
echo "error: the cache is cold" >&2
exec sleep 1000
