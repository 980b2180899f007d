import { defineConfig } from "vitest/config";
import { TotalsReporter } from "./test/helpers/totals-reporter.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    reporters: ["default", new TotalsReporter()],
    // Most files wait for processes of their own: two at a time take little more than half of the time.
    maxWorkers: 2,
    // Real firmware boots in some tests, without hardware virtualisation if need be.
    testTimeout: 60_000,
    // Hooks start processes, which takes as long as the machine lets them.
    hookTimeout: 60_000,
    // What a process does takes milliseconds, or seconds when the machine is busy with other suites.
    expect: { poll: { interval: 25, timeout: 45_000 } },
    coverage: { include: ["src/**"] },
  },
});
