#!/bin/sh
# Runs each fuzz target of the module for the given time: scripts/fuzz.sh 30s
set -eu
cd "$(dirname "$0")/.."
time=${1:-30s}
for folder in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
  for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$folder"/*_test.go | sed 's/func //'); do
    echo "== $folder $target"
    CGO_ENABLED=0 go test "$folder" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
