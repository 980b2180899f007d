/** The directory of davit's package. Sources and the bundle are equally deep below it. */
export const packageRoot = new URL("../../", import.meta.url);
