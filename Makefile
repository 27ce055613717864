# ParallelFS Operator. `make help` lists what there is. Tools are Go programs, pinned in the modules of tools/ and built
# once per machine; test clusters and images need Debian or Ubuntu (see test/cluster and images).
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export KUBECONFIG := $(CURDIR)/test/cluster/.work/kubeconfig
tool = $(shell tools/build.sh --link bin $(1) >&2 && echo bin/$(1))
RELEASE ?= parallelfs-operator
NAMESPACE ?= parallelfs-system
FUZZTIME ?= 10s
SCALE_NODES ?= 125 250
# LIFE is how often `make life` makes each disruption, in each way.
LIFE ?= 2
# RECOVERIES is how often `make recoveries` loses the metadata of a filesystem in each way.
RECOVERIES ?= 10
# COPIES is how often `make copies` makes each event happen. MOOSEFS is a folder with sbin and bin of the MooseFS to use instead of the installed one.
COPIES ?= 3
CREATES ?= 2000
MOOSEFS ?=
# All programs and tests are compiled alike, so that one build of a package serves all of them, in any folder.
export CGO_ENABLED := 0
export GOFLAGS ?= -trimpath
# gotest is `go test`, with its events in REPORTS for test/tiers. Lint has vetted what it compiles.
gotest = $(call tool,gotestsum) --format pkgname $(if $(REPORTS),--jsonfile $(REPORTS)/$@.json) -- -vet=off -ldflags=-s

##@ The two commands

.PHONY: demo
demo: ## Bring up a cluster, install the operator, make a MooseFS filesystem, benchmark it, print the tables.
	test/demo/run.sh

.PHONY: test
test: ## Run all tests, tiers side by side: generated files, lint, unit, chart, disks, control plane, virtual machine, cluster.
	test/tiers/run.sh

##@ Tests

.PHONY: test-unit
test-unit: ## Pure functions, golden files, parsers on real output.
	$(gotest) -timeout 3h ./...

.PHONY: test-disks
test-disks: ## Run the tests that need root, loop devices, Open MPI and a MooseFS.
	. tools/lib.sh; need losetup=mount lsblk=util-linux sfdisk=fdisk mkfs.ext4=e2fsprogs mkfs.xfs=xfsprogs mkfs.btrfs=btrfs-progs \
	  pvcreate=lvm2 cryptsetup=cryptsetup-bin mpirun=openmpi-bin mpicc=libopenmpi-dev \
	  mfsmaster=moosefs-master mfsmetalogger=moosefs-metalogger mfscli=moosefs-cli mfsmount=moosefs-client; \
	hold_loop_devices; \
	$(gotest) -tags disks -count=1 -p 1 -timeout 3h $$( ((EUID == 0)) || echo -exec sudo) \
	  $$(packages_with disks internal/node internal/backend/moosefs test/doubles)

.PHONY: copies
copies: ## Compare both ways of a MooseFS master to save its changes: copies that can be read after COPIES (3) joins, restarts and kills each. Twenty minutes.
	. tools/lib.sh; export PATH="$(if $(MOOSEFS),$(MOOSEFS)/sbin:$(MOOSEFS)/bin:)$$PATH"; \
	need mfsmaster=moosefs-master mfsmetalogger=moosefs-metalogger mfsmount=moosefs-client; \
	as_root=(); ((EUID == 0)) || as_root=(-exec "sudo COPIES=$(COPIES) PATH=$$PATH"); \
	COPIES=$(COPIES) go test -vet=off -ldflags=-s -tags disks,copies -count=1 -timeout 3h -parallel 4 -v -run TestCopiesCanBeRead \
	  "$${as_root[@]}" ./internal/backend/moosefs

.PHONY: copies-rates
copies-rates: ## Compare the rates of mdtest's creates in both ways, in turn, COPIES (3) times. TMPDIR chooses the disk, CREATES (2000) the number. Needs mdtest.
	. tools/lib.sh; export PATH="$(if $(MOOSEFS),$(MOOSEFS)/sbin:$(MOOSEFS)/bin:)$$PATH"; \
	need mfsmaster=moosefs-master mfsmount=moosefs-client mpirun=openmpi-bin; \
	command -v mdtest >/dev/null || die "mdtest is not in PATH; https://github.com/hpc/ior has it"; \
	as_root=(); ((EUID == 0)) || as_root=(-exec "sudo COPIES=$(COPIES) CREATES=$(CREATES) PATH=$$PATH"); \
	COPIES=$(COPIES) CREATES=$(CREATES) go test -vet=off -ldflags=-s -tags disks,copies -count=1 -timeout 3h -v -run TestRatesOfCreates \
	  "$${as_root[@]}" ./internal/backend/moosefs

.PHONY: test-envtest
test-envtest: ## Controllers, admission and the chart's policies against a real kube-apiserver and etcd.
	GOTEST='$(gotest)' test/envtest/run.sh

.PHONY: test-chart
test-chart: ## Lint the chart and test its templates.
	$(call tool,helm) lint charts/parallelfs-operator --strict
	. tools/lib.sh; PROMTOOL=$$(unpacked prometheus usr/bin/promtool); export PROMTOOL; \
	HELM=$(CURDIR)/bin/helm $(gotest) -tags chart ./charts/

.PHONY: dashboards
dashboards: ## Write the Grafana dashboards of the chart.
	cd tools/dashboards && go run . $(CURDIR)/charts/parallelfs-operator/files/dashboards

.PHONY: test-vm
test-vm: ## The node binary on a Debian kernel under QEMU, with two NUMA nodes and NVMe disks. LUSTRE=DIR: on a real Lustre, docs/testing.md.
	GOTEST='$(gotest)' test/vm/run.sh

.PHONY: test-vm-node
test-vm-node: ## A virtual machine joins a cluster of kind as a node, and your Lustre runs there through the operator. LUSTRE=DIR, docs/testing.md. Over an hour; no part of `make test`.
	GOTEST='$(gotest)' LUSTRE='$(LUSTRE)' test/vmnode/run.sh

.PHONY: test-e2e
test-e2e: ## Real MooseFS, FUSE mounts, MPI jobs and BeeGFS on kind. KEEP_CLUSTER=1 leaves it up; BEEGFS_IMAGES: docs/testing.md.
	test/e2e/run.sh

.PHONY: stories
stories: ## Run all stories on kind, also those that `make test` leaves out (label more, docs/testing.md). Over an hour.
	MORE=1 test/e2e/run.sh --timeout=3h

.PHONY: experiments
experiments: ## Run every published experiment, reduced, on kind: MooseFS, and BeeGFS by doubles. EXPERIMENTS="moosefs netapp" runs those whose names begin so, KEEP_CLUSTER=1 leaves it up.
	EXPERIMENTS="$(or $(EXPERIMENTS),all)" test/e2e/run.sh --focus='published experiments'

.PHONY: overhead
overhead: ## Compare what the operator measures with what the same tools measure by hand in the same pods, on kind.
	OVERHEAD=1 test/e2e/run.sh

.PHONY: life
life: ## Compare what programs feel of each disruption, made by the operator, with what they feel of the same steps made by hand, on kind.
	LIFE=$(LIFE) PROCS=1 test/e2e/run.sh --timeout=6h

.PHONY: recoveries
recoveries: ## Lose the metadata of RECOVERIES (10) filesystems of MooseFS on kind, and recover each from a metalogger and then from a backup.
	RECOVERIES=$(RECOVERIES) PROCS=$(or $(PROCS),1) test/e2e/run.sh --timeout=6h

.PHONY: scale
scale: ## Measure what filesystems of SCALE_NODES ("125 250") nodes with 24 disks each and SCALE_RUNS (200) BenchmarkRuns cost: writes, CPU, memory, sizes of objects. Fails when a goal is missed. Half an hour at most.
	SCALE_RUNS=$(SCALE_RUNS) test/scale/run.sh $(SCALE_NODES)

.PHONY: kills
kills: ## Kill what is tested at each write and step, where `make test` takes some of them by chance: unit, control plane, disks.
	GOTEST='$(gotest)' test/places/run.sh

.PHONY: contracts
contracts: ## Hold each saved output of each benchmark to all of the contract, where `make test` takes some of them by chance.
	CONTRACTS=all $(gotest) -count=1 -timeout 3h -run '^TestContract$$' ./benchmarks/...

.PHONY: simulations
simulations: ## Run all rounds of the simulations of benchmarks/stats, where `make test` runs few, and write docs/simulations.md.
	SIMULATIONS=all $(gotest) -count=1 -timeout 3h ./benchmarks/stats

.PHONY: mutants
mutants: ## Change each decision of PACKAGE="internal/plan …" and run its tests, with TAGS=disks for those of disks, without those of SKIP: fails when a change is not noticed and not listed.
	go run ./test/mutants -tags "$(TAGS)" -skip "$(SKIP)" $(or $(PACKAGE),internal/plan)

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME (10s) each.
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' benchmarks internal | xargs -n1 dirname | sort -u); do \
	  for name in $$(grep -rhoP '^func \KFuzz\w+' $$package/*_test.go); do \
	    echo "== ./$$package $$name"; go test ./$$package -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x || exit 1; done; done

.PHONY: bench
bench: ## Measure the speed of parsers and planners.
	go test -run '^$$' -bench . -benchmem ./benchmarks/... ./internal/...

##@ Code

.PHONY: manifests
manifests: ## Generate deep copies, CRDs, RBAC and the chart's copies of them.
	$(call tool,controller-gen) object:headerFile=/dev/null paths=./api/... crd:maxDescLen=2048 output:crd:dir=config/crd/bases
	bin/controller-gen rbac:roleName=manager paths=./controllers/... output:rbac:dir=config/rbac
	bin/controller-gen rbac:roleName=manager paths=./controllers/benchmarkrun paths=./controllers/lease paths=./controllers/refusals output:rbac:dir=config/rbac/volumes
	CONTROLLER_GEN=bin/controller-gen charts/generate.sh

.PHONY: verify
verify: manifests ## Regenerate everything, and fail when that changes a file.
	gofmt -l $$(git ls-files '*.go') | (! grep .) || (echo 'run: gofmt -w on these files' && exit 1)
	go mod tidy -diff
	@git diff --exit-code || (echo 'generated files are out of date: commit what `make manifests` changed' && exit 1)
	@test -z "$$(git ls-files --others --exclude-standard -- api config charts)" || \
	  (echo 'generated files are not committed:' && git ls-files --others --exclude-standard -- api config charts && exit 1)

.PHONY: lint
lint: ## Run golangci-lint, which also holds the direction of imports, and shellcheck on all scripts.
	. tools/lib.sh; need shellcheck=shellcheck; shellcheck -x $$(git ls-files '*.sh' .ci/run test/vm/init test/vmnode/initrd-init)
	$(call tool,golangci-lint) run ./...

##@ Programs

.PHONY: kubectl-pfs
kubectl-pfs: ## Build the plugin of kubectl (docs/kubectl-pfs.md) as dist/kubectl-pfs.
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o dist/kubectl-pfs ./cmd/kubectl-pfs

##@ Images and cluster

.PHONY: images
images: ## Build the container images that are missing or outdated.
	images/build.sh

.PHONY: images-push
images-push: ## Build the images that the chart uses and push them: REGISTRY=registry.example.com/team, TAG (default: the chart's appVersion). Writes dist/images.yaml, values for the chart.
	images/build.sh --registry "$(REGISTRY)" $(if $(TAG),--tag "$(TAG)") --values dist/images.yaml

.PHONY: cluster-up
cluster-up: ## Bring up the kind cluster (three workers). Safe to run twice.
	test/cluster/up.sh

.PHONY: cluster-down
cluster-down: ## Remove the kind cluster and all that is on it.
	test/cluster/down.sh

.PHONY: deploy
deploy: ## Bring up the cluster, build and load the images that the demo needs, and install or upgrade the operator.
	test/cluster/prepare.sh manager node agent benchmarks moosefs-4.57.5 mpi-operator
	test/cluster/deploy.sh $(RELEASE) $(NAMESPACE)

.PHONY: clean
clean: ## Remove what builds left in this folder. The cache of tools and the images stay.
	rm -rf bin dist

.PHONY: help
help: ## Print this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
