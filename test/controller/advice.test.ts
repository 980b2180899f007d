import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { groupAdvice, profileAdvice } from "../../src/controller/reconcile/advice.ts";
import { reconcileProfile } from "../../src/controller/reconcile/reconcile-profile.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { KernelBoot } from "../../src/model/objects/profile.ts";
import { groupSpec, kernelBoot, profileObject } from "./objects.ts";

function ofBoot(boot: Partial<KernelBoot>): readonly string[] {
  return profileAdvice({ boot: { ...kernelBoot, ...boot }, templates: {} }).map(({ text }) => text);
}

function gzipped(text: string): string {
  return gzipSync(text).toString("base64");
}

function ofGroup(group: Partial<GroupSpec>): readonly string[] {
  return groupAdvice(groupSpec(group)).map(({ text }) => text);
}

describe("advice on a Profile", () => {
  it.each([
    ["an argument that iPXE takes for a comment", { args: ["quiet", "#debug"] }, "boot.args[1] begins with #"],
    ["an argument ||", { args: ["||"] }, "boot.args[0] is ||"],
    ["an argument &&", { args: ["&&"] }, "boot.args[0] is &&"],
    ["an argument ;", { args: [";"] }, "boot.args[0] is ;"],
    ["initrds that no argument names", { initrd: ["/i"] }, "set boot.efiInitrd"],
  ])("tells of %s", (_name, boot, said) => {
    expect(ofBoot(boot)).toEqual([expect.stringContaining(said)]);
  });

  it.each([
    ["such words inside an argument", { args: ["a#b", "a||b", "x;"] }],
    ["efiInitrd", { initrd: ["/i"], efiInitrd: true }],
    ["an initrd= argument", { initrd: ["/i"], args: ["quiet initrd=i"] }],
  ])("is silent on %s", (_name, boot) => {
    expect(ofBoot(boot)).toEqual([]);
  });

  it("tells of metadata names that fall together in /metadata", () => {
    const advice = profileAdvice({ metadata: { a_b: 1, "a.b": 2 }, templates: {} }).map(({ text }) => text);
    expect(advice).toEqual([expect.stringContaining("more than one A_B")]);
  });

  it.each<[argument: string, installer: string, args: string]>([
    ["inst.ks", "Anaconda", "inst.ks={{davit.url}}/generic"],
    ["inst.stage2", "Anaconda", "inst.stage2=http://mirror/"],
    ["ks", "Anaconda", "ks=http://ks.example/ks.cfg"],
    ["coreos.inst.install_dev", "coreos-installer", "coreos.inst.install_dev={{disk}}"],
    ["autoinstall", "Subiquity", "ds=nocloud;s={{davit.url}}/generic/ autoinstall"],
    ["auto", "debian-installer", "auto=true priority=critical url=http://x/preseed"],
    ["preseed/url", "debian-installer", "preseed/url=http://x/preseed"],
    ["autoyast", "YaST", "autoyast=http://x/a.xml"],
    ["inst.auto", "Agama", "inst.auto=http://x/a.json"],
    ["talos.config", "Talos", "talos.config={{davit.url}}/generic"],
    ["harvester.install.config_url", "Harvester", "harvester.install.config_url={{davit.url}}/generic"],
    ["k3os.install.device", "k3OS", "k3os.install.device=/dev/sda"],
    ["install-mode", "Kairos", "rd.neednet=1 install-mode"],
    ["proxmox-start-auto-installer", "Proxmox VE", "ramdisk_size=16777216 proxmox-start-auto-installer"],
  ])("tells of %s of %s without an effect", (argument, installer, text) => {
    const said = `boot.args[1] has ${argument} of ${installer}, and the Profile no effect: set effect: Install, or `;
    expect(ofBoot({ args: ["quiet", text] })).toEqual([expect.stringContaining(said)]);
    for (const effect of ["Install", "Boot"] as const) {
      const boot = { ...kernelBoot, args: [text] };
      expect(profileAdvice({ boot, effect, templates: {} })).toEqual([]);
    }
  });

  it.each([
    ["ignition", "flatcar-install -d /dev/sda -i /c.ign", "flatcar-install"],
    ["ignition", "ExecStart=/usr/bin/coreos-installer install /dev/sda", "coreos-installer"],
    ["generic/setup", "coreos-install -d {{disk}}", "coreos-install"],
    ["cloudConfig", "kairos-agent manual-install --device auto", "kairos-agent"],
    ["generic", "flatcar-install \\\n  -d /dev/sda", "flatcar-install"],
    ["ignition", JSON.stringify("flatcar-install \\\n  -d /dev/sda"), "flatcar-install"],
    ["ignition", "data:,flatcar-install%20-d%20/dev/sda", "flatcar-install"],
    ["ignition", `data:;base64,${btoa("#!/bin/sh\nflatcar-install -d /dev/sda")}`, "flatcar-install"],
    ["ignition", `data:;base64,${gzipped("#!/bin/sh\nflatcar-install -d /dev/sda")}`, "flatcar-install"],
  ] as const)("finds a command in %s: %s", (part, text, command) => {
    const template = { kind: "inline", text, raw: false } as const;
    const advice = profileAdvice({ templates: { [part]: template } });
    expect(advice.map(({ code }) => code)).toEqual(["unmarked-installer"]);
    expect(advice[0]?.text).toContain(`runs ${command}, and the Profile has no effect: set effect: Install, or `);
    expect(profileAdvice({ effect: "Boot", templates: { [part]: template } })).toEqual([]);
  });

  it.each(["coreos-installer iso customize", "my-flatcar-install x", "see coreos-install."])("not in %s", (text) => {
    expect(profileAdvice({ templates: { ignition: { kind: "inline", text, raw: false } } })).toEqual([]);
  });

  it("decodes no more than a config can need", () => {
    const bomb = gzipped(`${" ".repeat(300_000)}flatcar-install -d /dev/sda`);
    const many = `${`"${gzipped("nothing")}" `.repeat(64)}"${gzipped("flatcar-install -d /dev/sda")}"`;
    for (const text of [bomb, many]) {
      expect(profileAdvice({ templates: { ignition: { kind: "inline", text, raw: false } } })).toEqual([]);
    }
  });

  it("tells once of an installer in scripts", () => {
    const script = "#!ipxe\nkernel /linux autoinstall\nboot";
    const advice = profileAdvice({
      boot: { kind: "script", script },
      grubScript: "linux /l 'inst.ks=a'",
      templates: {},
    });
    expect(advice.map(({ code, field }) => [code, field])).toEqual([["unmarked-installer", "spec.boot.script"]]);
  });

  it("is silent on arguments that install nothing, and on where kernels are", () => {
    const args = ["console=ttyS0", "ignition.platform.id=metal", "ds=nocloud", "automatic=1", "talos.platform=metal"];
    expect(ofBoot({ kernel: "/install /autoinstall", args })).toEqual([]);
  });

  it("is silent on local boot", () => {
    expect(profileAdvice({ boot: { kind: "local", local: "exit" }, templates: {} })).toEqual([]);
  });
});

describe("advice on a Group", () => {
  it("tells of the uuid of zeros", () => {
    const selector = { uuid: "00000000-0000-0000-0000-000000000000" };
    expect(ofGroup({ selector })).toEqual([expect.stringContaining("it selects no machine")]);
  });

  it("tells of an argument that iPXE takes for its own", () => {
    expect(ofGroup({ args: ["quiet", "#x"] })).toEqual([expect.stringMatching(/^args\[1\] begins with #/)]);
  });

  it.each<[name: string, spec: Partial<GroupSpec>, said: string[]]>([
    [
      "the uuid of zeros in a list",
      {
        selector: {},
        expressions: [{ key: "uuid", operator: "In", values: ["00000000-0000-0000-0000-000000000000"] }],
      },
      ["a uuid of the selector is invalid, or shared by many boards: it selects no machine"],
    ],
    [
      "a selector that nearly every machine meets",
      { selector: {}, expressions: [{ key: "serial", operator: "Glob", values: ["?*"] }] },
      ["the selector asks for no value, and its patterns fix few characters: nearly every machine may meet it"],
    ],
    [
      "a label that its expression rules out",
      { selector: { os: "a" }, expressions: [{ key: "os", operator: "NotIn", values: ["a"] }] },
      ["the labels of the selector do not meet its expressions: no machine gets this Group"],
    ],
    ["nothing else", { expressions: [{ key: "os", operator: "Exists", values: [] }] }, []],
  ])("tells of %s", (_name, spec, said) => {
    expect(ofGroup(spec)).toEqual(said);
  });

  it("tells of metadata names that fall together in /metadata", () => {
    const metadata = { a_b: 1, "a.b": 2, c: 3 };
    expect(ofGroup({ metadata })).toEqual([expect.stringContaining("more than one A_B")]);
  });

  it("tells of the first names only, and no more of a name than its beginning", () => {
    const names = Array.from({ length: 300 }, (_, at) => `${"x".repeat(1_000)}${at}`);
    const metadata = Object.fromEntries(names.flatMap((name) => [`${name}.a`, `${name}_a`]).map((key) => [key, 1]));
    const advice = ofGroup({ metadata });
    expect(advice).toHaveLength(11);
    expect(advice.at(-1)).toBe("so it is with 290 other names");
    expect(advice.join("; ").length).toBeLessThan(32_768);
  });

  const deep = `${'{"a":'.repeat(65)}1${"}".repeat(65)}`;
  const longNames = `${`{"${"k".repeat(10_000)}":`.repeat(60)}[${"0,".repeat(99_999)}0]${"}".repeat(60)}`;
  it.each([
    ["nested too deep", deep, "nested deeper than 64 levels"],
    ["whose names take gigabytes", longNames, "more than 8 MiB"],
  ])("tells of metadata %s, instead of failing", (_name, text, said) => {
    const advice = ofGroup({ metadata: JSON.parse(text) });
    expect(advice).toEqual([expect.stringMatching(new RegExp(`^/metadata is answered 500: .*${said}$`))]);
  });

  it("is done at once with a long list", () => {
    expect(ofGroup({ metadata: { list: Array.from({ length: 200_000 }, () => 0) } })).toEqual([]);
  });

  it("is silent on an ordinary Group", () => {
    expect(ofGroup({ metadata: { a: { b: 1 }, c: [1, 2] } })).toEqual([]);
  });
});

it("Advice is in the Accepted condition, and the object is ready all the same", () => {
  const object = profileObject({ boot: { ...kernelBoot, args: ["#"] } });
  const world = {
    sha256: (text: string) => text,
    secretName: (text: string) => text,
    configMap: () => undefined,
    secret: () => undefined,
    isGone: () => true,
    isForbidden: () => false,
  };
  const { status } = reconcileProfile(
    object,
    { document: undefined, secrets: new Map() },
    { ...world, checkTemplate: () => undefined },
  );
  const [accepted] = status?.conditions ?? [];
  expect(accepted).toMatchObject({ type: "Accepted", status: "True", reason: "ValidWithAdvice" });
  expect(accepted?.message).toContain("boot.args[0] begins with #");
  expect(status?.conditions.at(-1)).toMatchObject({ type: "Ready", status: "True" });
});

it.each(["arch", "platform", "net1/mac"])("tells which script sends %s", (name) => {
  const others = { profile: "p", matchAll: false, priority: 0, hold: false, metadata: {} };
  const advice = groupAdvice({ ...others, selector: { [name]: "x" } });
  expect(advice.map(({ code }) => code)).toEqual(["unsent-label"]);
  expect(advice[0]?.text).toContain(`machines send ${name} only after /chain.ipxe`);
  expect(groupAdvice({ ...others, selector: { role: "x", serial: "y" } })).toEqual([]);
});
