/** Values as nvidia-smi prints them, in Prometheus' base units. Pure. */
import { amountOf, numberOf } from '../gpu/nvidia/values.ts';

export type Unit = 'plain' | 'mib' | 'percent' | 'mhz' | 'word';

const FACTORS: Record<Exclude<Unit, 'word'>, number> = {
  plain: 1,
  mib: 2 ** 20,
  percent: 0.01,
  mhz: 1e6,
};

/** As the driver's library numbers them. */
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
  // Of gpu_recovery_action.
  reset: 1,
  reboot: 2,
  'drain p2p': 3,
  'drain and reset': 4,
  // Of fabric.state.
  'not started': 1,
  'in progress': 2,
  completed: 3,
};

/** Null for what is no value: a series of it would be a lie. */
export function inBaseUnits(printed: string | undefined, unit: Unit): number | null {
  if (printed === undefined) return null;
  if (unit === 'word') return wordValue(printed.trim());
  const number = unit === 'plain' ? numberOf(printed) : amountOf(printed);
  return number === null ? null : number * FACTORS[unit];
}

/** `P8`, `0x0000000000000001` and plain numbers beside the words. */
function wordValue(text: string): number | null {
  const known = WORDS[text.toLowerCase()];
  if (known !== undefined) return known;
  const [, state] = /^P(\d{1,2})$/.exec(text) ?? [];
  if (state !== undefined) return Number(state);
  if (/^0x[0-9a-fA-F]{1,16}$/.test(text)) return Number(text);
  return numberOf(text);
}
