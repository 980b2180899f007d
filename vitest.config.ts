import { defineConfig } from "vitest/config";
import { TotalsReporter } from "./test/helpers/totals-reporter.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    reporters: ["default", new TotalsReporter()],
    // Real firmware boots in some tests, without hardware virtualisation if need be.
    testTimeout: 20_000,
    // What a process does takes milliseconds, or seconds when the machine is busy with other suites.
    expect: { poll: { interval: 25, timeout: 15_000 } },
    coverage: { include: ["src/**"] },
  },
});
