/** A matchbox data directory of which everything is carried over, for tests that change one thing in it. */

import type { Tree } from "./trees.ts";

export const boot = { kernel: "/assets/vmlinuz", initrd: ["/assets/initrd"], args: ["console=ttyS0"] };
export const profile = { id: "worker", name: "Worker", boot };
export const good: Tree = {
  "groups/node.json": {
    id: "node",
    profile: "worker",
    selector: { mac: "52:54:00:a1:9c:ae" },
    metadata: { role: "db" },
  },
  "profiles/worker.json": { ...profile, generic_id: "worker.tmpl" },
  "generic/worker.tmpl": "role={{.role}}\n",
};
