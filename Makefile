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
	go build -ldflags '$(LDFLAGS)' -o bin/sluice ./cmd/sluice

.PHONY: run
run: build ## Build and run everything on this machine (sluice dev)
	@bin/sluice dev

# -p 2: two packages at a time. Many of them start a PostgreSQL of their own, and
# more at once make each other slow instead of the whole fast.
GOTEST := go tool gotestsum --format pkgname -- -p 2 -count=1

.PHONY: test
test: lint ## Check style, then run every test with the race detector
	$(GOTEST) -race -timeout 20m ./...
	$(GOTEST) -run TestAMillionRequests ./domain/walk/sim

.PHONY: lint
lint: ## Check formatting, go vet and staticcheck
	@unformatted=$$(go tool gofumpt -l $$(git ls-files '*.go')); \
		if [ -n "$$unformatted" ]; then echo "not formatted (go tool gofumpt -w): $$unformatted"; exit 1; fi
	go vet ./...
	go tool staticcheck ./...

# Which fuzz targets, and for how long each; what they find is kept in the
# package's testdata.
FUZZ     := .
FUZZTIME := 30s

.PHONY: fuzz
fuzz: ## Fuzz the decoders that match FUZZ for FUZZTIME each
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -c6- | grep -E '$(FUZZ)' | sort -u); do \
			echo "fuzz $$dir $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; done

.PHONY: bench
bench: build ## Measure speed and memory (-full in BENCH for more)
	@go run ./features/bench $(BENCH)
