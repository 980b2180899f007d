import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { run } from "./run.ts";
import { builtImage, pageNamespace, removeDefinitions, type Stage } from "./stage.ts";

const repository = join(import.meta.dirname, "../..");
const page = "operate/install.md";
const limitMs = 280_000;

/** The commands of docs/operate/install.md that say `e2e`, from the first one to the last, as somebody copies them. */
export function pageSteps(stage: Stage): void {
  const { release, image, authority } = stage;
  // The page leaves the chart's own repository.
  const isPageImage = image.repository === builtImage.repository;

  describe.skipIf(!isPageImage)(`docs/${page}`, () => {
    it("has commands that work", { timeout: limitMs + 20_000 }, async ({ annotate }) => {
      await release.uninstall();
      await removeDefinitions();
      const folder = join(stage.folder, "page");
      mkdirSync(folder);
      for (const name of ["charts", "manifests"]) symlinkSync(join(repository, name), join(folder, name));
      const blocks = blocksOf(readPage(page), "sh e2e");
      expect(blocks.length).toBeGreaterThan(3);
      const environment = { REGISTRY: image.registry, TAG: image.tag, ADDRESS: authority };
      const lines = ["exec 2>&1", "set -euo pipefail", endAgent, `cd ${folder}`, "set -x", ...blocks];
      const said = await run(["bash", "-c", lines.join("\n")], { environment, timeoutMs: limitMs });
      await annotate(said);
      expect(said).toContain("-----BEGIN PGP SIGNATURE-----");
      expect(said).toContain("data-davit-0");
      await run(["kubectl", "delete", "namespace", pageNamespace, "--timeout=100s"]);
    });
  });
}

// gpg starts it, and would leave it.
const endAgent = "trap 'gpgconf --kill all' EXIT";
