/**
 * Random sequences of operations on the key API. An operation is text, and so can be left out, sent again and read by
 * people. What depends on earlier answers is a placeholder, filled in when it is sent:
 *
 *   {index} {index-999} {index+3}   the store's index
 *   {modified:/t/a}                 the index of the last change of a key
 *   {child}                         the path of the last key that was made in order
 *
 * Names are few, so that operations meet. What the two servers are known to answer in different ways, and what changes
 * their stores in different ways, is not asked: the table in fuzz-deviations.ts has it all.
 */

import { anyPath, keyTarget } from "./fuzz-paths.ts";
import type { Random } from "./fuzz-random.ts";

export type Operation =
  | {
      readonly kind: "request";
      readonly method: string;
      readonly target: string;
      readonly form?: string | undefined;
      readonly contentType?: string | undefined;
    }
  | { readonly kind: "watch"; readonly target: string; readonly path: string }
  /** Closes the watch that was opened before this many others. */
  | { readonly kind: "unwatch"; readonly nth: number }
  /** Lets time pass until all that ends soon has ended. */
  | { readonly kind: "settle" };

/** A sequence always watches everything, from its beginning to its end. */
export function randomOperations(random: Random, count: number): readonly Operation[] {
  const operations: Operation[] = [
    { kind: "watch", target: "/v2/keys/?wait=true&recursive=true&stream=true", path: "/" },
  ];
  while (operations.length < count) {
    // Each of them costs a wait until the keys have ended.
    if (random.below(500) === 0) operations.push(...expiringBurst(random));
    else if (random.below(300) === 0) operations.push(anyWrite(random, dueTtls), { kind: "settle" });
    else operations.push(anyOperation(random, longTtls));
  }
  return [...operations.slice(0, count - 1), { kind: "settle" }];
}

function expiringBurst(random: Random): readonly Operation[] {
  const burst = Array.from({ length: 20 + random.below(40) }, () => anyOperation(random, shortTtls));
  return [...burst, { kind: "settle" }];
}

/** What a request may give as its ttl, and how often it does, in 100 writes. */
interface Ttls {
  readonly texts: readonly [string, ...string[]];
  readonly percent: number;
}

const longTtls: Ttls = {
  texts: ["", "1000", "01000", "86400", "2147483648", "4294967296", "7000000000"],
  percent: 12,
};
const shortTtls: Ttls = { texts: ["1", "1", "1", "1", "1", "2", "1000", ""], percent: 50 };
const dueTtls: Ttls = { texts: ["0"], percent: 100 };

function anyOperation(random: Random, ttls: Ttls): Operation {
  const make = random.weighted<(random: Random, ttls: Ttls) => Operation>([
    [42, put],
    [20, get],
    [3, head],
    [12, remove],
    [7, post],
    [9, watch],
    [3, unwatch],
    [3, oddRequest],
    [1, otherMethod],
  ]);
  return make(random, ttls);
}

function anyWrite(random: Random, ttls: Ttls): Operation {
  return random.chance(80) ? put(random, ttls) : post(random, ttls);
}

function put(random: Random, ttls: Ttls): Operation {
  const path = anyPath(random);
  const fields = [...written(random, ttls)];
  if (random.chance(14)) fields.push("prevExist=true");
  else if (random.chance(12)) fields.push(`prevExist=${anyFlag(random)}`);
  fields.push(...compared(random, path));
  if (random.chance(1)) fields.push("recursive=true");
  return sent(random, { method: "PUT", path, fields, formPercent: 75 });
}

function post(random: Random, ttls: Ttls): Operation {
  const path = anyPath(random);
  const fields = [...written(random, ttls)];
  if (random.chance(3)) fields.push("prevExist=true");
  return sent(random, { method: "POST", path, fields, formPercent: 75 });
}

/** Fields of a write, each `name=value`. */
function written(random: Random, { texts, percent }: Ttls): readonly string[] {
  const fields: string[] = [];
  const isRefresh = random.chance(percent / 3);
  if (random.chance(isRefresh ? 5 : 92)) fields.push(`value=${anyValue(random)}`);
  if (isRefresh) fields.push("refresh=true");
  const hasTtl = random.chance(isRefresh ? 95 : percent);
  if (hasTtl) fields.push(`ttl=${random.of(texts)}`);
  if (random.chance(9)) fields.push(`dir=${anyFlag(random)}`);
  // The answer would hide when a key ends.
  if (!hasTtl && random.chance(4)) fields.push(`noValueOnSuccess=${anyFlag(random)}`);
  return fields;
}

function compared(random: Random, path: string): readonly string[] {
  const fields: string[] = [];
  if (random.chance(14)) fields.push(`prevValue=${anyValue(random)}`);
  if (random.chance(10)) {
    const index = random.weighted([
      [6, `{modified:${path}}`],
      [2, "0"],
      [1, "{index}"],
      [1, "18446744073709551615"],
    ]);
    fields.push(`prevIndex=${index}`);
  }
  return fields;
}

function get(random: Random): Operation {
  const fields: string[] = [];
  if (random.chance(45)) fields.push(`recursive=${anyFlag(random)}`);
  // An answer in any order is compared less closely.
  if (random.chance(85)) fields.push("sorted=true");
  if (random.chance(8)) fields.push("quorum=true");
  // Both answer a read by quorum at once.
  if (random.chance(1)) fields.push("wait=true", "quorum=true");
  if (random.chance(2)) fields.push(`waitIndex=${random.below(3)}`);
  return sent(random, { method: "GET", path: anyPath(random), fields, formPercent: 0 });
}

function head(random: Random): Operation {
  const fields = random.chance(50) ? ["recursive=true", "sorted=true"] : [];
  return sent(random, { method: "HEAD", path: anyPath(random), fields, formPercent: 0 });
}

function remove(random: Random): Operation {
  const path = anyPath(random);
  const fields: string[] = [];
  if (random.chance(30)) fields.push(`dir=${anyFlag(random)}`);
  if (random.chance(30)) fields.push(`recursive=${anyFlag(random)}`);
  if (random.chance(25)) fields.push(...compared(random, path));
  return sent(random, { method: "DELETE", path, fields, formPercent: 3 });
}

function watch(random: Random): Operation {
  const path = anyPath(random);
  const waitIndex = random.weighted([
    [30, ""],
    [4, "0"],
    [12, "{index+1}"],
    [8, `{index+${2 + random.below(20)}}`],
    [34, `{index-${random.below(60)}}`],
    [4, `{index-${990 + random.below(12)}}`],
    [3, "1"],
    [1, "18446744073709551615"],
  ]);
  const fields = ["wait=true"];
  if (waitIndex !== "") fields.push(`waitIndex=${waitIndex}`);
  if (random.chance(50)) fields.push("recursive=true");
  if (random.chance(35)) fields.push("stream=true");
  return { kind: "watch", target: `${keyTarget(random, path)}?${fields.join("&")}`, path };
}

function unwatch(random: Random): Operation {
  return { kind: "unwatch", nth: 1 + random.below(8) };
}

const oddFields = [
  ...["prevIndex=x", "prevIndex=", "prevIndex=-1", "prevIndex=18446744073709551616", "prevIndex=+1", "prevIndex=1.0"],
  ...["waitIndex=x", "waitIndex=1_0", "recursive=yes", "sorted=", "dir=tRUE", "quorum=2", "stream=x", "wait=x"],
  ...["prevValue=", "noValueOnSuccess=x", "ttl=x", "ttl=-1", "ttl=1.5", "ttl=18446744073709551616", "prevExist="],
  ...["prevExist=x", "refresh=x", "refresh=true", "refresh=true&ttl=100&value=x", "refresh=true&ttl="],
  ...["value=%zz", "value=%2", "x=%", "a;b=c", ";", "&&&", "=", "=x", "value", "unknown=1", "VALUE=x", "%76alue=v"],
] as const;

const oddTypes = [
  ...["application/json", "text/plain", "multipart/form-data; boundary=x", "application/octet-stream", "x"],
  ...["APPLICATION/X-WWW-FORM-URLENCODED", "application/x-www-form-urlencoded; charset=utf-8", "a/b/c", "/", "a/b; c"],
  ...["application/x-www-form-urlencoded;", "application/x-www-form-urlencoded; a=1; a=2"],
] as const;

const oddTargets = [
  ...[
    "/v2/keys",
    "/v2/keys/",
    "/v2/keysfoo",
    "/v2",
    "/",
    "/v2/keys//t",
    "/v2/keys/t/../t/a",
    "/v2/keys/t/./a?dir=true",
  ],
  ...[
    "/v2/keys/t/%2e%2e/t",
    "/v2/keys/t//",
    "/v2/keys/..",
    "/v2/keys/.",
    "/v2/keys/t%2F%2Fa?value=%zz",
    "/v2/keys/t/...",
  ],
  ...[
    "/v2/keys/t/%zz",
    "/v2/keys/t/%2",
    "/v2/keys%2Ft/a",
    "http://davit.example/v2/keys/t/a",
    "/v2/keys/t/a/?sorted=true",
  ],
  ...["/v2/keys/t/<b>/..", "/v2/keys/t/a%20b/../c%3Fd", "/v2/machines/", "/v2/stats", "/v2/keys/t/'/..?a=<&>'"],
] as const;

function oddRequest(random: Random): Operation {
  const method = random.of(["GET", "PUT", "POST", "DELETE", "HEAD"]);
  const what = random.below(3);
  if (what === 0) return { kind: "request", method, target: random.of(oddTargets) };
  const fields = [random.of([oddFields[0], ...oddFields]), ...(method === "GET" ? [] : written(random, longTtls))];
  if (what === 1) return sent(random, { method, path: anyPath(random), fields, formPercent: 50 });
  const contentType = random.of([oddTypes[0], ...oddTypes]);
  return { kind: "request", method: "PUT", target: keyTarget(random, anyPath(random)), form: "value=odd", contentType };
}

function otherMethod(random: Random): Operation {
  const method = random.of(["OPTIONS", "PATCH", "TRACE", "PROPFIND"]);
  return {
    kind: "request",
    method,
    target: random.of(["/v2/keys/t/a", "/v2/keys", "/version", "/v2/machines", "/none"]),
  };
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly string[];
  /** How often a field goes into the form, in 100. */
  readonly formPercent: number;
}

function sent(random: Random, { method, path, fields, formPercent }: Sent): Operation {
  const inForm = fields.map(() => random.chance(formPercent));
  const form = fields.filter((_, at) => inForm[at] === true);
  // A field that is in both counts once: some are sent twice, with another value in the query.
  const twice = form.length > 0 && random.chance(3) ? ["value=query"] : [];
  const query = [...fields.filter((_, at) => inForm[at] === false), ...twice];
  const target = keyTarget(random, path);
  return {
    kind: "request",
    method,
    target: query.length === 0 ? target : `${target}?${query.join("&")}`,
    ...(form.length > 0 && { form: form.join("&"), contentType: "application/x-www-form-urlencoded" }),
  };
}

function anyFlag(random: Random): string {
  return random.weighted([
    [10, "true"],
    [6, "false"],
    [1, random.of(["1", "t", "T", "TRUE", "True", "0", "f", "F", "FALSE", "False"])],
  ]);
}

function anyValue(random: Random): string {
  return random.weighted([
    [30, random.of(["a", "b", "c"])],
    [4, ""],
    [4, random.of(["a+b%20c", "%3C%3E%26%22%5C", "%0A%0D%09%08%0C%00%1F%7F", "%E2%80%A8%F0%9F%98%80%C3%A9", "a=b=c"])],
    [1, random.of(["%FF", "x".repeat(3_000), "%25zz", "%3B"])],
  ]);
}
