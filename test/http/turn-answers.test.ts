import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { BootRoute } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { TurnAnswers } from "../../src/http/exchange.ts";
import { WireResponse } from "../../src/http/response-headers.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import { handlerOf } from "./handler-of.ts";
import { ask, headerOf, statusOf } from "./wire.ts";

const silent = createLog({ level: "silent", format: "json" });
const running: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

/** Answers with the query as the value of a header. */
const echo: BootRoute = {
  url: "/echo",
  answer: ({ rawQuery }) => {
    const headers = ["Content-Type", "text/plain", "X-Query", decodeURIComponent(rawQuery)];
    return { status: 200, headers, body: "" };
  },
};

async function start(routes: readonly BootRoute[]): Promise<number> {
  const server = createServer({ log: silent, clock: systemClock, answerError, handler: handlerOf(routes) });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return port;
}

/** A response without a connection: it keeps what it would send. */
const responseAlone = () => new WireResponse(new IncomingMessage(new Socket()));
const answer = { status: 200, headers: ["Content-Type", "text/plain"], body: "hello\n" };

describe("answers that become ready", () => {
  it("wait for the end of the turn, or for 32 of them", async () => {
    const turn = new TurnAnswers();
    const responses = Array.from({ length: 33 }, responseAlone);
    const sent = () => responses.filter(({ writableEnded }) => writableEnded).length;
    const counts = responses.map((response) => {
      turn.add(response, answer, () => {});
      return sent();
    });
    expect(counts).toEqual([...Array(31).fill(0), 32, 32]);
    await nextTurn();
    expect(sent()).toBe(33);
  });
});

describe("answers of one turn", () => {
  it("are all sent, each to its own client, if there are more than are sent at once", async () => {
    const port = await start([echo]);
    const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => ask(port, `/echo?${at}`)));
    expect(answers.map((answer) => headerOf(answer, "X-Query"))).toEqual(answers.map((_, at) => String(at)));
  });

  it("are sent although one of them cannot be sent, which gets 500", async () => {
    const port = await start([echo]);
    const queries = ["1", "%0a", "2", "%0a", "3"];
    const answers = await Promise.all(queries.map((query) => ask(port, `/echo?${query}`)));
    expect(answers.map(statusOf)).toEqual([200, 500, 200, 500, 200]);
  });
});
