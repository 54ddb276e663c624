import type { Tone } from '../parts/tone.ts';

/** Tone of an event by the outcome in its subtype, such as `backup.failed`. */
export function toneOfEvent(type: string): Tone {
  if (type.endsWith('.failed')) return 'bad';
  if (type.endsWith('.success')) return 'good';
  return type.endsWith('.requested') ? 'busy' : 'idle';
}
