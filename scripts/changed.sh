#!/usr/bin/env bash
# changed.sh prints the packages that differ from the last commit, or what the last commit
# changed if nothing does, and those above them whose tests import them. The tests about the
# repository itself are always among them.
set -euo pipefail
files=$(git diff --name-only HEAD; git ls-files --others --exclude-standard)
[ -n "$files" ] || files=$(git diff --name-only HEAD~1)
{
  echo ./internal/repo
  while read -r file; do
    dir=$(dirname "$file")
    dir=${dir%%/testdata*}
    echo "./$dir"
    above=$dir
    while above=$(dirname "$above"); [ "$above" != . ]; do
      if grep -qs "/$dir\"" "$above"/*_test.go; then echo "./$above"; fi
    done
  done <<< "$files"
} | sort -u | while read -r dir; do
  "${GO:-go}" list "$dir" 2> /dev/null || true # not a package, or one of another module
done
