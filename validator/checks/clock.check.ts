/** The host's clock agrees with the validator's: signatures and bills depend on it. */
import { failed, type Judge, passed } from './check.ts';

/** How far outside the time between question and answer the host's clock is: a slow way there is no skew. */
export const judgeClock: Judge = ({ inventory, receivedMs, measured: { asked_ms }, policy }) => {
  const { clock_warn_ms: warnMs, clock_fail_ms: failMs } = policy.checks;
  const at = inventory.collected_ms;
  const skewMs = at - Math.min(Math.max(at, asked_ms), receivedMs);
  const measured = `${(skewMs / 1000).toFixed(1)} s`;
  if (Math.abs(skewMs) > failMs) {
    return failed('CLOCK_SKEW', measured, 'The clock of the host is wrong');
  }
  if (Math.abs(skewMs) <= warnMs) return passed(measured);
  return { status: 'passed', measured, warning: 'The clock of the host drifts away' };
};
