import type { ListedCommand } from "./core/host.ts";

/** Every command, in the order of the help. */
export const commands: readonly ListedCommand[] = [
  {
    name: "serve",
    summary: "serve boot configs from Profiles and Groups",
    load: async () => (await import("./server/serve.ts")).serve,
  },
  {
    name: "boot",
    summary: "serve boot configs from the store of another davit",
    load: async () => (await import("./server/boot.ts")).boot,
  },
  {
    name: "backup",
    summary: "copy a store into one file, while it runs",
    load: async () => (await import("./store/backup.ts")).backup,
  },
  {
    name: "restore",
    summary: "begin a store with the keys of a backup",
    load: async () => (await import("./store/restore.ts")).restore,
  },
  {
    name: "migrate-store",
    summary: "move a store from a data directory to etcd, or back",
    load: async () => (await import("./store/migrate-store.ts")).migrateStore,
  },
  {
    name: "inspect",
    summary: "verify a backup or a data directory",
    load: async () => (await import("./store/inspect.ts")).inspect,
  },
  {
    name: "lint",
    summary: "report mistakes in Profiles and Groups",
    load: async () => (await import("./offline/lint.ts")).lint,
  },
  {
    name: "render",
    summary: "print what a machine would be answered, from manifests alone",
    load: async () => (await import("./offline/render.ts")).render,
  },
  {
    name: "diff",
    summary: "show what manifests would change, and for which machines",
    load: async () => (await import("./offline/diff.ts")).diff,
  },
  {
    name: "machine",
    summary: "list machines; approve, hold and install them",
    load: async () => (await import("./machine/machine.ts")).machine,
  },
  {
    name: "history",
    summary: "show what machines asked for, and where each boot stopped",
    load: async () => (await import("./server/history.ts")).history,
  },
  {
    name: "preview",
    summary: "show what a machine would get now, and why",
    load: async () => (await import("./server/preview.ts")).preview,
  },
  {
    name: "import",
    summary: "make Profiles and Groups of a matchbox data directory",
    load: async () => (await import("./offline/import.ts")).importCommand,
  },
  {
    name: "fetch-assets",
    summary: "download kernels and initrds, checked, into an assets directory",
    load: async () => (await import("./offline/fetch-assets.ts")).fetchAssets,
  },
  {
    name: "completion",
    summary: "print a script that completes commands and options in bash, zsh or fish",
    load: async () => (await import("./completion.ts")).completion(commands),
  },
  {
    name: "version",
    summary: "print the version and the commit",
    load: async () => (await import("./core/version.ts")).version,
  },
];
