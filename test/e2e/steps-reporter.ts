import { stripVTControlCharacters } from "node:util";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import { systemClock } from "../../src/lib/clock.ts";

/** Tells each step when it ends, with its time and what it found, and at the end all times once more. */
export class StepsReporter implements Reporter {
  readonly #startMs = systemClock.monotonicMs();
  readonly #rows: string[] = [];

  onTestCaseResult(step: TestCase): void {
    const { state, errors = [] } = step.result();
    // What comes after a failure is not run.
    if (state === "pending") return;
    const took = `${seconds(step.diagnostic()?.duration ?? 0)} s`;
    const row = `${took.padStart(8)}  ${words[state]}  ${step.fullName}`;
    this.#rows.push(row);
    say(`[${seconds(systemClock.monotonicMs() - this.#startMs).padStart(6)}]${row}`);
    for (const { message } of step.annotations()) say(indented(message));
    for (const error of errors) say(indented(textOf(error)));
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const beside = [...modules.flatMap((module) => module.errors()), ...errors];
    for (const { message } of beside) say(message);
    const count = (word: string) => this.#rows.filter((row) => row.includes(`  ${word}  `)).length;
    const failed = count(words.failed) + beside.length;
    const skipped = count(words.skipped);
    say(`\n${this.#rows.join("\n")}`);
    say(`${seconds(systemClock.monotonicMs() - this.#startMs).padStart(6)} s  altogether`);
    say(`${count(words.passed)} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
  }
}

const words = { passed: "ok    ", failed: "FAILED", skipped: "left  " } as const;

function say(line: string): void {
  process.stdout.write(`${process.stdout.isTTY === true ? line : stripVTControlCharacters(line)}\n`);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, "          | ");
}

function textOf({ message, stack, diff }: Partial<Record<"message" | "stack" | "diff", unknown>>): string {
  return [stack ?? message, diff].filter((part) => typeof part === "string").join("\n");
}
