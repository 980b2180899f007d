import { expect, it, vi } from "vitest";
import { CheckedTexts } from "../../src/boot/making/boot-maker.ts";
import { RenderError } from "../../src/render/core/render-error.ts";

const plain = (body: string) => ({ body, contentType: "text/plain" });

it("checks equal texts once, different ones each", () => {
  const check = vi.fn(plain);
  const checked = new CheckedTexts(check);
  expect(checked.get("a")).toEqual({ ...plain("a"), byteLength: 1 });
  expect(checked.get(["", "a"].join(""))).toEqual({ ...plain("a"), byteLength: 1 });
  expect(checked.get("b")).toEqual({ ...plain("b"), byteLength: 1 });
  expect(check.mock.calls).toEqual([["a"], ["b"]]);
});

it("refuses a refused text again without another look", () => {
  const check = vi.fn((): never => {
    throw new RenderError("notYaml", { line: 2, column: 3 });
  });
  const checked = new CheckedTexts(check);
  for (let time = 0; time < 3; time++) {
    expect(() => checked.get("a: [")).toThrow(expect.objectContaining({ reason: "notYaml" }));
  }
  expect(check).toHaveBeenCalledTimes(1);
});

it("does not remember a failure that says nothing of the text", () => {
  const check = vi.fn(plain).mockImplementationOnce(() => {
    throw new Error("a bug");
  });
  const checked = new CheckedTexts(check);
  expect(() => checked.get("a")).toThrow("a bug");
  expect(checked.get("a")).toEqual({ ...plain("a"), byteLength: 1 });
});
