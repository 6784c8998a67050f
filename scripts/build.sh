#!/bin/sh
# build.sh TARGET: builds the server.
#
# The target is a copy of the file that the linker writes. Linux maps that one in pieces of up to 2 MB where a process reads a few bytes, so that a server
# takes 20 MB more memory than one whose file was copied, as installed ones are.
set -eu
cd "$(dirname "$0")/.."
linked=$1.linked
CGO_ENABLED=0 go build -trimpath -o "$linked" ./cmd/xcaddy-build
if [ ! "$1" -nt "$linked" ]; then
	cp "$linked" "$1.new"
	mv -f "$1.new" "$1"
fi
