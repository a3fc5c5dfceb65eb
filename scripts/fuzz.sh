#!/usr/bin/env bash
# fuzz.sh runs every fuzz target of the module, one after the other.
# Usage: scripts/fuzz.sh [time for each, default 60s]
set -euo pipefail

go=${GO:-go}
time=${1:-60s}
failed=() count=0

for pkg in $("$go" list ./...); do
  listed=$("$go" test -list '^Fuzz' "$pkg")
  for target in $(grep '^Fuzz' <<<"$listed" || true); do
    echo "== $pkg $target"
    count=$((count + 1))
    # By default, minimizing one interesting input may take all of the time.
    "$go" test -run='^$' -fuzz="^$target\$" -fuzztime="$time" -fuzzminimizetime=20x "$pkg" || failed+=("$pkg $target")
  done
done

echo "fuzz targets: $count run, ${#failed[@]} failed"
[[ ${#failed[@]} -eq 0 ]] || { printf '  %s\n' "${failed[@]}"; exit 1; }
