/** The yardstick: `node:http` and nothing else, with the bytes that it is given. */

import { createServer } from "node:http";
import { answerQuestions, cpuMicroseconds } from "./child.ts";

answerQuestions(async (question) => {
  if (question.kind === "cpu") return { microseconds: cpuMicroseconds() };
  const { contentType, body } = question;
  const text = String(body);
  const server = createServer((_request, response) => {
    response.writeHead(200, {
      "Content-Type": String(contentType),
      "Cache-Control": "no-store",
      "Content-Length": Buffer.byteLength(text),
    });
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return { port: typeof address === "object" ? address?.port : undefined };
});
