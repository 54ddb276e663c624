/** Time of the server: that of a simulated marketplace differs from the browser's. */
import { browserMs, parseApiTime } from './clock.ts';

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

/** Returns true once the server has answered with a simulated time. */
export function isSimulated(): boolean {
  return simulatedMs() !== null;
}

/** Calls `notify` when the first simulated time arrives; returns the function that ends this. */
export function subscribeSimulation(notify: () => void): () => void {
  window.addEventListener(SIMULATION_EVENT, notify);
  return () => window.removeEventListener(SIMULATION_EVENT, notify);
}

/** Returns the time of a simulated marketplace as of its newest answer; null if the browser's time is right. */
function simulatedMs(): number | null {
  const text = document.documentElement.dataset['simulatedMs'];
  return text === undefined ? null : Number(text);
}

/** Returns the present time, which is simulated if that of the marketplace is. */
export function nowMs(): number {
  return simulatedMs() ?? browserMs();
}
