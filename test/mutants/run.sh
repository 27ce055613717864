#!/usr/bin/env bash
# Makes mutants of packages, runs each package's own tests on each mutant, and prints those that live.
# usage: run.sh PACKAGE...      such as internal/plan
#
# It fails when a mutant lives, or no test reaches it, and test/mutants/equivalents.txt does not list it.
set -euo pipefail
cd "$(dirname "$0")/../.."
(($#)) || { echo "usage: $0 PACKAGE..., such as internal/plan" >&2; exit 2; }
tools/build.sh --link bin gremlins >/dev/null
mkdir -p dist/mutants
export CGO_ENABLED=0
go build -trimpath -o dist/mutants/survivors ./test/mutants
failed=0
for package in "$@"; do
  package=${package#./} package=${package%/}
  report=dist/mutants/${package//\//-}.json
  bin/gremlins unleash --config test/mutants/gremlins.yaml --output "$report" "./$package" >"${report%.json}.log"
  dist/mutants/survivors "$package" "$report" test/mutants/equivalents.txt || failed=1
done
exit "$failed"
