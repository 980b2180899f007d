/** Which Machine a request names, beside a model that looks at every Machine, for every pair of small Machines. */

import { expect, it } from "vitest";
import { KnownMachines } from "../../src/boot/core/known-machines.ts";
import { machineDocument } from "./gate-world.ts";

interface Shape {
  readonly identities: readonly string[];
  readonly hold: boolean;
  readonly tenant: boolean;
  readonly id: string;
}

const uuids = ["4c4c4544-0042-3510-8052-b4c04f4d5a31", "4c4c4544-0042-3510-8052-b4c04f4d5a32"] as const;
const macs = ["52:54:00:00:00:01", "52:54:00:00:00:02"] as const;
const all = [...uuids.map((uuid) => `uuid/${uuid}`), ...macs.map((mac) => `mac/${mac}`)];
const subsets = Array.from({ length: 15 }, (_, at) => all.filter((_identity, bit) => ((at + 1) >> bit) & 1));

function shapesOf(id: string): readonly Shape[] {
  return subsets.flatMap((identities) =>
    [false, true].flatMap((hold) => [false, true].map((tenant) => ({ id, identities, hold, tenant }))),
  );
}

const requests = [undefined, ...uuids].flatMap((uuid) =>
  [undefined, ...macs].map((mac) =>
    Object.entries({ uuid, mac }).flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const])),
  ),
);

/** What `soleOf` promises, without an index. */
function modelOf(shapes: readonly Shape[], request: readonly (readonly [string, string])[], namespace?: string) {
  const named = shapes.filter(({ identities }) =>
    request.some(([label, value]) => identities.includes(`${label}/${value}`)),
  );
  const counting = named.filter(({ id, tenant }) => !tenant || id.startsWith(`${namespace}/`));
  const contradicts = ({ identities }: Shape) =>
    request.some(
      ([label, value]) =>
        identities.some((each) => each.startsWith(`${label}/`)) && !identities.includes(`${label}/${value}`),
    );
  const isAmbiguous = counting.length > 1 || counting.some(contradicts);
  return {
    id: isAmbiguous ? undefined : counting[0]?.id,
    isHeld: counting.some(({ hold }) => hold),
    isAmbiguous,
    hasOthers: named.length > counting.length,
  };
}

function machinesOf(shapes: readonly Shape[]): KnownMachines {
  const machines = new KnownMachines();
  for (const { id, identities, hold, tenant } of shapes) {
    const [namespace = "", name = ""] = id.split("/");
    const [, text] = machineDocument(id, { identities, hold }, tenant ? { tenant } : {});
    machines.learn(namespace, name, text);
  }
  return machines;
}

/** The requests of which `soleOf` and the model differ. */
function differencesAt(shapes: readonly Shape[]): readonly unknown[] {
  const machines = machinesOf(shapes);
  return requests.flatMap((request) =>
    [undefined, "lab"].flatMap((namespace) => {
      const { machine, ...found } = machines.soleOf(new Map(request), namespace);
      const [is, model] = [{ id: machine?.id, ...found }, modelOf(shapes, request, namespace)];
      return JSON.stringify(is) === JSON.stringify(model) ? [] : [{ shapes, request, namespace, is, model }];
    }),
  );
}

it("names the one Machine of a request as a model does", () => {
  const pairs = shapesOf("lab/a").flatMap((first) => shapesOf("web/b").map((second) => [first, second]));
  expect([pairs.length, requests.length]).toEqual([3_600, 9]);
  expect(pairs.flatMap(differencesAt)).toEqual([]);
});
