#!/usr/bin/env bash
# apidiff.sh lists what changed in the exported API since the last release (the newest tag
# that this commit descends from). From v1.0.0 on, an incompatible change is a failure.
set -euo pipefail

GO=${GO:-go}
module=$("$GO" list -m)
apidiff() { "$GO" tool -modfile=tools/go.mod apidiff -m "$@" 2> >(grep -v '^Ignoring internal package' >&2); }

if ! tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
  echo "no release to compare with yet"
  exit 0
fi

# A release never changes, so its API is written down once.
released=$PWD/.cache/api/$tag
if [[ ! -f $released ]]; then
  tree=$(mktemp -d)
  trap 'git worktree remove --force "$tree"' EXIT
  git worktree add --quiet --detach "$tree" "$tag"
  mkdir -p .cache/api
  (cd "$tree" && "$GO" tool -modfile="$OLDPWD/tools/go.mod" apidiff -m -w "$released.new" "$module" 2>/dev/null)
  mv "$released.new" "$released"
fi

changes=$(apidiff "$released" "$module")
[[ -n $changes ]] || { echo "the API is that of $tag"; exit 0; }
echo "since $tag:"
echo "$changes"
if [[ $tag != v0.* && $changes == *"Incompatible changes:"* ]]; then
  echo "programs written for $tag would no longer compile: keep the names above, or release a new major version" >&2
  exit 1
fi
