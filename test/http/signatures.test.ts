import { afterEach, describe, expect, it } from "vitest";
import { type BootConfigs, configNames } from "../../src/boot/boot-configs.ts";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import type { BootSigner } from "../../src/http/boot/signatures.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { SigningError, type SigningRefusal } from "../../src/trust/sign/signing-error.ts";
import { accessLog } from "../helpers/access-log.ts";
import { ask, headerOf, statusOf, type WireAnswer } from "./wire.ts";

const running: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

const withhold = () => {
  throw new SigningError("withheld");
};

/** Shows what it was to sign; what begins with `later` takes its time. */
const showingSigner: BootSigner = {
  publicKey: "the public key\n",
  withhold,
  sign: (body) => {
    const signature = { binary: Buffer.from(`binary of ${body}`), armored: `armored of ${body}` };
    return body.includes("later") ? systemClock.sleep(1).then(() => signature) : signature;
  },
};

const failing = (reason: SigningRefusal): BootSigner => ({
  publicKey: "",
  withhold,
  sign: () => Promise.reject(new SigningError(reason)),
});

/** Shows its request, and refuses whoever has the role of a refusal. */
const showingConfigs: Pick<BootConfigs, "render"> = {
  render: (name, { labels, rawQuery }) => {
    const subject = { group: "lab/node", profile: "lab/web" };
    if (labels.get("role") === "none") throw new BootError("noMatch");
    if (labels.get("role") === "broken") throw new BootError("broken", subject);
    const rendered = { body: `${name} for ${rawQuery}\n`, contentType: "text/plain; charset=utf-8" };
    if (labels.get("role") === "harmful") return { rendered: { ...rendered, ofRequest: [0, name.length] }, ...subject };
    return { rendered, ...subject };
  },
};

async function start(signer: BootSigner | undefined, grubSigner?: BootSigner) {
  const lines: object[] = [];
  const metrics = createMetrics("test");
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLog({ level: "info", format: "json", destination });
  const access = accessLog({ log, clock: systemClock, metrics });
  const handler = bootHandler({ configs: showingConfigs, signer, grubSigner, accessLog: access });
  const server = createServer({ log, clock: systemClock, answerError, handler });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  const get = (target: string, options?: Parameters<typeof ask>[2]) => ask(port, target, options);
  return { get, lines, metrics };
}

const grub = { headers: ["User-Agent: GRUB 2.06-13+deb12u2"] };
const names = [...configNames, "generic/user-data", "generic/ks.cfg"];
const signable = ["boot.ipxe", "boot.ipxe.0", ...names];

function shown(answer: WireAnswer) {
  return { status: statusOf(answer), type: headerOf(answer, "Content-Type"), body: answer.body.toString() };
}

describe.each(signable)("the signatures of `/%s`", (name) => {
  const query = "mac=52-54-00-a1-9c-ae&note=a+b";

  it("are over what the same query has without the ending", async () => {
    const { get } = await start(showingSigner);
    const { body } = await get(`/${name}?${query}`);
    expect(shown(await get(`/${name}.sig?${query}`))).toEqual({
      status: 200,
      type: "application/octet-stream",
      body: `binary of ${body}`,
    });
    expect(shown(await get(`/${name}.asc?${query}`))).toEqual({
      status: 200,
      type: "text/plain; charset=utf-8",
      body: `armored of ${body}`,
    });
  });

  it.each(["sig", "asc"])("have the headers of GET for HEAD (.%s)", async (ending) => {
    const { get } = await start(showingSigner);
    const whole = await get(`/${name}.${ending}?${query}`);
    const head = await get(`/${name}.${ending}?${query}`, { method: "HEAD" });
    const lasting = ({ headerLines }: WireAnswer) => headerLines.filter((line) => !line.startsWith("Date: "));
    expect([statusOf(head), lasting(head), head.body.length]).toEqual([200, lasting(whole), 0]);
    expect(headerOf(head, "Content-Length")).toBe(String(whole.body.length));
    expect(headerOf(head, "Cache-Control")).toBe("no-store");
  });

  it("are 404 without a signing key, as are other methods", async () => {
    const { get } = await start(undefined);
    for (const ending of ["sig", "asc"]) {
      expect(statusOf(await get(`/${name}.${ending}?${query}`))).toBe(404);
      // Any name could be that of a part, as any could be that of an asset.
      const isPart = name.startsWith("generic/");
      expect(statusOf(await get(`/${name}.${ending}?${query}`, { method: "POST" }))).toBe(isPart ? 405 : 404);
    }
    expect(shown(await get(`/${name}?${query}.sig`, grub))).toEqual(shown(await get(`/${name}?${query}.sig`)));
  });

  it("are what GRUB gets that appends the ending to the query", async () => {
    const { get } = await start(showingSigner);
    const { body } = await get(`/${name}?${query}`, grub);
    const signature = { status: 200, type: "application/octet-stream", body: `binary of ${body}` };
    expect(shown(await get(`/${name}?${query}.sig`, grub))).toEqual(signature);
    expect(shown(await get(`/${name}.sig?${query}`, grub))).toEqual(signature);
  });
});

it.each(names)("there is no signature of a `/%s` that may have none, which is answered itself", async (name) => {
  const { get } = await start(showingSigner);
  expect(statusOf(await get(`/${name}?role=harmful`))).toBe(200);
  const words = "404 not signed, because GRUB could run what the request says\n";
  const body = name === "grub" ? `# ${words}set davit_answered=yes\n` : words;
  for (const ending of ["sig", "asc"]) {
    expect(shown(await get(`/${name}.${ending}?role=harmful`))).toMatchObject({ status: 404, body });
  }
  expect(shown(await get(`/${name}?role=harmful.sig`, grub))).toMatchObject({ status: 404, body });
});

it.each([
  { name: "a client that is not GRUB", target: "/generic?hostname=a.sig", options: {} },
  {
    name: "a client that has GRUB in its name",
    target: "/generic?hostname=a.sig",
    options: { headers: ["User-Agent: x GRUB 2"] },
  },
  { name: "GRUB, which knows no armor", target: "/generic?hostname=a.asc", options: grub },
  { name: "GRUB with a label in the middle", target: "/generic?hostname=a.sig&mac=b", options: grub },
])("a query that ends in `.sig` is a query to $name", async ({ target, options }) => {
  const { get } = await start(showingSigner);
  expect((await get(target, options)).body.toString()).toBe(`generic for ${target.split("?")[1]}\n`);
});

it("a signature has the same head, whoever asks", async () => {
  const { get } = await start(showingSigner);
  const lasting = ({ headerLines }: WireAnswer) => headerLines.filter((line) => !line.startsWith("Date: "));
  const expected = lasting(await get("/ipxe.sig"));
  expect(expected).toContain("Cache-Control: no-store");
  expect(lasting(await get("/ipxe.sig", grub))).toEqual(expected);
});

it.each([
  { name: "GRUB", options: grub },
  { name: "anybody else", options: {} },
])("a signature that takes its time is waited for by $name", async ({ options }) => {
  const { get } = await start(showingSigner);
  expect((await get("/generic.sig?later", options)).body.toString()).toBe("binary of generic for later\n");
  expect((await get("/generic.asc?later")).body.toString()).toBe("armored of generic for later\n");
});

describe("an error", () => {
  it.each(names.flatMap((name) => ["none", "broken"].map((role) => ({ name, role }))))(
    "of `/$name` to $role is the same for its signatures, and not signed",
    async ({ name, role }) => {
      const { get } = await start(showingSigner);
      const unsigned = shown(await get(`/${name}?role=${role}`));
      expect(unsigned.body).toMatch(/^(# )?(404|500) /);
      expect(shown(await get(`/${name}.sig?role=${role}`))).toEqual(unsigned);
      expect(shown(await get(`/${name}.asc?role=${role}`))).toEqual(unsigned);
      expect(shown(await get(`/${name}?role=${role}.sig`, grub))).toEqual(unsigned);
    },
  );

  it.each([
    ["expired", "503 signing key expired\n"],
    ["busy", "503 too many signatures\n"],
    ["failed", "503 signing failed\n"],
  ] as const)("of signing (%s) is 503, and asks to come again", async (reason, body) => {
    const { get } = await start(failing(reason));
    const answer = await get("/ipxe.sig");
    expect(shown(answer)).toMatchObject({ status: 503, body });
    expect(headerOf(answer, "Retry-After")).toBe("5");
    expect(statusOf(await get("/ipxe"))).toBe(200);
  });

  it("of signing is logged when nobody expects it", async () => {
    const { get, lines } = await start(failing("failed"));
    await get("/ipxe.sig");
    expect(lines).toContainEqual(expect.objectContaining({ msg: "request failed", path: "/ipxe.sig" }));
  });
});

it.each([
  "/nothing.sig",
  "/nothing.asc",
  "/.sig",
  "/ipxe..sig",
  "/ipxe.sig.sig",
  "/ipxe.sig.asc",
  "/ipxe.SIG",
  "/ipxe.gpg",
  "/ipxe/.sig",
  "/generic/.sig",
  "/generic/x.sig.sig",
  "/generic/x.asc.sig",
  "/generic/x/.sig",
  "/ipxe.sig/",
  "//ipxe.sig",
  "/..sig",
  "/signing-key.sig",
  "/signing-key",
])("there is no `%s`", async (target) => {
  const { get } = await start(showingSigner);
  expect(shown(await get(target))).toMatchObject({ status: 404, body: "404 not found\n" });
});

it("other methods are 405 where there are signatures", async () => {
  const { get } = await start(showingSigner);
  const answer = await get("/ipxe.sig", { method: "PUT" });
  expect([statusOf(answer), headerOf(answer, "Allow")]).toEqual([405, "GET, HEAD"]);
});

it("the public key is at `/signing-key.asc`, and nowhere without a key", async () => {
  const signed = await start(showingSigner);
  const answer = await signed.get("/signing-key.asc");
  expect(shown(answer)).toEqual({ status: 200, type: "text/plain; charset=utf-8", body: "the public key\n" });
  expect(statusOf(await signed.get("/signing-key.asc", { method: "HEAD" }))).toBe(200);
  expect(statusOf(await (await start(undefined)).get("/signing-key.asc"))).toBe(404);
});

describe("a key for GRUB", () => {
  const grubSigner: BootSigner = {
    publicKey: "GRUB's public key\n",
    withhold,
    sign: (body) => ({ binary: Buffer.from(`GRUB's binary of ${body}`), armored: `GRUB's armored of ${body}` }),
  };

  it("signs `/grub`, and the other key does not", async () => {
    const { get } = await start(showingSigner, grubSigner);
    expect((await get("/grub.sig?a=b")).body.toString()).toBe("GRUB's binary of grub for a=b\n");
    expect((await get("/grub.asc?a=b")).body.toString()).toBe("GRUB's armored of grub for a=b\n");
    expect((await get("/grub?a=b.sig", grub)).body.toString()).toBe("GRUB's binary of grub for a=b\n");
    for (const name of signable.filter((each) => each !== "grub")) {
      expect((await get(`/${name}.sig?a=b`, grub)).body.toString()).toMatch(/^binary of /);
      expect((await get(`/${name}.sig?a=b`)).body.toString()).toMatch(/^binary of /);
    }
    expect((await get("/signing-key.asc")).body.toString()).toBe("the public key\n");
    expect((await get("/grub-signing-key.asc")).body.toString()).toBe("GRUB's public key\n");
  });

  it("lets the other key sign what no GRUB accepts from it", async () => {
    const { get } = await start(showingSigner, grubSigner);
    for (const name of names.filter((each) => each !== "grub")) {
      const body = (await get(`/${name}.sig?role=harmful`)).body.toString();
      expect(body).toBe(`binary of ${name} for role=harmful\n`);
    }
  });

  it("signs nothing else where it is alone", async () => {
    const { get } = await start(undefined, grubSigner);
    expect(statusOf(await get("/grub.sig?a=b"))).toBe(200);
    for (const name of [...signable.filter((each) => each !== "grub"), "signing-key"]) {
      for (const ending of ["sig", "asc"]) expect(statusOf(await get(`/${name}.${ending}?a=b`))).toBe(404);
      const config = name === "signing-key" ? [] : [shown(await get(`/${name}?a=b.sig`, grub)).body];
      expect(config.join()).not.toContain("binary");
    }
  });
});

it("the access log and the metrics name the endpoint, however GRUB spells it", async () => {
  const { get, lines, metrics } = await start(showingSigner);
  await get("/ipxe?mac=52-54-00-a1-9c-ae");
  await get("/ipxe.sig?mac=52-54-00-a1-9c-ae");
  await get("/grub?mac=52-54-00-a1-9c-ae.sig", grub);
  await get("/generic/user-data?mac=52-54-00-a1-9c-ae");
  await get("/generic/meta-data.asc?mac=52-54-00-a1-9c-ae");
  await get("/generic/user-data?mac=52-54-00-a1-9c-ae.sig", grub);
  const machine = { mac: "52:54:00:a1:9c:ae", group: "lab/node", profile: "lab/web", status: 200 };
  await expect
    .poll(() => lines)
    .toEqual([
      expect.objectContaining({ path: "/ipxe", ...machine }),
      expect.objectContaining({ path: "/ipxe.sig", signature: true, ...machine }),
      expect.objectContaining({ path: "/grub", signature: true, ...machine }),
      expect.objectContaining({ path: "/generic/user-data", ...machine }),
      expect.objectContaining({ path: "/generic/meta-data.asc", signature: true, ...machine }),
      expect.objectContaining({ path: "/generic/user-data", signature: true, ...machine }),
    ]);
  expect(lines[0]).not.toHaveProperty("signature");
  const counted = [
    ...(await metrics.text()).matchAll(/^davit_boot_requests_total\{endpoint="([^"]+)",code="200"\} 1$/gm),
  ];
  const parts = ["generic-part", "generic-part.asc", "generic-part.sig"];
  expect(counted.map(([, endpoint]) => endpoint)).toEqual(["ipxe", "ipxe.sig", "grub.sig", ...parts]);
});
