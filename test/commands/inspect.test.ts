import { expect, it } from "vitest";
import { runCommand } from "../helpers/command-under-test.ts";

it.each([
  { words: [], problem: "No single path: give one backup or one data directory" },
  { words: ["a", "b"], problem: "No single path: give one backup or one data directory" },
  { words: ["a", "--format", "json"], problem: 'Unknown option "--format": give one backup or one data directory' },
  { words: ["--format=json"], problem: 'Unknown option "--format=json": give one backup or one data directory' },
])("davit inspect $words names what is wrong", async ({ words, problem }) => {
  const { code, output, errors } = await runCommand(["inspect", ...words]);
  expect({ code, output }).toEqual({ code: 2, output: "" });
  expect(errors).toContain(problem);
  expect(errors).toContain("See davit inspect --help");
});
