#!/usr/bin/env bash
# make try: builds the program and shows what it does, in a home of its own. It
# imports what agents keep on this machine, or writes the demo if they keep nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
mkdir -p .cache
"$GO" build -o .cache/coppice ./cmd/coppice
coppice=$PWD/.cache/coppice
export COPPICE_HOME=$PWD/.cache/try

run() {
	printf '\n$ coppice %s\n' "$*"
	"$coppice" "$@"
}

if [[ $("$coppice" --json) == *'"programs":[]'* ]]; then
	session=tokenizer words=tokenizer
	[[ -e $COPPICE_HOME ]] || run demo
else
	session=last words=error
	run import --all || true # what cannot be read was listed
fi
run ls -n 10
run tree "$session" --fold 4 | head -30
run search "$words" -n 5 || true # it may find nothing

printf '\nGo on with:\n'
printf '  export PATH=%q:$PATH COPPICE_HOME=%q\n' "$PWD/.cache" "$COPPICE_HOME"
printf '  coppice               # the terminal UI: search, read, branch, compare\n'
printf '  coppice web           # the same in a browser\n'
printf '  coppice show %s\n' "$session"
printf '  coppice export %s -o talk.html\n' "$session"
printf '  coppice help\n'
