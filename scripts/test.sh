#!/bin/sh
# Runs every test and prints go test's JSON, for gotestsum. Unit tests run under the race detector if there is a C compiler,
# which it needs. SQLite, which is C translated to Go, is not instrumented: tests of the registry would take three times as
# long. The tests in tests/ run without the race detector, because the server under test is another process. The tests that
# compare times run last, one after the other.
set -u
cd "$(dirname "$0")/.."
status=0
units=$(go list ./... | grep -v /tests/) || exit
timed='./tests/nodes ./tests/faults/hostile'
outside=$(go list ./tests/... | grep -vxF "$(go list $timed)") || exit
if command -v "${CC:-cc}" >/dev/null; then
  CGO_ENABLED=1 go test -json -race -gcflags=modernc.org/sqlite/lib=-race=false -timeout 30m $units || status=1
else
  CGO_ENABLED=0 go test -json -timeout 30m $units || status=1
fi
CGO_ENABLED=0 go test -json -timeout 30m $outside || status=1
CGO_ENABLED=0 go test -json -timeout 30m -p 1 $timed || status=1
exit $status
