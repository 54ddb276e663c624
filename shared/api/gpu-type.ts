/** The short GPU type that clients and we read out of a full NVIDIA name (contract 3.1). Pure. */

/** In order; the first that is found names the type. */
const PATTERNS = [/RTX\s*\d{4}/, /[HBL]\d{2,3}S?/, /A\d{2,4}/] as const;
/** A name that no pattern knows is shortened to this many words, the vendor left out. */
const FALLBACK_WORDS = 2;

/** Of a card's compute; profiles are named after how many they have. */
const MIG_SLICES = 7;
/** At the end of the name of a MIG device: a part of a card is never offered as the card. */
const MIG_SUFFIX = / MIG \S+$/;

/** `NVIDIA H100 80GB HBM3` -> `H100`, its part `… MIG 3g.40gb` -> `H100 MIG 3g.40gb`; unknown shapes: the first words. */
export function shortGpuType(machineName: string): string {
  const part = MIG_SUFFIX.exec(machineName)?.[0] ?? '';
  return `${shortCardType(machineName.replace(MIG_SUFFIX, ''))}${part}`;
}

/** The card that a MIG device is part of, and how many of its `of` slices it has; null for a whole card. */
export function migSlicesOf(
  machineName: string,
): { card: string; slices: number; of: number } | null {
  const slices = /^MIG (\d)/.exec(MIG_SUFFIX.exec(machineName)?.[0].trim() ?? '')?.[1];
  if (slices === undefined) return null;
  return { card: machineName.replace(MIG_SUFFIX, ''), slices: Number(slices), of: MIG_SLICES };
}

/** The card that a MIG device is part of, and its share of the card's compute; null for a whole card. */
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

/** Whether `wanted`, a short type or a full name, means the node's GPU. */
export function matchesGpuType(machineName: string, wanted: string): boolean {
  const asked = normalized(wanted);
  return asked === normalized(machineName) || asked === normalized(shortGpuType(machineName));
}

function normalized(name: string): string {
  return name.toUpperCase().replace(/\s+/g, '');
}
