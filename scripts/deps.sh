#!/usr/bin/env bash
# deps.sh installs what make test needs and the machine lacks. It says nothing
# and does nothing when all is there. One line per tool: command, then the
# Debian packages that bring it. Arguments take the place of these lines.
set -euo pipefail

needed=(
  "gcc gcc libc6-dev" # the race detector needs cgo
  "git git"
  "chromium chromium"        # opens a page that must not run anything
  "tmux tmux"                # a terminal for the terminal UI
  "pg_ctlcluster postgresql" # keeps sessions
  "/usr/sbin/pgbouncer pgbouncer" # stands between
  "faketime faketime"             # sets a clock wrong
)
[[ $# -eq 0 ]] || needed=("$@")

if ! command -v go >/dev/null; then
  echo "deps: Go is missing; see go.mod for the version" >&2
  exit 1
fi

missing=()
for line in "${needed[@]}"; do
  read -r tool packages <<<"$line"
  command -v "$tool" >/dev/null || missing+=($packages)
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "deps: please install: ${missing[*]}" >&2
  exit 1
fi

as_root=()
[[ $EUID -eq 0 ]] || as_root=(sudo)
echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
