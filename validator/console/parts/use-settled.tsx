import { useEffect, useState } from 'react';
import { after } from '../browser/clock.ts';

const SETTLED_MS = 400;

/** Returns the text after it has not changed for a moment, so that typing does not send a request per key. */
export function useSettled(text: string, settledMs = SETTLED_MS): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => after(settledMs, () => setSettled(text)), [text, settledMs]);
  return settled;
}
