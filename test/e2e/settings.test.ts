import { describe, expect, it } from "vitest";
import { readSettings, SettingsError } from "./settings.ts";

const least = { KUBECONFIG: "/k", E2E_IMAGE: "registry.example:5000/team/davit:1.2" };

describe("the settings of make e2e", () => {
  it("need a cluster and an image", () => {
    expect(readSettings(least)).toEqual({
      kubeconfig: "/k",
      image: { registry: "registry.example:5000", repository: "team/davit", tag: "1.2" },
      nodePort: 30_080,
      helm: "helm",
    });
  });

  it("need no image where they say how to load one", () => {
    const settings = readSettings({ KUBECONFIG: "/k", E2E_LOAD_IMAGE: "kind  load image-archive" });
    expect(settings).toMatchObject({ image: undefined, loadImage: ["kind", "load", "image-archive"] });
  });

  it.each([
    { name: "no cluster", change: { KUBECONFIG: "" }, problem: "KUBECONFIG is not set" },
    { name: "no image", change: { E2E_IMAGE: "" }, problem: "Neither E2E_IMAGE nor E2E_LOAD_IMAGE is set" },
    { name: "an image without a tag", change: { E2E_IMAGE: "a/b" }, problem: '"a/b" is not of the form' },
    { name: "no port", change: { E2E_NODE_PORT: "http" }, problem: 'E2E_NODE_PORT "http" is not a port' },
    { name: "half of the faults", change: { E2E_SERVICE: "svc" }, problem: "only one is set" },
  ])("are refused with $name, with the list of them", ({ change, problem }) => {
    const reading = () => readSettings({ ...least, ...change });
    expect(reading).toThrow(SettingsError);
    expect(reading).toThrow(problem);
    expect(reading).toThrow("E2E_HOST_ADDRESS");
  });
});
