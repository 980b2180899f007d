import { stripVTControlCharacters } from "node:util";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import { describeMissing } from "./requirements.ts";

/** Ends a run with what was skipped for want of a program, what failed, and one line of totals. */
export class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // A file, or a suite in it, whose hook failed: its tests did not run.
    const places = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const broken = places.filter((place) => place.errors().length > 0).length;
    const failed = count("failed") + broken + errors.length;
    for (const line of describeMissing()) process.stdout.write(`${line}\n`);
    // Again, after all that a run prints: who reads only the end of a log finds what failed.
    for (const line of failuresOf(modules)) process.stdout.write(`${line}\n`);
    for (const error of errors) process.stdout.write(`failed: outside the tests: ${describeError(error)}\n`);
    const skipped = count("skipped") + count("pending");
    process.stdout.write(`${count("passed")} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}\n`);
  }
}

/** Returns a line for each failed test, suite and file: its place and its first error. */
function failuresOf(modules: readonly TestModule[]): readonly string[] {
  return modules.flatMap((module) => {
    const tests = [...module.children.allTests()].map((test) => ({ name: test.fullName, errors: failedErrors(test) }));
    const suites = [...module.children.allSuites()].map((suite) => ({ name: suite.fullName, errors: suite.errors() }));
    const file = { name: "the file", errors: module.errors() };
    return [file, ...suites, ...tests]
      .filter(({ errors }) => errors.length > 0)
      .map(({ name, errors }) => `failed: ${module.relativeModuleId} > ${name}: ${describeFailure(errors[0])}`);
  });
}

/**
 * Describes a failure in one line of at most 3,000 characters: the first line of its message, its cause, and the other
 * lines. Those of a property have its seed, path and counterexample, which are needed to repeat a rare failure.
 */
function describeFailure(error: Pick<SerializedError, "message" | "cause"> | undefined): string {
  const [first = "no message", ...others] = usefulLines(error?.message);
  const cause = usefulLines(error?.cause?.message).slice(0, 1);
  return [first, ...cause.map((line) => `because of ${line}`), ...others].join(" | ").slice(0, 3_000);
}

function usefulLines(message: unknown): readonly string[] {
  const lines = stripVTControlCharacters(String(message ?? "")).split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("Hint: "));
}

/** An error that no test caught, with what vitest knows of its origin: the test or file that ran, and the frames. */
function describeError(error: SerializedError): string {
  const frames = (error.stack ?? "").split("\n").filter((line) => line.trim().startsWith("at "));
  const origin = ["VITEST_TEST_PATH", "VITEST_TEST_NAME"].map((key) => error[key] as unknown).filter(Boolean);
  const cause = error.cause === undefined ? [] : [`because of ${firstLine(String(error.cause?.message))}`];
  const parts = [`${error.name ?? "Error"}: ${firstLine(error.message)}`, ...cause, ...origin.map(String)];
  return [...parts, ...frames.slice(0, 6).map((line) => line.trim())].join(" | ");
}

function failedErrors(test: TestCase): readonly SerializedError[] {
  const result = test.result();
  return result.state === "failed" ? result.errors : [];
}

function firstLine(message = "no message"): string {
  return message.split("\n", 1)[0]?.slice(0, 300) ?? "";
}
