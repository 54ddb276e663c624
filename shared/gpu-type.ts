/** The short GPU type that clients and we read out of a full NVIDIA name (contract 3.1). Pure. */

/** In order; the first that is found names the type. */
const PATTERNS = [/RTX\s*\d{4}/, /[HBL]\d{2,3}S?/, /A\d{2,4}/] as const;
/** A name that no pattern knows is shortened to this many words, the vendor left out. */
const FALLBACK_WORDS = 2;

/** `NVIDIA H100 80GB HBM3` -> `H100`; a name of unknown shape gives its first words. */
export function shortGpuType(machineName: string): string {
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
