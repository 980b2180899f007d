/** A boot service with the given number of groups, or machines of one list. */

import { startBootServer } from "./boot-server.ts";
import { answerQuestions, cpuMicroseconds } from "./child.ts";
import { benchDocuments, shapes } from "./machines.ts";

answerQuestions(async ({ kind, directory, groups, shape, options }) => {
  if (kind === "cpu") return { microseconds: cpuMicroseconds() };
  const documents = benchDocuments(
    Number(groups),
    shapes.find((each) => each === shape),
  );
  const { port } = await startBootServer({ directory: String(directory), documents, options });
  return { port };
});
