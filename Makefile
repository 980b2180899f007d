# davit: what a person types. Logic lives in npm scripts and tested .ts files.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Node 24 comes with the lockfile, so only npm is needed. `npm ci` runs when the lockfile changed since the last one.
node_modules/.installed: package-lock.json package.json
	@echo "installing the packages of package-lock.json, which takes up to some minutes"
	@npm ci --no-audit --no-fund --loglevel=error
	@npm run --silent bundle >/dev/null
	@touch $@
	@echo 'davit is bin/davit: export PATH="$(CURDIR)/bin:$$PATH" makes it a command'

.PHONY: help install run test test-unit test-long test-chaos test-chaos-mutants test-store-long test-large-asset test-members test-machines check fix bench bench-all bench-pages bench-store bench-pauses faults ttl-runs boot boot-assets clean
.PHONY: chart chart-tools chart-tools-all cloud-init promtool e2e recording screenshots release
.PHONY: dist test-dist release-dry-run bench-boot bench-start bench-memory bundle image image-dnsmasq fuzz fuzz-store fuzz-members cluster cluster-tools test-cluster-long bench-controller bench-assets test-firmware

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: node_modules/.installed ## install what the lockfile names, Node 24 included

run: install ## serve manifests/quickstart/: boot service on 8080, store on 2379, operations on 8081
	@npm --silent start

# Suites start davit many hundred times. The bundle starts in half of the time that the sources take.
test: install $(if $(DAVIT_TEST_PROGRAM),,bundle) ## run all that a push needs and this machine can run; PROJECT=integration (system, chart, firmware, console) runs one stage
	@DAVIT_TEST_PROGRAM=$(or $(DAVIT_TEST_PROGRAM),bundle) npm --silent test -- $(if $(PROJECT),--project $(PROJECT))

test-unit: install ## run what needs no other program, in under a minute
	@npm --silent run test:unit

# One after another: each of them wants the machine for itself.
.NOTPARALLEL: test-long
test-long: test-store-long test-large-asset test-cluster-long test-members test-machines fuzz fuzz-store fuzz-members test-firmware test-chaos-mutants test-chaos ## what a push does not need: kill loops, floods, fuzz, every firmware, chaos, half a day; make -k goes on after a failure

test-firmware: install ## boot every firmware and loader, one at a time, and write the tables of docs/reference/firmware.md
	@npm --silent run test:firmware

test-cluster-long: install ## remove 5,000 Groups in every way while their machines ask (needs make cluster-tools)
	@npm --silent run test:cluster-long

test-chaos: install ## attack davit as a person who edits, then grants: 50 seeds of 5 minutes, of a directory, a cluster and three members, two hours; ARGS="--seeds 4 --minutes 1" does less (needs make cluster-tools, rsync, vim)
	@npm --silent run test:chaos -- $(ARGS)

test-chaos-mutants: install ## attack copies of davit that lack one rule each: the attack must find each of them, in half an hour (needs rsync, vim)
	@npm --silent run test:chaos-mutants -- $(ARGS)

test-members: install ## histories of three stores on three etcds under faults, checked by porcupine (needs make chart-tools), and the key API of each
	@npm --silent run test:members

test-machines: install ## install machines once in every way, kill davit 200 times around a claim, 10,000 machines at once, 65,536 unknown ones; DAVIT_TEST_KILLS, DAVIT_TEST_MACHINES and DAVIT_TEST_STRANGERS change the numbers (needs QEMU, etcd and make cluster-tools)
	@npm --silent run test:machines

test-store-long: install ## kill davit 200 times under 64 writers; DAVIT_TEST_SEED=N repeats a run's choices
	@npm --silent run test:store-long

test-large-asset: install ## fetch an asset of 1 GiB while its server breaks off twice and davit is killed; DAVIT_TEST_ASSET_MIB=N fetches N MiB
	@npm --silent run test:large-asset

check: install ## format, lint, types, import layers, dead code, what is generated
	@npm --silent run check

fix: install ## format, and mend what the linter can
	@npm --silent run fix

bundle: install ## dist/bundle/: the program as the image has it
	@npm --silent run bundle

dist: install ## dist/release/: archives with davit and Node, Debian packages, for x64 and arm64; ARCH=x64 makes one
	@npm --silent run dist -- $(ARCH)

test-dist: install ## build the archives and packages twice, and install the package in a bare Debian, without and with systemd (needs root, mmdebstrap)
	@npm --silent run test:dist

# Docker where its daemon answers, else buildah.
image: ## build the container image; IMAGE=, PLATFORM=, BASE= and BUILD_BASE= say what, for what, and from what
	@test/image/build.sh

image-dnsmasq: ## build the image for the chart's dnsmasq: DHCP, TFTP, iPXE, GRUB, shim; the same variables without BASE
	@test/image/build.sh dnsmasq

bench-all: install ## every benchmark below, an hour and a half on a quiet machine, into bench/results/, and the page; MATCHBOX=path and BESIDE=path as below
	@BESIDE=$(BESIDE) npm --silent run bench:all

bench-pages: install ## the tables and plots of bench/README.md, from bench/results/
	@npm --silent run bench:pages

bench: install ## the cost of a boot script at 10 to 100,000 groups, beside bare node:http
	@npm --silent run bench

bench-boot: install ## the boot service: speed (beside MATCHBOX=path, too), signatures, a storm, changes, ten minutes; BENCH_QUICK=1 is shorter
	@npm --silent run bench:boot

bench-assets: install ## a hot asset beside nginx (needs nginx-light), and 10,000 clients that do not read, six minutes
	@npm --silent run bench:assets

bench-controller: install ## how soon a change in a cluster is what machines get, at 10,000 objects, five minutes (needs make cluster-tools)
	@npm --silent run bench:controller

bench-start: install ## what a start takes: --help, lint, serve until a machine is answered; BESIDE=path of another bundle's main.js
	@npm --silent run bench:start -- $(if $(BESIDE),--beside $(BESIDE))

bench-store: install ## the store beside etcd 3.4 (needs etcd-server and wrk): speed, watches, members, memory, half an hour
	@npm --silent run bench:store

faults: install ## one davit, and three on three etcds, lose what they need, an hour; writes bench/faults.md (needs root, etcd-server, faketime and make cluster-tools)
	@npm --silent run faults -- --write

ttl-runs: install ## refresh keys with a ttl while three davits and three etcds have faults, a minute each: no key may end early; ARGS="--runs 10 paused" makes ten runs of the faults with this word (needs etcd-server)
	@npm --silent run ttl-runs -- $(ARGS)

bench-memory: install ## the memory of davit: idle, with objects, machines, followers and connections, ten minutes
	@npm --silent run bench:memory

bench-pauses: install ## how long requests wait beside a listing, and a snapshot, of a million keys, four minutes
	@npm --silent run bench:pauses

fuzz: install ## mutants of requests, the console's forms, manifests, templates, matchbox trees, logs, backups and copies, DAVIT_FUZZ_SECONDS (60) for each; DAVIT_FUZZ_SEED repeats a run
	@DAVIT_FUZZ_SECONDS=$${DAVIT_FUZZ_SECONDS:-60} npm --silent run fuzz

fuzz-store: install ## compare the store with etcd 3.4, FUZZ_OPERATIONS (1,000,000) random operations from FUZZ_SEED on
	@FUZZ_OPERATIONS=$${FUZZ_OPERATIONS:-1000000} npm --silent run fuzz:store

fuzz-members: install ## the same with three members of one store: each request goes to any of them
	@FUZZ_OPERATIONS=$${FUZZ_OPERATIONS:-200000} npm --silent run fuzz:members

boot-assets: ## build assets/quickstart/ from Debian's cloud kernel and busybox; ARCH=arm64 builds assets/quickstart-arm64/
	@npm --silent run boot-assets -- $(if $(ARCH),assets/quickstart-$(ARCH) $(ARCH))

boot: install ## boot a QEMU machine from the running quickstart (make run or make cluster in another terminal)
	@npm --silent run boot

recording: install ## record a first boot for README.md: docs/first-boot.svg (needs script, QEMU and make boot-assets)
	@npm --silent run recording

screenshots: install ## take the console's pictures for docs: docs/console/*.png (needs Chromium and make cluster-tools)
	@npm --silent run screenshots

release: install ## check and build release VERSION, and tag it; pushes nothing
	@npm --silent run release -- $(VERSION)

release-dry-run: install chart-tools ## build what a release has, into dist/, and print its notes; VERSION as above
	@npm --silent run release -- $(VERSION) --dry

cloud-init: ## unpack Debian's cloud-init for the test that asks davit with it; installs nothing
	@test/clients/cloud-init/fetch.sh

promtool: ## unpack Debian's promtool for the tests of the chart's alerts; installs nothing
	@tools/build/promtool.sh

cluster-tools: install ## build kube-apiserver, etcd and kubectl into the cache directory; some eight minutes, once
	@npm --silent run cluster-tools

chart: install ## make what is made of crds/ and of the chart: its CRDs and README, manifests/ (needs make chart-tools)
	@npm --silent run chart

chart-tools: install ## build helm, helm-unittest, kubeconform, kstatus, linearizable and actionlint into the cache directory; some six minutes, once
	@npm --silent run chart-tools

chart-tools-all: install ## the same with Helm 3, helm-docs and kube-score, six minutes more
	@npm --silent run chart-tools -- --all

e2e: install ## the image and the chart on the cluster in KUBECONFIG, with machines that boot from it; says what it needs
	@npm --silent run test:e2e

cluster: install ## a throw-away Kubernetes API server with davit beside it, until Ctrl-C
	@npm --silent run cluster

clean: ## remove what was built, installed and stored
	rm -rf node_modules dist coverage data assets .cache
