// The one-way import rule of docs/internals/architecture.md: data flows from sources to machines, and an import may only point
// upstream. The table below is that page's table.

const allowed = {
  lib: [],
  model: ["lib"],
  sources: ["model", "lib"],
  store: ["lib"],
  render: ["model", "lib"],
  options: ["lib"],
  trust: ["lib"],
  dhcp: ["lib"],
  assets: ["model", "lib"],
  records: ["model", "lib"],
  controller: ["store", "render", "model", "lib"],
  installs: ["store", "model", "lib"],
  follow: ["model", "lib"],
  boot: ["render", "model", "lib"],
  offline: ["sources", "controller", "boot", "render", "model", "lib"],
  http: ["boot", "records/history", "render", "trust/sign", "store", "model", "lib"],
  // Rooms that may import less than their folder.
  "offline/load": ["sources/directory", "sources/admission", "controller", "boot", "render", "model", "lib"],
  "offline/lint": ["offline/load", "sources/directory", "controller", "render", "model", "lib"],
  "offline/diff": ["offline/load", "controller", "boot", "render", "model", "lib"],
};

// A package that only one place may know: everything else sees that place's own types.
const owners = {
  fastify: "^src/http/",
  handlebars: "^src/render/template",
  pino: "^src/lib/logging/create-log\\.ts$",
  "pino-pretty": "^src/lib/logging/create-log\\.ts$",
  "prom-client": "^src/lib/metrics/",
  ajv: "^src/sources/admission/",
  "@marcbachmann/cel-js": "^src/sources/admission/",
  "@bufbuild/protobuf": "^packages/etcd-client/",
  "@connectrpc/connect": "^packages/etcd-client/",
  "@kubernetes/client-node": "^src/sources/kubernetes/client/kube-config\\.ts$",
  "@peculiar/x509": "^src/trust/certificates/issue\\.ts$",
  "reflect-metadata": "^src/trust/certificates/issue\\.ts$",
  jose: "^src/http/guard/service-account-tokens\\.ts$",
  openpgp: "^src/trust/sign/",
  undici: "^src/sources/kubernetes/client/connections\\.ts$",
};

// Inside sixteen folders, what each of their rooms may import of the others; the files beside the rooms may import all.
const rooms = {
  lib: { "": [], files: [""], logging: [""], metrics: [""], text: [""] },
  model: {
    "": [],
    labels: [""],
    permits: [""],
    objects: ["", "labels", "permits"],
    selection: ["", "labels", "permits", "objects"],
  },
  app: {
    core: [],
    objects: ["core"],
    ledger: ["core", "objects"],
    store: ["core", "ledger"],
    listener: ["core", "ledger"],
    threads: ["core", "ledger", "listener"],
    boot: ["core", "listener", "threads"],
  },
  commands: { core: [], machine: ["core"], store: ["core"], offline: ["core", "machine"], server: ["core", "machine"] },
  "http/console": { state: [], html: ["state"], pages: ["state", "html"] },
  boot: {
    core: [],
    selection: ["core"],
    making: ["core"],
    explaining: ["core", "selection"],
  },
  http: {
    "": [],
    guard: [""],
    boot: [""],
    assets: [""],
    keys: ["", "guard"],
    store: ["", "guard", "keys"],
    ops: ["", "guard"],
    console: ["", "guard", "ops"],
  },
  controller: {
    core: [],
    status: ["core"],
    ranking: ["core"],
    reconcile: ["core", "status", "ranking"],
    tombstones: ["core", "ranking"],
    trials: ["core", "status", "ranking", "reconcile"],
    pairs: ["core", "status", "ranking", "reconcile", "trials"],
    permits: ["core", "status"],
    machines: ["core", "status", "tombstones", "permits"],
  },
  sources: { admission: [], kubernetes: ["admission"], directory: ["admission"] },
  "sources/kubernetes": {
    client: [],
    watch: ["client"],
    source: ["client", "watch"],
    status: ["client", "watch", "source"],
  },
  trust: { sign: [], certificates: [] },
  records: { history: [], audit: [] },
  installs: { "": [], ledger: [], outcomes: ["ledger"] },
  offline: { load: [], lint: ["load"], diff: ["load"] },
  render: {
    core: [],
    template: ["core"],
    boot: ["core", "template"],
    ipxe: ["core", "boot"],
    grub: ["core", "boot"],
    butane: ["core"],
    config: ["core", "template", "butane"],
    metadata: ["core", "template"],
    judge: ["core", "template", "boot", "ipxe", "grub", "config"],
  },
  store: {
    core: [],
    tree: ["core"],
    command: ["core", "tree"],
    watch: ["core", "tree"],
    wal: ["core"],
    etcd: ["core"],
    snapshot: ["core", "tree", "command", "watch"],
    backup: ["core", "tree", "watch", "snapshot"],
    inspect: ["core", "tree", "command", "watch", "snapshot", "wal"],
    move: ["core", "tree", "command", "wal", "etcd", "snapshot", "backup", "inspect"],
  },
};

const layers = Object.entries(allowed).map(([folder, targets]) => ({
  name: `${folder.replace("/", "-")}-imports-only-upstream`,
  severity: "error",
  from: { path: `^src/${folder}/` },
  to: { path: "^src/", pathNot: `^src/(${[folder, ...targets].join("|")})/` },
}));

const filesIn = (folder, room) => (room === "" ? `${folder}/[^/]+$` : `${folder}/${room}/`);

const inside = Object.entries(rooms).flatMap(([folder, allowedIn]) =>
  Object.entries(allowedIn).map(([room, targets]) => ({
    name: `${folder}-${room || "files"}-imports-only-upstream`,
    severity: "error",
    from: { path: `^src/${filesIn(folder, room)}` },
    to: {
      path: `^src/${folder}/`,
      pathNot: `^src/(${[room, ...targets].map((each) => filesIn(folder, each)).join("|")})`,
    },
  })),
);

const owned = Object.entries(owners).map(([name, home]) => ({
  name: `${name.replace(/[^a-z-]/g, "-")}-has-one-owner`,
  severity: "error",
  from: { path: "^(src|packages)/", pathNot: home },
  to: { path: `node_modules/${name}/` },
}));

// What a package may import of davit, and which files of davit import it. They import only its main file.
const packages = {
  "import-matchbox": {
    users: "commands/offline/import\\.ts$",
    targets: ["sources/admission", "render", "model", "lib"],
  },
  "etcd-client": { users: "(store/(etcd|move)/|commands/store/store-places\\.ts$)", targets: [] },
};

const packaged = Object.entries(packages).flatMap(([name, { users, targets }]) => [
  {
    name: `${name}-imports-only-upstream`,
    severity: "error",
    from: { path: `^packages/${name}/` },
    to: {
      path: "^(src|packages)/",
      pathNot: `^(${[`packages/${name}`, ...targets.map((each) => `src/${each}`)].join("|")})/`,
    },
  },
  {
    name: `${name}-has-one-door`,
    severity: "error",
    from: { path: "^src/" },
    to: { path: `^packages/${name}/`, pathNot: `^packages/${name}/src/${name}\\.ts$` },
  },
  {
    name: `only-its-users-import-${name}`,
    severity: "error",
    from: { path: "^(src|packages)/", pathNot: `^(src/${users}|packages/${name}/)` },
    to: { path: `^packages/${name}/` },
  },
]);

export default {
  forbidden: [
    ...layers,
    ...inside,
    ...owned,
    ...packaged,
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "no-orphans",
      severity: "error",
      from: { orphan: true, path: "^(src|packages)/", pathNot: "^src/main\\.ts$" },
      to: {},
    },
    {
      name: "pure-files-do-no-io",
      comment: "plain data and arithmetic: no clock, no disk, no network (record.ts has zlib, for its CRC)",
      severity: "error",
      from: {
        path: ["^src/(model/|render/|controller/reconcile)", "^src/store/(core|tree|command|watch|snapshot)/"],
      },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "the-program-knows-no-test-tool-or-bench",
      severity: "error",
      from: { path: "^(src|packages)/" },
      to: { path: "^(test|tools|bench)/" },
    },
    { name: "tools-know-no-test", severity: "error", from: { path: "^tools/" }, to: { path: "^(test|bench)/" } },
    { name: "nobody-imports-main", severity: "error", from: {}, to: { path: "^src/main\\.ts$" } },
    {
      name: "only-commands-import-app",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(commands/|main\\.ts$)" },
      to: { path: "^src/(app/(boot-)?app\\.ts$|commands/)" },
    },
    {
      name: "no-undeclared-packages",
      severity: "error",
      from: {},
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown", "unknown", "undetermined"] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
