# Two commands are all a newcomer needs: `make run` and `make test`.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X main.build=$(VERSION) -X main.commit=$(COMMIT)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/sluice
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/sluice ./cmd/sluice

.PHONY: run
run: build ## Build and run everything on this machine (sluice dev)
	@bin/sluice dev

.PHONY: bench
bench: build ## Measure speed and memory (-full in BENCH for more)
	@go run ./features/bench $(BENCH)
