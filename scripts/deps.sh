#!/usr/bin/env bash
# deps.sh says what make full needs and the machine lacks, and installs it with apt-get. Without
# apt-get, or without the right to use it, it says what to install. It says nothing if all is
# there. Arguments take the place of the list.
set -euo pipefail

# One line for each tool: a command or a file, the Debian packages that bring it, what it is for.
needed=(
  "gcc|gcc libc6-dev|the race detector"
  "git|git|the tests about the repository"
  "chromium|chromium|the page in a browser"
  "firefox-esr|firefox-esr|the page in another browser"
  "npm|nodejs npm|the page's sources, PostgreSQL's newest version, other agents"
  "tmux|tmux|the terminal UI in a terminal"
  "/usr/lib/postgresql/*/bin/postgres|postgresql|sessions in a database"
  "/usr/sbin/pgbouncer|pgbouncer|a pool before the database"
  "/usr/lib/*/faketime/libfaketime.so.1|faketime|a clock that is wrong"
)
[[ $# -eq 0 ]] || needed=("$@")

have() {
  [[ $1 == /* ]] && compgen -G "$1" >/dev/null || command -v "$1" >/dev/null
}

missing=() lines=()
for entry in "${needed[@]}"; do
  IFS='|' read -r tool packages purpose <<<"$entry"
  have "$tool" && continue
  missing+=($packages)
  lines+=("$(printf '  %-18s for %s' "$packages" "$purpose")")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "This machine lacks:"
printf '%s\n' "${lines[@]}"
command="apt-get install --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "Install it as this system does; on Debian that is: $command" >&2
  exit 1
elif [[ $EUID -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "Installing it needs root. Ask for: $command" >&2
  exit 1
fi
echo "Installing it: $command"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]+"${as_root[@]}"}" apt-get -qq update
"${as_root[@]+"${as_root[@]}"}" apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
