# make help lists the targets. CI runs make test, then make full.

GO       ?= go
FUZZTIME ?= 60s
# Coverage gate in percent, and the packages it holds for, those first whose tests take longest. Those
# with a number have a gate of their own, a little below what they have: what is left are mostly
# errors of disks, databases and networks.
COVERMIN ?= 90
COVERED  ?= cmd/coppice/internal/cli=85 home=85 server client=83 upkeep=84 upkeep/backup=88 index index/sqlite=85 render render/terminal render/markdown render/html render/plain session store store/file store/postgres window keyed conversation redact session/clean provider transcript agent agent/summary agent/tools agent/mcp
# The packages whose tests take longest come first, so that none of them is left
# alone with one core at the end.
TESTED   ?= ./cmd/coppice/internal/cli ./home ./store/postgres ./session ./store/file ./upkeep ./store/remote ./...
# How many times as much make soak does.
SOAK     ?= 50
# TESTFLAGS go to every go test: make test TESTFLAGS='-run Torn -v'
TESTFLAGS ?= -count=1 -timeout=10m

# INTEROPFLAGS go to the program behind make interop: make interop INTEROPFLAGS='-run codex'
INTEROPFLAGS ?=

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# The tools are pinned in a module of their own, so that those who import
# Coppice do not inherit them.
TOOL := $(GO) tool -modfile=tools/go.mod

# Modules of their own, so that those who import Coppice need not download what they need.
ADAPTERS := $(patsubst %/go.mod,%,$(wildcard adapter/*/go.mod))

# Stamping the commit into binaries fails where git distrusts the checkout. Without
# paths in them, a second checkout takes what the compiler made for the first. Without
# tables for a debugger, a test links in half the time, and there are seventy.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -ldflags=-w

# No package here uses cgo. Without it, what is checked is what is released, and
# the compiler has one version less to make. Only the race detector needs it.
export CGO_ENABLED := 0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: try
try: ## Build it and look around, in a home of its own
	@GO="$(GO)" scripts/try.sh

.PHONY: test
# Nothing but Go: no root, no C compiler, no Node. The answer does not depend on chance, because
# random tests draw the same cases each time. Tests that need more say so, and run in make full.
test: vet ## Vet and the tests that need nothing but Go, in minutes; ends with "N passed, M failed"
	@echo "== go test"
	@$(GO) run ./scripts/testsum -- -short -vet=off $(TESTFLAGS) $(TESTED)

.PHONY: full
full: deps check cross web-check cover race adapters sdk interop ## Everything: race, PostgreSQL, S3, browser, terminal, coverage, SDKs, other agents

.PHONY: quick
# Building everything notices a change that others cannot live with; whether they still pass is
# for make test.
quick: ## Build everything; vet and test, with -short, the packages that you have changed
	@$(GO) build ./...
	@changed=$$(GO="$(GO)" scripts/changed.sh); $(GO) vet $$changed; \
	$(GO) run ./scripts/testsum -- -short -vet=off $$changed

.PHONY: check
check: fmt-check vet lint tidy api size workflows ## Formatting, vet, staticcheck, go mod tidy, the exported API, the size, the workflows

.PHONY: deps
deps: # Install what make full needs, if it is missing
	@scripts/deps.sh
	@out=$$(COPPICE_TEST_FULL=1 $(GO) test -count=1 -timeout=1h ./internal/s3test 2>&1) || { echo "$$out"; exit 1; } # builds its server, once

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) gofumpt -w .

.PHONY: fmt-check
fmt-check:
	@echo "== gofumpt"
	@bad=$$($(TOOL) gofumpt -l .); \
	if [[ -n $$bad ]]; then echo "not formatted (make fmt does it):"; echo "$$bad"; exit 1; fi

.PHONY: vet
vet:
	@echo "== go vet"
	@$(GO) vet ./...

.PHONY: lint
lint:
	@echo "== staticcheck"
	@$(TOOL) staticcheck ./...

.PHONY: tidy
tidy:
	@echo "== go mod tidy"
	@$(GO) mod tidy -diff
	@for dir in tools interop/sdk server/web/build $(ADAPTERS); do $(GO) -C $$dir mod tidy -diff; done

.PHONY: api
api:
	@echo "== api"
	@$(GO) run ./scripts/api

.PHONY: api-update
api-update: ## Accept how the exported API has changed: write it to api/
	@$(GO) run ./scripts/api -update

.PHONY: size
size: ## How many lines the product has, and which functions are long
	@echo "== size"
	@$(GO) run ./scripts/size

.PHONY: workflows
# Without the checkers of other languages, which it uses if a machine has them: the answer is
# to be the same everywhere.
workflows:
	@echo "== actionlint"
	@$(TOOL) actionlint -shellcheck= -pyflakes=

.PHONY: cross
# vet reads the tests too. Neither it nor the linker finds more on a second processor, so
# each system is checked on one, for which vet has compiled; make dist builds them all.
cross: ## Vet and link for every system, tests included, without cgo
	@for os in darwin windows; do \
		echo "== vet $$os"; \
		GOOS=$$os $(GO) vet ./...; \
	done
	@for p in darwin/amd64 windows/amd64; do \
		echo "== link $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/coppice; \
	done

.PHONY: race
race: export CGO_ENABLED := 1
# A program under the race detector sleeps for a second before it exits. The tests
# start hundreds of them.
race: export GORACE := atexit_sleep_ms=10 $(GORACE)
# SQLite is C that was translated to Go: it works on memory of its own, which the
# race detector does not know, and is four times as fast without it. What compresses
# works alone on its own memory, and so does what matches expressions, which is twenty times
# as slow when it is watched. A package with generic code cannot be left out: it may be
# the one whose copy of an atomic operation is linked, and the detector would miss that.
race: UNWATCHED := $(foreach p,modernc.org/sqlite/lib modernc.org/memory github.com/klauspost/compress/... compress/flate regexp/... unicode,-gcflags=$(p)=-race=false)
# The detector also has each pointer looked up among the objects of Go. Those of SQLite are
# not there: looking for them took 6 % of a test of homes with an index.
race: UNWATCHED += $(foreach p,modernc.org/libc modernc.org/sqlite,-gcflags=$(p)=-d=checkptr=0)
# Every test runs here, on random cases that are new each time; a failure says how to repeat it.
race: export COPPICE_TEST_FULL := 1
race: export COPPICE_SEED ?= random
# Databases are of the newest PostgreSQL here, and of Debian's in cover.
race: ## All tests under the race detector
	@echo "== go test -race"
	@COPPICE_TEST_POSTGRES=$$(scripts/postgres.sh) $(GO) run ./scripts/testsum -skips scripts/skips.txt -- -race $(UNWATCHED) -vet=off $(TESTFLAGS) $(TESTED)

.PHONY: soak
# All of the tests that ask internal/soak how much to do.
soak: ## Property, kill and power-cut tests SOAK (50) times as long as in make test; hours
	@COPPICE_SOAK=$(SOAK) $(MAKE) --no-print-directory race TESTFLAGS='-count=1 -timeout=24h' \
		TESTED="$$(grep -rl --include='*_test.go' internal/soak . | xargs -n 1 dirname | sort -u | xargs)"

.PHONY: histories
histories: ## What several processes saw of a store, a million operations: is it possible? On files, then PostgreSQL
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	for where in "$$dir/sessions" postgres:; do echo "== $$where"; $(GO) run ./bench/histories "$$where"; done

.PHONY: cover
# Counting makes the race detector more than twice as slow, so it has a run of its own, with
# -short: what is random is done a tenth as often, and reaches the same lines.
# The tests of the floor, the server, the client and the index work on a database here, and on
# files in race.
cover: export COPPICE_TEST_HOME := postgres:
cover: export COPPICE_TEST_FULL := 1
cover: ## Coverage of the core, the floor and the faces by their tests, without the race detector
	@echo "== coverage"
	@mkdir -p .cache
	@pkgs=$$(printf './%s,' $(foreach p,$(COVERED),$(firstword $(subst =, ,$p)))); \
	$(GO) run ./scripts/testsum -quiet -- -short -vet=off $(TESTFLAGS) \
		-coverpkg="$${pkgs%,}" -coverprofile=.cache/cover.out $(foreach p,$(COVERED),./$(firstword $(subst =, ,$p))/...)
	@$(GO) run ./scripts/covergate -min $(COVERMIN) .cache/cover.out $(COVERED)

.PHONY: adapters
# The frameworks are large, and the tests do not wait for what they do: the compiler is
# done sooner if it does not optimise them.
adapters: PLAIN := $(foreach m,google.golang.org cloud.google.com go.opentelemetry.io,'-gcflags=$(m)/...=-N -l')
adapters: ## Vet and test the adapters, which are modules of their own
	@for dir in $(ADAPTERS); do \
		echo "== $$dir"; \
		(cd $$dir; $(GO) vet $(PLAIN) ./...; \
		$(GO) run github.com/coppice-dev/coppice/scripts/testsum -- $(PLAIN) -vet=off $(TESTFLAGS) ./...); \
	done

.PHONY: interop
# A target of its own: the tests should not need a download of eleven programs.
interop: ## Real programs read our transcripts, and we theirs; downloads them (2 GB) into ~/.cache
	@scripts/deps.sh "npm|nodejs npm|the agents" "curl|curl|the server's answers" "nc.openbsd|netcat-openbsd|its socket" || true # what is missing is not asked
	@echo "== interop"
	@$(GO) run ./interop $(INTEROPFLAGS)

.PHONY: sdk
# Compile the SDKs without optimisation: they are large, and their speed does not matter
# here.
sdk: PLAIN := $(foreach m,github.com/anthropics github.com/openai google.golang.org,'-gcflags=$(m)/...=-N -l')
sdk: ## The official SDKs read our requests and answers, and we theirs
	@echo "== official SDKs"
	@cd interop/sdk; $(GO) vet $(PLAIN) ./...; \
	$(GO) run github.com/coppice-dev/coppice/scripts/testsum -- $(PLAIN) -vet=off $(TESTFLAGS) ./...

# The page of the server. Its packages are pinned by package-lock.json.
WEB := server/web

$(WEB)/node_modules: $(WEB)/package-lock.json
	@cd $(WEB); npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; touch node_modules

.PHONY: web
web: $(WEB)/node_modules ## Bundle the page of the server; needs Node
	@cd $(WEB); npx tsc --noEmit
	@$(GO) -C $(WEB)/build run . -dir ..

.PHONY: web-check
web-check: $(WEB)/node_modules ## Check that the page is what its sources give, and drive it in Chromium and Firefox
	@echo "== page"
	@cd $(WEB); npx tsc --noEmit
	@$(GO) -C $(WEB)/build run . -dir .. -check
	@mkdir -p .cache; $(GO) build -o .cache/coppice ./cmd/coppice
	@cd $(WEB); export COPPICE=$(CURDIR)/.cache/coppice; \
	node --test test/window.test.mjs test/turn.test.mjs test/words.test.mjs test/page.test.mjs test/pictures.test.mjs && BROWSER=firefox node --test test/page.test.mjs

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (60s)
	@GO="$(GO)" scripts/fuzz.sh $(FUZZTIME)

.PHONY: shots
shots: ## The pictures of the documentation; needs tmux
	@./scripts/deps.sh "tmux|tmux|the pictures"
	@$(GO) run ./scripts/shots docs/shots

.PHONY: bench-faces
bench-faces: ## How fast the terminal UI is, with very many sessions and in a very large one
	@$(GO) run ./bench/faces

.PHONY: bench
bench: ## Benchmarks beside their raw limits, as a table
	@$(GO) run ./bench

.PHONY: dist
dist: ## Archives of a release for every platform, and what is in them (SBOM), in dist/; VERSION=v1.2.3 names it
	@GO="$(GO)" $(GO) run ./scripts/dist -version '$(VERSION)' $(PLATFORMS)

.PHONY: vuln
vuln: ## Known vulnerabilities of the dependencies; needs the network
	@$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

.PHONY: demo
demo: ## A short tour: a session grown, branched and cut back
	@$(GO) run ./examples/garden
