/** Work that belongs to the next picture of the page. */
import { after } from './clock.ts';

/** Browsers draw no pictures of hidden pages; their work is then done after this time. */
const HIDDEN_MS = 200;

/** Calls `run` before the next picture; returns the function that cancels it. */
export function beforeNextFrame(run: () => void): () => void {
  const cancel = () => {
    cancelAnimationFrame(frame);
    cancelTimer();
  };
  const once = () => {
    cancel();
    run();
  };
  const frame = requestAnimationFrame(once);
  const cancelTimer = after(HIDDEN_MS, once);
  return cancel;
}
