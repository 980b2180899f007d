import { defineConfig } from "vitest/config";
import { StepsReporter } from "./steps-reporter.ts";

/** Each file is a story, told in its order: a step that fails ends it. `make e2e` runs them, `make test` does not. */
export default defineConfig({
  test: {
    include: ["test/e2e/*.e2e.ts"],
    fileParallelism: false,
    reporters: [new StepsReporter()],
    bail: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    expect: { poll: { interval: 200, timeout: 90_000 } },
  },
});
