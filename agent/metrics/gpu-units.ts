/** Converts values of nvidia-smi to the base units of Prometheus. Pure. */
import type { FieldUnit } from '../gpu/nvidia/fields.ts';
import { amountOf, numberOf } from '../gpu/nvidia/values.ts';

const FACTORS: Readonly<Record<Exclude<FieldUnit, 'word'>, number>> = {
  plain: 1,
  signed: 1,
  mib: 2 ** 20,
  percent: 0.01,
  mhz: 1e6,
  watts: 1,
  watts_per_s: 1,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
};

/** NVML's numbers for the words that nvidia-smi prints. */
const WORDS: Record<string, number> = {
  no: 0,
  disabled: 0,
  'not active': 0,
  default: 0,
  none: 0,
  yes: 1,
  enabled: 1,
  active: 1,
  exclusive_thread: 1,
  prohibited: 2,
  exclusive_process: 3,
  // gpu_recovery_action
  'gpu reset': 1,
  reset: 1,
  'node reboot': 2,
  reboot: 2,
  'drain p2p': 3,
  'drain and reset': 4,
  // fabric.state
  'not started': 1,
  'in progress': 2,
  completed: 3,
};

/** Returns null if there is no value; the series is then omitted. */
export function inBaseUnits(printed: string | undefined, unit: FieldUnit): number | null {
  if (printed === undefined) return null;
  if (unit === 'word') return wordValue(printed.trim());
  const number = unit === 'signed' ? numberOf(printed) : amountOf(printed);
  return number === null ? null : number * FACTORS[unit];
}

/** Also parses `P8`, `0x0000000000000001` and plain numbers. Unknown words have no number. */
function wordValue(text: string): number | null {
  const known = WORDS[text.toLowerCase()];
  if (known !== undefined) return known;
  const [, state] = /^P(\d{1,2})$/.exec(text) ?? [];
  if (state !== undefined) return Number(state);
  if (/^0x[0-9a-fA-F]{1,16}$/.test(text)) return Number(text);
  return numberOf(text);
}
