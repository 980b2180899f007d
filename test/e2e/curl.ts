import { run } from "./run.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * Asks by curl.
 * @param words of curl, besides those that make it quiet.
 * @throws {Error} with what curl wrote, when it got no answer.
 */
export async function curl(words: readonly string[]): Promise<Answer> {
  const always = ["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}"];
  const printed = await run(["curl", ...always, ...words]);
  const end = printed.lastIndexOf("\n");
  return { status: Number(printed.slice(end + 1)), body: printed.slice(0, end).trim() };
}
