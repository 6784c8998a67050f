# The two commands of the README are `make run` and `make test`. They need Go, npm and make.
GO      := CGO_ENABLED=0 go
TOOL    := go tool -modfile=tools/go.mod

.PHONY: run build engine test conformance bench lint fmt golden fuzz clean

PORT       := 8080
ADMIN_PORT := 2019

run: build engine ## Serve the demo project on http://localhost:8080; Ctrl-C stops it. Other ports: make run PORT=8081 ADMIN_PORT=2020
	@$(GO) build -o bin/demo ./demo && exec bin/demo -port $(PORT) -admin-port $(ADMIN_PORT)

build: ## Build bin/caddy: Caddy with this module in it, and the console if npm is there.
	@scripts/console.sh build
	scripts/build.sh bin/caddy
	@scripts/fetch-engine.sh || echo 'The embedded engine is missing: set engine_library to a libchdb, or clickhouse to a ClickHouse server.' >&2

engine: ## Download the embedded engine once, into the user's cache folder.
	@scripts/fetch-engine.sh

test: build engine ## Run every test.
	$(GO) vet ./...
	scripts/console.sh test
	$(TOOL) gotestsum --format pkgname --raw-command -- scripts/test.sh

conformance: engine ## Run only the conformance cases.
	$(GO) test ./tests/conformance/...

bench: build engine ## Measure the figures in docs/performance.md, or some of them: make bench FIGURES=capture; RECORD=docs/performance.md writes them there.
	@$(GO) run ./tests/bench $(if $(RECORD),-record $(RECORD)) $(FIGURES)

lint: ## Report what is not in style, and code that does not build for macOS.
	$(TOOL) golangci-lint run ./...
	GOOS=darwin $(GO) build ./...
	scripts/console.sh lint

fmt:
	$(TOOL) golangci-lint fmt ./...

golden: ## Rewrite the golden files; read the diff before you commit it.
	$(GO) test $$($(GO) list -f '{{range .XTestImports}}{{if eq . "github.com/caddy-analytics/caddy-analytics/internal/golden"}}{{$$.ImportPath}}{{end}}{{end}}' ./...) -update
	$(GO) generate ./compiler/schema

fuzz: ## Fuzz each target for a while: make fuzz FOR=5m
	@scripts/fuzz.sh $(or $(FOR),30s)

clean:
	rm -rf bin .demo
