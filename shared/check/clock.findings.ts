/** Judges the host's clock: signed requests live by it. Pure. */
import { MAX_SKEW_MS } from '../signing/request-verifier.ts';
import type { ClockFacts } from './clock.facts.ts';
import { type Finding, fail, ok, unknown, warn } from './finding.ts';

/** A clock this far off is on its way to being refused. */
const SUSPICIOUS_MS = MAX_SKEW_MS / 6;
const MS_PER_SECOND = 1_000;
const REMEDY = 'apt install systemd-timesyncd; timedatectl set-ntp true';

export function clockFindings({ synchronised, skew }: ClockFacts): Finding[] {
  return [isKept(synchronised, skew), isRight(skew)];
}

function isKept(synchronised: ClockFacts['synchronised'], skew: ClockFacts['skew']): Finding {
  const id = 'clock-sync';
  if ('problem' in synchronised) {
    // Another clock was compared with already, where the validator knows one.
    const remedy =
      skew !== null ? null : 'compare with another clock: doctor --time-from https://CENTRAL-API/';
    return unknown(id, `whether NTP keeps the clock is not known: ${synchronised.problem}`, remedy);
  }
  if (synchronised.value) return ok(id, 'NTP keeps the clock');
  return warn(id, 'NTP does not keep the clock: one day every command is refused', REMEDY);
}

function isRight(skew: ClockFacts['skew']): Finding {
  const id = 'clock-skew';
  if (skew === null) {
    return unknown(id, 'nobody was asked for the time', 'doctor --time-from https://CENTRAL-API/');
  }
  if ('problem' in skew.told)
    return unknown(id, `${skew.url} could not be asked: ${skew.told.problem}`);
  const { ms, withinMs } = skew.told.value;
  const seconds = (value: number) => (value / MS_PER_SECOND).toFixed(1);
  const what = `the clock is ${seconds(ms)} s (± ${seconds(withinMs)} s) ahead of ${skew.url}`;
  const atLeast = Math.max(0, Math.abs(ms) - withinMs);
  if (atLeast > MAX_SKEW_MS) return fail(id, `${what}: every command is refused`, REMEDY);
  return atLeast > SUSPICIOUS_MS ? warn(id, what, REMEDY) : ok(id, what);
}
