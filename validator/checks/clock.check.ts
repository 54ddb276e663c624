/** The host's clock agrees with the validator's: signatures and bills depend on it. */
import type { Check } from './check.ts';

/** The inventory may be cached for some seconds on the host. */
const MAX_SKEW_MS = 30_000;

export const clockCheck: Check = {
  id: 'clock',
  required: 'clock within 30 s of the validator',
  judge({ inventory, receivedMs }) {
    if (inventory === null) return { status: 'unknown', measured: 'no inventory' };
    const skewMs = inventory.collected_ms - receivedMs;
    const measured = `${(skewMs / 1000).toFixed(1)} s`;
    if (Math.abs(skewMs) <= MAX_SKEW_MS) return { status: 'passed', measured };
    return {
      status: 'failed',
      reasonCode: 'CLOCK_SKEW',
      measured,
      message: 'The clock of the host is wrong',
      remediation: 'Enable time synchronisation (systemd-timesyncd or chrony).',
    };
  },
};
