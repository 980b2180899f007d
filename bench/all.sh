#!/bin/sh
# Runs all benchmarks of bench/README.md. The file of one that fails stays in bench/results/ as it was.
cd "$(dirname "$0")/.." || exit
export BENCH_RESULTS="$PWD/bench/results"
npm run --silent bundle || exit
failed=

run() {
  node "$@" || failed="$failed
  node $*"
}

run bench/start.ts ${BESIDE:+--beside "$BESIDE"}
run bench/boot.ts
run bench/assets.ts
if node dist/bundle/main.js serve --help | grep -q -e --boot-threads; then
  run bench/boot.ts --threads 2 ipxe ignition metadata storm
  run bench/assets.ts --threads 2 --parts speed
fi
run bench/store.ts
run bench/pauses.ts
run bench/controller.ts
run bench/memory.ts
node tools/generate/bench-pages.ts || exit
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
