# Governor. `make help` lists what can be made.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

LOCALKUBE := bin/localkube
# CLUSTER=current uses the cluster of the current kubeconfig instead of the local one.
CLUSTER ?= local
ifneq ($(CLUSTER),current)
export KUBECONFIG := $(CURDIR)/build/kubeconfig
endif
export PATH := $(CURDIR)/bin:$(PATH)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: install plugin ## See it work: cluster, operator, an application that is scaled, broken, repaired and upgraded
	@go run ./examples/demo

.PHONY: test
test: verify test-unit test-envtest test-examples test-localkube test-e2e ## Everything that CI runs

##: the local cluster

.PHONY: $(LOCALKUBE)
$(LOCALKUBE):
	@mkdir -p bin
	@test -x $@ || echo "building localkube (the first time takes a minute)"
	@cd localkube && go build -ldflags "-s -w" -o ../$@ .

.PHONY: cluster
cluster: $(LOCALKUBE) ## Build what is missing, bring up a real Kubernetes on this machine, and print its kubeconfig
	@$(LOCALKUBE) up --kubeconfig $(CURDIR)/build/kubeconfig
	@ln -sf "$$($(LOCALKUBE) build | head -1)/kubectl" bin/kubectl

.PHONY: cluster-down
cluster-down: $(LOCALKUBE) ## Take the local cluster down; nothing is left
	@$(LOCALKUBE) down

##: the operator

# Without grpc's request tracing nothing calls methods by names that only the running program knows, and the linker
# leaves out those that nobody calls: a fifth of the binary, and of the memory that its pages take. Managed fields
# that are alike in many objects are kept once. What is generated for Kubernetes' own API is large and nothing of it is
# hurried, so none of it is inlined.
GOLEAN := -tags grpcnotrace,fieldsv1string -gcflags k8s.io/api/...=-l -ldflags "-s -w"

.PHONY: bin/governor
bin/governor:
	@mkdir -p bin
	@CGO_ENABLED=0 go build $(GOLEAN) -o $@ ./cmd/governor

.PHONY: bin/kubectl-governor
bin/kubectl-governor:
	@mkdir -p bin
	@CGO_ENABLED=0 go build -ldflags "-s -w" -o $@ ./cmd/kubectl-governor

.PHONY: plugin
plugin: bin/kubectl-governor ## Build the kubectl plugin; with bin in the PATH, `kubectl governor` is there, also for completion
	@install -m 755 cmd/kubectl-governor/kubectl_complete-governor bin/kubectl_complete-governor

VERSION ?= v0.1.0

.PHONY: krew
krew: ## Build the plugin for all platforms, and its manifest for krew, into build/krew
	@go run ./config/krew -version $(VERSION) -out build/krew

.PHONY: image
image: $(LOCALKUBE) bin/governor ## Build the operator's image and load it, with the applications', onto the local cluster
	@$(LOCALKUBE) image build config/image.yaml memcached-1.6.18 memcached-1.6.38 etcd-3.5 etcd-3.6 etcd-3.7 --load | grep '^loaded'

.PHONY: install
ifeq ($(CLUSTER),current)
install: ## Install the operator from dist/install.yaml (CLUSTER=current: on the current cluster)
	@kubectl apply --server-side -f dist/install.yaml
else
install: cluster image
	@old="$$(kubectl -n governor-system get deployment governor -o name 2>/dev/null || true)"; \
	kubectl apply --server-side -f dist/install.yaml | grep -v unchanged || true; \
	test -z "$$old" || kubectl -n governor-system rollout restart deployment/governor >/dev/null # the image has the same name
	@kubectl -n governor-system rollout status deployment/governor --timeout=120s
endif

##: tests

.PHONY: verify
verify: ## Formatting, vet, lint with the import rules of the house, generated files, known vulnerabilities
	@echo "== verify: formatting, lint, generated files"
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	@go tool -modfile=tools/lint/go.mod golangci-lint-kube-api-linter run ./...
	@go test ./config/...
	@cd localkube && go tool -modfile=../tools/lint/go.mod golangci-lint-kube-api-linter run ./...
	@$(MAKE) --no-print-directory -C examples/chocolate-factory verify
	@$(MAKE) --no-print-directory vulnerabilities

.PHONY: vulnerabilities
vulnerabilities: ## Known vulnerabilities in what the operator is built from, where the database can be reached
	@said="$$(go tool -modfile=tools/vuln/go.mod govulncheck ./... 2>&1)" && echo "$$said" || \
	{ grep -q 'fetching vulnerabilities' <<<"$$said" && echo "vulnerabilities: not checked, the database cannot be reached from here" || \
	{ echo "$$said"; exit 1; }; }

# Exhaustive worlds, ten thousand lives and conversions there and back take four to ten times as long under the race
# detector, which finds nothing in functions that share nothing.
ONE_THREAD := ./apps/etcd ./apps/etcd/legacy ./apps/etcd/model

.PHONY: test-unit
test-unit: ## Tables, exhaustive worlds, simulated lives; with the race detector
	@echo "== unit tests"
	@go test -race $$(go list ./... | grep -v -e /test/envtest -e /test/e2e -e /test/bench -e /scaffold $(ONE_THREAD:.%=-e %$$))
	@go test -timeout 30m $(ONE_THREAD)
	@cd localkube && go test -race $$(go list ./... | grep -v /e2e)

.PHONY: sim
sim: ## Simulated scenarios: SEED=n replays one, RUNS=n runs more seeds
	@GOVERNOR_SIM_SEED=$(SEED) GOVERNOR_SIM_RUNS=$(RUNS) go test -count=1 -v -run Lives ./apps/... ./test/fakeapp

.PHONY: test-envtest
test-envtest: $(LOCALKUBE) ## Against a real API server
	@echo "== envtest"
	@assets="$$($(LOCALKUBE) envtest-assets)" && export KUBEBUILDER_ASSETS="$$assets" && \
	go test ./test/envtest/... && (cd localkube && go test ./storage/...)

.PHONY: test-examples
test-examples: $(LOCALKUBE) ## Operators of others, against this working tree: the chocolate factory, and a new project
	@echo "== examples"
	@assets="$$($(LOCALKUBE) envtest-assets)" && export KUBEBUILDER_ASSETS="$$assets" && \
	$(MAKE) --no-print-directory -C examples/chocolate-factory test && go test -count=1 -timeout 20m ./scaffold

.PHONY: test-localkube
test-localkube: ## The local cluster itself: networking, volumes, faults, and that nothing is left
	@echo "== localkube"
	@cd localkube && go test -v -timeout 20m ./e2e | grep --line-buffered -v '^=== '

E2E := $(LOCALKUBE) --name governor-e2e
E2E_KUBECONFIG := $(CURDIR)/build/e2e.kubeconfig

.PHONY: test-e2e
test-e2e: $(LOCALKUBE) bin/governor ## The operator on a real cluster with real pods and real faults
	@echo "== e2e"
	@trap '$(E2E) down' EXIT; \
	$(E2E) down; \
	$(E2E) up --fast-node-detection --kubeconfig $(E2E_KUBECONFIG); \
	ln -sf "$$($(LOCALKUBE) build | head -1)/kubectl" bin/kubectl; \
	$(E2E) image build config/image.yaml memcached-1.6.18 memcached-1.6.38 etcd-3.3 etcd-3.4 etcd-3.5 etcd-3.6 etcd-3.7 --load >/dev/null; \
	E2E_LOCALKUBE="$(CURDIR)/$(E2E)" KUBECONFIG=$(E2E_KUBECONFIG) go test -v -count=1 -parallel 4 -timeout 50m ./test/e2e | grep --line-buffered -v '^=== '; \
	echo "== chaos"; \
	KUBECONFIG=$(E2E_KUBECONFIG) go run ./test/chaos -localkube "$(E2E)" -seconds $(E2E_CHAOS) -seed $(E2E_SEED) -heal 2m -shrink 2m

##: the adversary

# SECONDS is a variable of bash, too, and counts there; make's own is what counts here.
E2E_CHAOS ?= 240
# CI tells whether a change broke something, so it has the same seed each time; make chaos looks for what is not known.
E2E_SEED ?= 1
SEED_OR_RANDOM = $(or $(SEED),random)
CHAOS := $(LOCALKUBE) --name governor-chaos
CHAOS_KUBECONFIG := $(CURDIR)/build/chaos.kubeconfig
REPLAY ?=
LAYOUT ?= 3-tls

.PHONY: chaos
chaos: $(LOCALKUBE) bin/governor ## Do to a cluster all that users and machines do: SECONDS=600 SEED=random; REPLAY="..." LAYOUT=3-tls replays a failure
	@trap '$(CHAOS) down' EXIT; \
	$(CHAOS) up --fast-node-detection --kubeconfig $(CHAOS_KUBECONFIG); \
	$(CHAOS) image build config/image.yaml etcd-3.6 etcd-3.7 --load >/dev/null; \
	export KUBECONFIG=$(CHAOS_KUBECONFIG); kubectl="$$($(LOCALKUBE) build | head -1)/kubectl"; \
	"$$kubectl" apply --server-side -f dist/install.yaml >/dev/null; \
	"$$kubectl" -n governor-system rollout status deployment/governor --timeout=120s; \
	go run ./test/chaos -localkube "$(CHAOS)" -seconds $(or $(SECONDS),600) -seed $(SEED_OR_RANDOM) -layout $(LAYOUT) -replay "$(REPLAY)"

.PHONY: soak
soak: ## What CI has no time for: four hours of chaos, and a million simulated scenarios of etcd
	@$(MAKE) --no-print-directory chaos SECONDS=14400
	@GOVERNOR_SIM_RUNS=1000000 go test -count=1 -timeout 24h -v -run Lives ./apps/etcd/model

##: benchmarks

COUNTS ?= 10,100,1000
ROUNDS ?= 3
FLEET ?= 20

.PHONY: bench
bench: bench-memcached bench-podset bench-etcd ## All benchmarks; ratios in one run, a missed goal is marked

.PHONY: bench-memcached
bench-memcached: $(LOCALKUBE) bin/governor ## Memcached on a real API server, into build/bench.json (COUNTS=10,100 for fewer objects)
	@assets="$$($(LOCALKUBE) envtest-assets)" && KUBEBUILDER_ASSETS="$$assets" go run ./test/bench -counts "$(COUNTS)" -rounds $(ROUNDS)

.PHONY: bench-podset
bench-podset: $(LOCALKUBE) bin/governor ## A PodSet beside a ReplicaSet, 1 to 500 pods and back, into build/bench-podset.json
	@$(LOCALKUBE) build >/dev/null; assets="$$($(LOCALKUBE) envtest-assets)" && KUBEBUILDER_ASSETS="$$assets" go run ./test/bench/podset

.PHONY: bench-etcd
bench-etcd: install ## etcd beside plain StatefulSets, into build/bench-etcd.json (ROUNDS=1 FLEET=3 for a quick look)
	@go run ./test/bench/etcd -rounds $(ROUNDS) -fleet $(FLEET)
