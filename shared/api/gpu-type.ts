/** The short GPU type in a full NVIDIA name, and MIG devices. Pure. */

/** The first pattern that matches determines the type. */
const PATTERNS = [/RTX\s*\d{4}/, /[HBL]\d{2,3}S?/, /A\d{2,4}/] as const;
/** Names that match no pattern are shortened to this many words, without the vendor. */
const FALLBACK_WORDS = 2;

/** Compute slices of a card; the name of a profile begins with its number of slices. */
const MIG_SLICES = 7;
/** Suffix of a MIG device's name, which distinguishes it from the whole card. */
const MIG_SUFFIX = / MIG \S+$/;

/** `NVIDIA H100 80GB HBM3` becomes `H100`, its MIG device `H100 MIG 3g.40gb`; other names: the first words. */
export function shortGpuType(machineName: string): string {
  const part = MIG_SUFFIX.exec(machineName)?.[0] ?? '';
  return `${shortCardType(machineName.replace(MIG_SUFFIX, ''))}${part}`;
}

/** Returns the card of a MIG device and its number of slices out of `of`. Null for a whole card. */
export function migSlicesOf(
  machineName: string,
): { card: string; slices: number; of: number } | null {
  const slices = /^MIG (\d)/.exec(MIG_SUFFIX.exec(machineName)?.[0].trim() ?? '')?.[1];
  if (slices === undefined) return null;
  return { card: machineName.replace(MIG_SUFFIX, ''), slices: Number(slices), of: MIG_SLICES };
}

/** Returns the card of a MIG device and its share of the card's compute. Null for a whole card. */
export function migPartOf(machineName: string): { card: string; share: number } | null {
  const part = migSlicesOf(machineName);
  return part === null ? null : { card: part.card, share: part.slices / part.of };
}

function shortCardType(machineName: string): string {
  for (const pattern of PATTERNS) {
    const found = pattern.exec(machineName)?.[0];
    if (found !== undefined) return found.replace(/\s+/g, ' ');
  }
  const words = machineName.split(/\s+/).filter((word) => word !== '' && !/^nvidia$/i.test(word));
  return words.slice(0, FALLBACK_WORDS).join(' ');
}

/** Returns true if `wanted`, a short type or a full name, matches the GPU's name. */
export function matchesGpuType(machineName: string, wanted: string): boolean {
  const target = normalized(wanted);
  return target === normalized(machineName) || target === normalized(shortGpuType(machineName));
}

function normalized(name: string): string {
  return name.toUpperCase().replace(/\s+/g, '');
}
