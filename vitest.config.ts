import { defineConfig } from "vitest/config";
import { TotalsReporter } from "./test/helpers/totals-reporter.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    reporters: ["default", new TotalsReporter()],
    // Real firmware boots in some tests, without hardware virtualisation if need be.
    testTimeout: 20_000,
    coverage: { include: ["src/**"] },
  },
});
