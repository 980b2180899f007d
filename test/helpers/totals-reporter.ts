import type { Reporter, TestModule } from "vitest/node";
import { describeMissing } from "./requirements.ts";

/** Ends a run with what was skipped for want of a program, and one line of totals. */
export class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // A file, or a suite in it, whose hook failed: its tests did not run.
    const places = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const broken = places.filter((place) => place.errors().length > 0).length;
    const failed = count("failed") + broken + errors.length;
    for (const line of describeMissing()) process.stdout.write(`${line}\n`);
    const skipped = count("skipped") + count("pending");
    process.stdout.write(`${count("passed")} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}\n`);
  }
}
