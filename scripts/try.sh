#!/usr/bin/env bash
# make try: builds the program and shows what it does, in a home of its own. It
# imports what agents keep on this machine, or writes the demo if they keep nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
mkdir -p .cache

# progress reads what go build -v prints, a package a line, and says every ten seconds how many
# are done and how long the rest takes if it goes on like that. Anything else that it prints is
# passed on.
progress() {
	local total=$1 done=0 began=$SECONDS next=$((SECONDS + 10)) line code left
	while true; do
		code=0
		read -r -t 5 line || code=$?
		if ((code == 1)); then
			break # the end
		elif ((code > 1)); then
			: # nothing came in five seconds
		elif [[ $line == *[[:space:]]* ]]; then
			printf '%s\n' "$line"
		else
			done=$((done + 1))
		fi
		if ((SECONDS >= next)); then
			left=""
			((done == 0 || done > total)) || left=", about $(((SECONDS - began) * (total - done) / done)) s left"
			echo "  $done of $total packages$left"
			next=$((SECONDS + 10))
		fi
	done
}

echo "Looking at what has to be built (the first time, this downloads the dependencies) …"
"$GO" mod download
stale=$("$GO" list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./cmd/coppice | grep -c . || true)
if ((stale > 0)); then
	echo "Building coppice: $stale packages. Then it shows what it does, in a home of its own:"
	echo "it imports what other agents keep on this machine, or writes a demo."
fi
"$GO" build -v -o .cache/coppice ./cmd/coppice 2>&1 | progress "$stale"
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
