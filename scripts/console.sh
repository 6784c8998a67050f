#!/bin/sh
# Builds, checks or tests the web console: console.sh build|lint|test. build writes console/dist, which is embedded into the server, unless it is
# up to date. Without npm it says so and does nothing, but in CI it fails.
set -eu
cd "$(dirname "$0")/../console"

if ! command -v npm >/dev/null 2>&1; then
	echo 'npm is not installed: the server gets no web console.' >&2
	[ -z "${CI:-}" ]
	exit
fi
if [ ! -e node_modules/.package-lock.json ] || [ -n "$(find package-lock.json -newer node_modules/.package-lock.json)" ]; then
	npm ci --ignore-scripts --no-audit --no-fund >&2
fi
case "$1" in
build)
	if [ ! -e dist/index.html ] || [ -n "$(find src build.mjs package-lock.json -newer dist/index.html | head -n 1)" ]; then
		npm run --silent build >&2
	fi
	;;
lint | test) npm run --silent "$1" ;;
*)
	echo "console.sh: unknown argument $1" >&2
	exit 1
	;;
esac
