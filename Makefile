# Governor. `make help` lists what can be made.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

LOCALKUBE  := bin/localkube
KUBECONFIG_FILE := $(CURDIR)/build/kubeconfig

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##: the local cluster

.PHONY: $(LOCALKUBE)
$(LOCALKUBE):
	@mkdir -p bin
	@test -x $@ || echo "building localkube (the first time takes a minute)"
	@cd localkube && go build -ldflags "-s -w" -o ../$@ .

.PHONY: cluster
cluster: $(LOCALKUBE) ## Build what is missing, bring up a real Kubernetes on this machine, and print its kubeconfig
	@$(LOCALKUBE) up --kubeconfig $(KUBECONFIG_FILE)

.PHONY: cluster-down
cluster-down: $(LOCALKUBE) ## Take the local cluster down; nothing is left
	@$(LOCALKUBE) down
