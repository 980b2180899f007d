import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/helpers/longest-first.ts";
import { projects } from "./test/helpers/projects.ts";
import { TotalsReporter } from "./test/helpers/totals-reporter.ts";

/** Files at a time on two cores. Unit tests, machines in QEMU and browsers compute; other files mostly wait. */
function workers(project: string): number {
  if (project === "console") return 3;
  return project === "unit" || project === "firmware" ? 2 : 4;
}

export default defineConfig({
  test: {
    // What stands beside them here holds in each of them.
    projects: projects.map(({ name, include, exclude }) => ({
      extends: true,
      // Unit tests leave nothing behind, so a worker loads the modules once for all of its files.
      test: {
        name,
        include: [...include],
        exclude: [...exclude],
        isolate: name !== "unit",
        maxWorkers: workers(name),
        globalSetup: name === "system" ? ["test/helpers/cluster-setup.ts"] : [],
        // Projects with as many workers run together, the others after them.
        sequence: { groupOrder: workers(name) },
      },
    })),
    reporters: ["default", new TotalsReporter()],
    sequence: { sequencer: LongestFirst },
    // Real firmware boots in some tests, without hardware virtualisation if need be.
    testTimeout: 60_000,
    // Hooks start processes, which takes as long as the machine lets them.
    hookTimeout: 60_000,
    // What a process does takes milliseconds, or seconds when the machine is busy with other suites.
    expect: { poll: { interval: 25, timeout: 45_000 } },
    // A davit that a test starts compiles for a second without it.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, ".cache/compiled") },
    coverage: { include: ["src/**"] },
  },
});
