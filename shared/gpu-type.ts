/** The short type of a GPU, as clients of this market derive it from the full name (contract 3.1). */

const SHORT_TYPES = [/RTX\s*\d{4}/, /[HBL]\d{2,3}S?/, /A\d{2,4}/];
/** Words that say nothing about the model. */
const FILLER = /^(NVIDIA|Tesla|Quadro|GeForce)\s+/i;

/** `NVIDIA H100 80GB HBM3` -> `H100`; names without a known pattern -> their first two words. */
export function shortGpuType(name: string): string {
  for (const pattern of SHORT_TYPES) {
    const found = pattern.exec(name);
    if (found !== null) return found[0].replace(/\s+/g, '');
  }
  let rest = name.trim();
  while (FILLER.test(rest)) rest = rest.replace(FILLER, '');
  return rest.split(/\s+/).slice(0, 2).join(' ');
}

/** Whether an offered type (`H100`, or a full name) and a measured full name mean one model. */
export function gpuTypesMatch(offered: string, measured: string): boolean {
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  return same(offered, measured) || same(shortGpuType(offered), shortGpuType(measured));
}
