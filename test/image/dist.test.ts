/**
 * `make dist`: two builds are the same bytes, and the Debian package works in a bare Debian. The chroot has namespaces of
 * its own, so nothing of this computer changes. davit runs there twice: without systemd, started by the unit's own
 * command, and under systemd as the first process.
 */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const long = { timeout: 900_000 };

describe.skipIf(missing("bare-debian"))("the archives and packages", () => {
  let folder: string;
  let debian: string;
  const first = () => join(folder, "first");
  const build = (output: string, umask: string, variables: Readonly<Record<string, string>>) => {
    const script = `umask ${umask} && exec "$0" tools/packaging/dist.ts --output "$1"`;
    return run("bash", ["-c", script, process.execPath, output], { cwd: root, env: { ...process.env, ...variables } });
  };
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "davit-dist-"));
    debian = join(folder, "debian");
    await build(first(), "022", { TZ: "UTC" });
    await run("mmdebstrap", ["--quiet", "--variant=minbase", "--include=zsh,systemd", "bookworm", `${debian}.tar`]);
    mkdirSync(debian);
    await run("tar", ["--extract", "--directory", debian, "--file", `${debian}.tar`]);
    await copyFile(join(first(), `davit_${version}_amd64.deb`), join(debian, "davit.deb"));
  }, long.timeout);
  afterAll(() => rmSync(folder, { recursive: true }));

  it("are the same bytes in a second build, elsewhere, with another umask and time zone", long, async () => {
    const second = join(folder, "elsewhere/second");
    await build(second, "077", { TZ: "Pacific/Auckland", LC_ALL: "C" });
    const [sums, again] = await Promise.all(
      [first(), second].map((each) => readFile(join(each, "SHA256SUMS"), "utf8")),
    );
    expect(again).toBe(sums);
    expect(sums?.match(/davit\S*$/gm)).toEqual([
      `davit-${version}.cdx.json`,
      ...["x64", "arm64"].flatMap((processor) => [
        `davit-${version}-linux-${processor}.tar.gz`,
        `davit_${version}_${processor === "x64" ? "amd64" : processor}.deb`,
      ]),
    ]);
    process.stdout.write(sums ?? "");
  });

  it.each([
    ["x64", 0x3e],
    ["arm64", 0xb7],
  ])("have a Node for %s", async (processor, machine) => {
    const node = await readFile(join(first(), `davit-${version}-linux-${processor}/bin/node`));
    expect(node.readUInt16LE(18)).toBe(machine);
  });

  it("run from the unpacked archive, wherever it lies", long, async () => {
    const archive = join(first(), `davit-${version}-linux-x64.tar.gz`);
    const place = mkdtempSync(join(folder, "un packed-"));
    await run("tar", ["--extract", "--gzip", "--directory", place, "--file", archive]);
    const { stdout } = await run(join(place, `davit-${version}-linux-x64/bin/davit`), ["--version"], { env: {} });
    expect(stdout).toMatch(new RegExp(`^davit ${version} \\(commit [\\da-f]{40}(-dirty)?\\)\\n$`));
  });

  it("install in a bare Debian, where davit boots a machine, and leave its data when removed", long, async () => {
    await writeFile(join(debian, "session.zsh"), zshSession);
    const { stdout } = await inDebian(debian, [
      "dpkg --install /davit.deb",
      "davit --version",
      "stat --format '%a %U:%G %n' /etc/davit /etc/davit/objects /etc/davit/davit.env /etc/davit/ops-token",
      "grep --count --extended-regexp '^[0-9a-f]{64}$' /etc/davit/ops-token; sum=$(md5sum /etc/davit/ops-token)",
      "ls /usr/share/doc/davit/examples/examples /usr/share/doc/davit/examples/prometheus",
      "bash -c '. /usr/share/bash-completion/completions/davit; COMP_WORDS=(davit ser); COMP_CWORD=1; _davit; echo complete: $COMPREPLY'",
      "timeout 60 zsh -f /session.zsh",
      "davit lint --manifests /usr/lib/davit/manifests/quickstart",
      "cp /usr/lib/davit/manifests/quickstart/*.yaml /etc/davit/objects/",
      // StateDirectory= of the unit.
      "install -d -o davit -g davit -m 0700 /var/lib/davit /var/lib/davit/assets",
      "unit=/usr/lib/systemd/system/davit.service",
      "setpriv --reuid davit --regid davit --init-groups --no-new-privs --inh-caps=-all --bounding-set=-all \\",
      "  env $(sed -n 's/^Environment=//p' $unit) $(sed -n 's/^ExecStart=//p' $unit) > /log & davit=$!",
      "trap 'cat /log' EXIT",
      ask,
      "until ask http://127.0.0.1:8081/readyz >/dev/null; do kill -0 $davit; sleep 0.2; done",
      "ask 'http://127.0.0.1:8080/ipxe?mac=52:54:00:a1:9c:ae'",
      "kill $davit; wait $davit; echo ended: $?",
      "dpkg --install /davit.deb; dpkg --verify davit; echo verified",
      '[ "$sum" = "$(md5sum /etc/davit/ops-token)" ] && echo the token stays',
      "dpkg --remove davit; dpkg --purge davit",
      "ls -d /usr/lib/davit /usr/bin/davit /etc/davit/davit.env /etc/davit/ops-token || true",
      "ls /var/lib/davit/data",
    ]);
    process.stdout.write(stdout);
    expect(stdout).toContain(`\ndavit ${version} (commit `);
    expect(stdout).toContain("\n750 root:davit /etc/davit\n750 root:davit /etc/davit/objects\n640 root:davit");
    expect(stdout).toContain("\n640 root:davit /etc/davit/ops-token\n1\n");
    expect(stdout).toContain("flatcar.yaml\n");
    expect(stdout).toContain("davit.rules.yaml\n");
    expect(stdout).toContain("\nthe token stays\n");
    expect(stdout).toContain("\ncomplete: serve\ncompleted in zsh\n");
    expect(stdout).toMatch(/\n#!ipxe\nkernel \/assets\/quickstart\/vmlinuz .*\n(.*\n)*boot\n/);
    expect(stdout).toContain("\nended: 0\n");
    expect(stdout).toMatch(/\n(Setting up davit .*\n)(Processing .*\n)*verified\n/);
    expect(stdout).toContain("/var/lib/davit stays, with the ledger of installs");
    const gone = ["/usr/lib/davit", "/usr/bin/davit", "/etc/davit/davit.env", "/etc/davit/ops-token"];
    for (const path of gone) expect(stdout).toContain(`ls: cannot access '${path}': No such file or directory`);
    expect(stdout).toContain("\nledger\n");
  });

  it.skipIf(missing("cgroup2"))("serve under systemd, and restart by themselves only after a crash", long, async () => {
    const ready = "until ask http://127.0.0.1:8081/readyz >/dev/null; do sleep 0.2; done";
    const other = 'until [ "$(of MainPID)" != $old ] && [ "$(of ActiveState)" = active ]; do sleep 0.2; done';
    const started = `${other}; ${ready}; old=$(of MainPID)`;
    const stdout = await underSystemd(debian, [
      "rm -rf /var/lib/davit; trap 'journalctl --unit davit --no-pager' EXIT",
      ask,
      'of() { systemctl show --value --property "$1" davit; }',
      "old=0; dpkg --install /davit.deb; echo fresh: $(of ActiveState)",
      "cp /usr/lib/davit/manifests/quickstart/*.yaml /etc/davit/objects/",
      `systemctl enable --now davit; ${started}`,
      "ask 'http://127.0.0.1:8080/ipxe?mac=52:54:00:a1:9c:ae'",
      "awk '/^(Uid|CapBnd|NoNewPrivs|Seccomp):/ { print $1, $2 }' /proc/$old/status; id --user davit",
      "stat --format '%a %U %n' /var/lib/davit",
      "inside() { nsenter --target $old --mount --root --wd touch $1/touched && echo $1: written; }",
      "for path in /usr /etc/davit /var/lib/davit; do inside $path || true; done",
      `systemctl restart davit; ${started}; echo restarted: $(of NRestarts) $(of Result)`,
      `kill -KILL $old; ${started}; echo after a crash: $(of NRestarts) $(of Result)`,
      `dpkg --install /davit.deb; ${started}; echo after an upgrade: $(of NRestarts) $(of Result)`,
      "systemctl stop davit; echo stopped: $(of ActiveState) $(of Result) $(of ExecMainStatus)",
      "echo DAVIT_STORE_ADDRESS=nonsense >> /etc/davit/davit.env; systemctl start davit || true",
      "while [ $(of ActiveState) = active ] || [ $(of ActiveState) = activating ]; do sleep 0.2; done",
      "echo wrong option: $(of ActiveState) $(of NRestarts) $(of ExecMainStatus)",
      "sed -i '$d' /etc/davit/davit.env; old=0; systemctl start davit",
      `${started}; echo corrected: $(of ActiveState)`,
      "dpkg --purge davit; systemctl is-enabled davit || true; systemctl is-active davit || true",
    ]);
    process.stdout.write(stdout);
    expect(stdout).toContain("\nfresh: inactive\n");
    expect(stdout).toMatch(/\n#!ipxe\nkernel \/assets\/quickstart\/vmlinuz .*\n(.*\n)*boot\n/);
    expect(stdout).toMatch(/\nUid: (\d+)\nCapBnd: 0{16}\nNoNewPrivs: 1\nSeccomp: 2\n\1\n700 davit \/var\/lib\/davit\n/);
    for (const path of ["/usr", "/etc/davit"])
      expect(stdout).toContain(`touch: cannot touch '${path}/touched': Read-only file system`);
    expect(stdout).toContain("\n/var/lib/davit: written\n");
    expect(stdout).toContain("\nrestarted: 0 success\n");
    expect(stdout).toContain("\nafter a crash: 1 success\n");
    expect(stdout).toContain("\nafter an upgrade: 0 success\n");
    expect(stdout).toContain("\nstopped: inactive success 0\n");
    expect(stdout).toContain("\nwrong option: failed 0 2\n");
    expect(stdout).toMatch(/\ncorrected: active\n(.*\n)*inactive\n/);
  });

  it("have a unit that systemd takes and rates as confined, a page that man takes, and other shells' words", async () => {
    await run("dpkg-deb", ["--extract", join(debian, "davit.deb"), debian]);
    const unit = join(debian, "usr/lib/systemd/system/davit.service");
    const found = join(folder, "davit.service");
    await writeFile(found, (await readFile(unit, "utf8")).replace("=/usr/bin/davit", `=${debian}/usr/bin/davit`));
    const verified = await run("systemd-analyze", ["verify", "--man=no", found]);
    expect(verified.stderr.split("\n").filter((line) => line.includes("davit.service"))).toEqual([]);
    const rated = await run("systemd-analyze", ["security", "--offline=yes", "--threshold=25", unit]);
    process.stdout.write(rated.stdout.trimEnd().split("\n").slice(-1).join("\n"));
    const words = await readFile(unit, "utf8");
    const page = await readFile(join(root, "docs/operate/host.md"), "utf8");
    const confinement = words.slice(words.indexOf("NoNewPrivileges="), words.indexOf("[Install]"));
    expect(page).toContain(confinement);
    const manual = join(debian, "usr/share/man/man1/davit.1.gz");
    const shown = await run("man", ["--warnings", "--local-file", manual], {
      env: { ...process.env, MANWIDTH: "100" },
    });
    expect(shown.stderr).toBe("");
    expect(shown.stdout).toContain("--boot-address HOST:PORT");
    const zsh = await readFile(join(debian, "usr/share/zsh/vendor-completions/_davit"), "utf8");
    expect(zsh.startsWith("#compdef davit\n")).toBe(true);
  });
});

/** Presses Tab in a zsh whose terminal is another zsh. */
const zshSession = String.raw`zmodload zsh/zpty
zpty shell zsh -f -i
wait_for() { local part; out=; until [[ $out == $~1 ]]; do zpty -r -t shell part && out+=$part; sleep 0.1; done }
send() { zpty -w -n shell $1; }
send $'TERM=dumb; PS1="> "; stty cols 200\n'
send $'autoload -Uz compinit; compinit -u -D; print loa""ded\n'
wait_for '*loaded*'
send $'davit rest\t'
wait_for '*restore*'
send $' --inp\t'
wait_for '*--input*'
print completed in zsh
zpty -d shell
`;

/** Works like curl, which a bare Debian does not have. */
const ask = `ask() { /usr/lib/davit/bin/node --eval 'fetch(process.argv[1]).then(async (answer) => {
  if (!answer.ok) process.exit(1); process.stdout.write(await answer.text()); }, () => process.exit(1))' $1; }`;

const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"];

/** Runs lines of a shell in the chroot, with a network, processes and mounts of its own. */
async function inDebian(debian: string, lines: readonly string[]) {
  await writeScript(debian, lines);
  const inside = `ip link set lo up; mount -t proc proc "$0/proc"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"; mount --bind "$0/dev/pts/ptmx" "$0/dev/ptmx"
    exec chroot "$0" /bin/bash -eu /script`;
  return await run("unshare", [...namespaces, "bash", "-c", inside, debian], { env: { PATH: process.env.PATH } });
}

/**
 * Like `inDebian`, but under a systemd that ends after these lines. It cannot change this computer's settings
 * (/proc/sys, /sys), console and control groups.
 * @returns the output of the lines.
 */
async function underSystemd(debian: string, lines: readonly string[]): Promise<string> {
  await writeScript(debian, lines);
  await writeFile(join(debian, "etc/systemd/system/script.service"), scriptUnit);
  const inside = `set -e; ip link set lo up; mount --bind "$0" "$0"; mount -t proc proc "$0/proc"
    mount --bind "$0/proc/sys" "$0/proc/sys"; mount -o remount,bind,ro "$0/proc/sys"
    mount -t sysfs -o ro sysfs "$0/sys"; mount -t cgroup2 cgroup "$0/sys/fs/cgroup"
    mount -t tmpfs tmpfs "$0/run"; mount --bind /dev/null "$0/dev/console"
    cd "$0"; pivot_root . mnt; exec chroot . /bin/bash -ec "umount --lazy /mnt
    exec env --ignore-environment container=other /lib/systemd/systemd --unit=script.service"`;
  const around = `set -e; groups=$(mktemp --directory); mount -t cgroup2 cgroup "$groups"; mkdir "$groups/davit-$$"
    (echo $BASHPID > "$groups/davit-$$/cgroup.procs"; 
      exec setpriv --pdeathsig KILL unshare --cgroup ${namespaces.join(" ")} bash -c "$1" "$0") ||
      echo "systemd ended: $?" >&2
    find "$groups/davit-$$" -depth -type d -exec rmdir {} +; umount "$groups"; rmdir "$groups"`;
  // Applies only if systemd itself hangs: the unit has a shorter limit.
  const limits = { timeout: 800_000, killSignal: "SIGKILL" } as const;
  const { stderr } = await run("unshare", ["--mount", "bash", "-c", around, debian, inside], limits);
  return `${await readFile(join(debian, "output"), "utf8")}${stderr}`;
}

async function writeScript(debian: string, lines: readonly string[]): Promise<void> {
  const head = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive\nexec 2>&1";
  await writeFile(join(debian, "script"), [head, ...lines].join("\n"));
}

const scriptUnit = `[Unit]
SuccessAction=exit
FailureAction=exit

[Service]
Type=exec
ExecStart=/bin/bash -eu /script
RuntimeMaxSec=700
StandardOutput=truncate:/output
`;
