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
# One variant of the Kubernetes libraries is compiled for all programs and tests, and one more with the race detector.
# Without the folder's name in what is compiled, a clone in another folder uses the same cache.
export CGO_ENABLED ?= 0
export GOFLAGS := -trimpath -buildvcs=false

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: install plugin ## See it work: cluster, operator, an application that is scaled, broken, repaired and upgraded
	@go run ./examples/demo

.PHONY: test
test: ## The tests of each change (15 minutes; the first time 40), with a summary at the end: what CI runs after make check
	@tools/ci/run prefetch build unit sim envtest examples smoke

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

# LEAN=1 builds what is shipped: without grpc's request tracing nothing calls methods by names that only the running
# program knows, and the linker leaves out those without a caller: a fifth of the binary, and of the memory that its
# pages take. Managed fields that are alike in many objects are kept once. What is generated for Kubernetes' own API is
# large and not hurried, so none of it is inlined. It compiles the Kubernetes libraries once more, so tests do without.
LEAN ?=
GOLEAN := $(if $(LEAN),-tags grpcnotrace$(comma)fieldsv1string -gcflags k8s.io/api/...=-l) -ldflags "-s -w"
comma := ,

.PHONY: bin/governor
bin/governor:
	@mkdir -p bin
	@go build $(GOLEAN) -o $@ ./cmd/governor

.PHONY: bin/kubectl-governor
bin/kubectl-governor:
	@mkdir -p bin
	@mkdir -p bin
	@go build -ldflags "-s -w" -o $@ ./cmd/kubectl-governor

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

# A module of its own for each tool, so that none is built before it is needed.
GOTESTSUM := go tool -modfile=$(CURDIR)/tools/test/go.mod gotestsum
LINT := go tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint-kube-api-linter
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod examples/*/go.mod))
CI := $(CURDIR)/build/ci$(shell mkdir -p build/ci)
# sum NAME runs go test through gotestsum, which repeats each failure at the end, and leaves JUnit and JSON in build/ci.
sum = $(GOTESTSUM) --format pkgname-and-test-fails --hide-summary=skipped --junitfile $(CI)/$(1).xml --jsonfile $(CI)/$(1).json
# A test that needs a cluster or an API server and fails runs once more, alone, and is listed as a flake. More than three
# are a real failure.
RERUN = --rerun-fails=1 --rerun-fails-max-failures=3
# T=TestX runs one test in each of the following.
T ?=
ONLY = $(if $(T),-run '^$(T)$$')

.PHONY: check
check: ## Before each commit (90 seconds): formatting, lint with the import rules of the house, generated files, words, docs
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	@for module in $(MODULES); do (cd $$module && go build ./...) || exit 1; done
	@go test ./config/... ./test/docstest/... | { grep -v '^ok\|no test files' || true; }
	@for module in . $(filter-out . examples/%,$(MODULES)); do (cd $$module && $(LINT) run ./...) || exit 1; done
	@$(MAKE) --no-print-directory -C examples/chocolate-factory verify

.PHONY: vulnerabilities
vulnerabilities: ## Known vulnerabilities in what the operator is built from, where the database can be reached
	@said="$$(go tool -modfile=tools/vuln/go.mod govulncheck ./... 2>&1)" && echo "$$said" || \
	{ grep -q 'fetching vulnerabilities' <<<"$$said" && echo "vulnerabilities: not checked, the database cannot be reached from here" || \
	{ echo "$$said"; exit 1; }; }

.PHONY: test-prefetch
test-prefetch: ## Download the modules of everything that the tests build, with three tries
	@for module in $(MODULES) tools/gen tools/test; do \
	for try in 1 2 3; do (cd $$module && go mod download) && continue 2; sleep $$try; done; \
	echo "the modules of $$module cannot be downloaded: is the module proxy reachable?"; exit 1; done

.PHONY: test-build
test-build: $(LOCALKUBE) bin/governor bin/kubectl-governor ## Build what the tests use, before any cluster is up
	@$(LOCALKUBE) build >/dev/null
	@$(LOCALKUBE) envtest-assets >/dev/null
	@go vet ./...
	@cd localkube && go vet ./...

# Packages that share memory between goroutines; the race detector finds nothing in the others, and costs four times the time.
RACE := ./engine/... ./operator/... ./kube/... ./cmd/... ./apps/etcd/driver ./apps/podset/driver ./lifecycle/sim ./lifecycle/chaos/... ./test/consistencyclient ./test/chaos
# Exhaustive worlds and simulated scenarios.
SIM := ./apps/etcd ./apps/etcd/legacy ./apps/etcd/model ./apps/memcached/model ./apps/podset/model ./test/fakeapp
CLUSTER_TESTS := ./test/envtest ./test/e2e ./test/bench/... ./scaffold

.PHONY: test-unit
test-unit: ## Unit tests; with the race detector where memory is shared
	@CGO_ENABLED=1 $(call sum,unit-race) -- -race -timeout 20m $(ONLY) $(RACE)
	@$(call sum,unit) -- -timeout 20m $(ONLY) $$(go list ./... | grep -vxF "$$(go list $(RACE) $(SIM) $(CLUSTER_TESTS))")
	@cd localkube && $(call sum,unit-localkube) -- -timeout 20m $(ONLY) $$(go list ./... | grep -v -e /e2e -e /storage)

# The number of simulated scenarios of each test; make test-all has no limit.
SCENARIOS ?= 500

.PHONY: test-sim
test-sim: ## Exhaustive worlds and simulated scenarios (SCENARIOS=500 of each kind)
	@GOVERNOR_SIM_RUNS=$(SCENARIOS) $(call sum,sim) -- -timeout 60m $(ONLY) $(SIM)

.PHONY: sim
sim: ## Simulated scenarios: SEED=n replays one, RUNS=n runs more seeds
	@GOVERNOR_SIM_SEED=$(SEED) GOVERNOR_SIM_RUNS=$(RUNS) go test -count=1 -v -run '^TestScenario' ./apps/... ./test/fakeapp

.PHONY: test-envtest
test-envtest: $(LOCALKUBE) ## Against a real API server
	@assets="$$($(LOCALKUBE) envtest-assets)" && export KUBEBUILDER_ASSETS="$$assets" && \
	$(call sum,envtest) $(RERUN) --rerun-fails-report=$(CI)/envtest.flakes --packages ./test/envtest -- -timeout 20m $(ONLY) && \
	cd localkube && $(call sum,envtest-storage) -- -timeout 20m $(ONLY) ./storage/...

.PHONY: test-examples
test-examples: $(LOCALKUBE) ## Operators of others, against this working tree: the chocolate factory, and a new project
	@assets="$$($(LOCALKUBE) envtest-assets)" && export KUBEBUILDER_ASSETS="$$assets" && \
	(cd examples/chocolate-factory && $(call sum,chocolate) -- -timeout 20m ./...) && \
	$(call sum,scaffold) -- -count=1 -timeout 20m -skip '^TestTheGuide$$' ./scaffold

##: tests on a real cluster; each has a cluster of its own, which is taken down at the end

SMOKE_IMAGES := memcached-1.6.18 etcd-3.5 etcd-3.6 etcd-3.7
E2E_IMAGES := $(SMOKE_IMAGES) memcached-1.6.38 etcd-3.3 etcd-3.4
PARALLEL := $(shell nproc)
# The tests of the gate, one a line; a unit test checks that each exists.
SMOKE = $(if $(T),^$(T)$$,$(shell grep -v '^\#' test/e2e/smoke/tests.txt | paste -sd '|'))
# Node faults disturb the whole cluster; fast node detection makes them short, and the other tests fragile.
NODES := ^(TestAPIServerOutage|TestNodeLoss|TestEtcdServesWhileANodeIsDown|TestEtcdWaitsForANodeInMaintenance|TestEtcdMovesMemberToZoneWithRoom)$$
GUIDE := ^(TestAuthoringGuide|TestChocolateFactory)$$
cluster-tests = $(call sum,$(1)) $(RERUN) --rerun-fails-report=$(CI)/$(1).flakes --packages ./test/e2e -- -count=1 -parallel $(PARALLEL)

.PHONY: test-smoke
test-smoke: $(LOCALKUBE) bin/governor bin/kubectl-governor ## The most telling tests on a real cluster, in five minutes
	@tools/ci/with-cluster smoke $(SMOKE_IMAGES) -- $(call cluster-tests,smoke) -timeout 20m -run '$(SMOKE)'

.PHONY: e2e
e2e: $(LOCALKUBE) bin/governor bin/kubectl-governor ## All tests on a real cluster but those of other targets (30 minutes)
	@tools/ci/with-cluster e2e $(E2E_IMAGES) -- $(call cluster-tests,e2e) -timeout 75m $(or $(ONLY),-skip '$(NODES)|$(GUIDE)')

.PHONY: e2e-nodes
e2e-nodes: $(LOCALKUBE) bin/governor bin/kubectl-governor ## Tests that take nodes and the API server away, one after the other
	@tools/ci/with-cluster nodes --fast-node-detection $(E2E_IMAGES) -- $(call cluster-tests,e2e-nodes) -timeout 40m -run '$(if $(T),^$(T)$$,$(NODES))'

.PHONY: guide
guide: $(LOCALKUBE) bin/governor bin/kubectl-governor ## The authors' guide, step by step: in a new project, and on a real cluster
	@assets="$$($(LOCALKUBE) envtest-assets)" && KUBEBUILDER_ASSETS="$$assets" $(call sum,guide-scaffold) -- -count=1 -timeout 20m -run '^TestTheGuide$$' ./scaffold
	@tools/ci/with-cluster guide $(SMOKE_IMAGES) -- $(call cluster-tests,guide) -timeout 40m -run '$(GUIDE)'

.PHONY: test-localkube
test-localkube: ## The local cluster itself: networking, volumes, faults, and that nothing is left
	@cd localkube && $(call sum,localkube) -- -count=1 -timeout 30m $(ONLY) ./e2e

.PHONY: test-all
test-all: ## Everything but chaos, soak and the full benchmarks, before an issue is called done (100 minutes)
	@SCENARIOS= LEAN=1 tools/ci/run check prefetch build unit sim envtest examples smoke e2e e2e-nodes localkube guide replays bench vulnerabilities

.PHONY: test-e2e test-e2e-nodes test-guide test-replays test-bench test-vulnerabilities
test-e2e: e2e
test-e2e-nodes: e2e-nodes
test-guide: guide
test-replays: replays
test-vulnerabilities: vulnerabilities
test-bench:
	@$(MAKE) --no-print-directory bench COUNTS=10 ROUNDS=1 FLEET=2

.PHONY: ci-last
ci-last: ## The summary of the newest run of make test or of CI on this machine
	@last="$$(ls -1dt $${XDG_CACHE_HOME:-$$HOME/.cache}/governor/ci/*/ 2>/dev/null | head -1)"; \
	test -n "$$last" && cat "$$last/summary.txt" && echo "logs: $$last" || echo "no run is kept on this machine"

##: the adversary

# SECONDS is a variable of bash, too, and counts there; make's own is what counts here.
SEED_OR_RANDOM = $(or $(SEED),random)
REPLAY ?=
LAYOUT ?= 3-tls
# The commit of the release that runs beside this one; empty for none.
OTHER ?= HEAD~1
OTHER_COMMIT = $(if $(OTHER),$(shell git rev-parse --short --verify --quiet '$(OTHER)^{commit}'))
OTHER_IMAGE = $(if $(OTHER_COMMIT),ghcr.io/governor-dev/governor:$(OTHER_COMMIT))

.PHONY: other-release
other-release: ## Build the operator's image of another commit, OTHER=HEAD~1
	@rm -rf build/other && mkdir -p build/other
	@test -z "$(OTHER_COMMIT)" || { git archive $(OTHER_COMMIT) | tar -x -C build/other; \
	(cd build/other && go build $(GOLEAN) -o bin/governor ./cmd/governor); \
	sed -i 's|^name: .*|name: $(OTHER_IMAGE)|' build/other/config/image.yaml; }

.PHONY: chaos
chaos: $(LOCALKUBE) bin/governor other-release ## Do to a cluster all that users and machines do: SECONDS=600 SEED=random; REPLAY="..." LAYOUT=3-tls OTHER=HEAD~1 replays a failure
	@tools/ci/with-cluster chaos --fast-node-detection memcached-1.6.38 etcd-3.6 etcd-3.7 -- bash -euc ' \
	test -z "$(OTHER_COMMIT)" || $$E2E_LOCALKUBE image build build/other/config/image.yaml --load >/dev/null; \
	kubectl apply --server-side -f dist/install.yaml >/dev/null; \
	kubectl -n governor-system rollout status deployment/governor --timeout=120s; \
	go run ./test/chaos -localkube "$$E2E_LOCALKUBE" -seconds $(or $(SECONDS),600) -seed $(SEED_OR_RANDOM) -layout $(LAYOUT) -replay "$(REPLAY)" -other-release "$(OTHER_IMAGE)"'

.PHONY: replays
replays: ## Play what the adversary once found again, a minute each: test/chaos/replays.txt
	@$(MAKE) --no-print-directory chaos OTHER= REPLAY="$$(grep -v '^#' test/chaos/replays.txt | paste -sd ';')"

.PHONY: soak
soak: ## What CI has no time for: four hours of chaos, all small worlds and a million simulated scenarios of etcd (4 hours on two cores)
	@$(MAKE) --no-print-directory chaos SECONDS=14400
	@GOVERNOR_WORLDS=all go test -count=1 -timeout 2h -run 'SmallWorld' ./apps/etcd
	@GOVERNOR_SIM_RUNS=1000000 go test -count=1 -timeout 48h -v -run '^TestScenarios$$' ./apps/etcd/model

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
