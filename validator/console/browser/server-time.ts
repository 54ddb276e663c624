/** Time of the server: that of a simulated marketplace differs from the browser's, and the browser's may be wrong. */
import { offsetOf } from '../api/server-date.ts';
import { browserMs, parseApiTime, parseHttpDate } from './clock.ts';

const SIMULATION_EVENT = 'podwright-simulation';

/**
 * Makes the console use the time of a simulated marketplace, in the form of the API, instead of the browser's. The page
 * stores it as an attribute.
 */
export function recordSimulatedTime(text: string): void {
  const epochMs = parseApiTime(text);
  if (epochMs === null) return;
  const isFirst = !isSimulated();
  document.documentElement.dataset['simulatedMs'] = String(epochMs);
  if (isFirst) window.dispatchEvent(new Event(SIMULATION_EVENT));
}

/** Stores in the page what the server's clock is ahead of the browser's, from the header `Date` of a response. */
export function recordServerDate(text: string | null): void {
  document.documentElement.dataset['serverOffsetMs'] = String(
    offsetOf(parseHttpDate(text), browserMs()),
  );
}

function serverOffsetMs(): number {
  return Number(document.documentElement.dataset['serverOffsetMs'] ?? 0);
}

/** Returns true once the server has answered with a simulated time. */
export function isSimulated(): boolean {
  return simulatedMs() !== null;
}

/** Calls `notify` when the first simulated time arrives; returns the function that ends this. */
export function subscribeSimulation(notify: () => void): () => void {
  window.addEventListener(SIMULATION_EVENT, notify);
  return () => window.removeEventListener(SIMULATION_EVENT, notify);
}

/** Returns the time of a simulated marketplace as of its newest answer; null in a real marketplace. */
function simulatedMs(): number | null {
  const text = document.documentElement.dataset['simulatedMs'];
  return text === undefined ? null : Number(text);
}

/** Returns the present time of the server, which is simulated if that of the marketplace is. */
export function nowMs(): number {
  return simulatedMs() ?? browserMs() + serverOffsetMs();
}
