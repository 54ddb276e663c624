/** The agent runs what was signed for it, and its updates go on. */
import { type Failure, failed, type Judge, passed, unknown } from './check.ts';

/** Longer than any step of an update takes, and than whoever is due to be asked is left alone. */
const STUCK_MS = 2 * 3_600_000;
/** Of an update that will go on by itself. */
const FINE = [null, 'NOT_YET', 'BACKING_OFF', 'BUSY'];

export const judgeImageDigest: Judge = ({ inventory: { update }, measured, receivedMs }) => {
  const { releases } = measured;
  // Of an agent that is installed in another way nothing is known.
  const running = update?.kind === 'image-digest' ? update.current_digest : null;
  if (releases === null || running === null) return unknown('no digest');
  if (running === releases.target) return passed(running);
  if (!releases.is_known) {
    return failed('AGENT_IMAGE_FOREIGN', running, 'The agent is of an image that nobody signed');
  }
  const isUnderWay = releases.rollout_permille < 1_000 || receivedMs < releases.grace_until_ms;
  if (isUnderWay) {
    return { status: 'passed', measured: running, warning: 'A newer version is being given out' };
  }
  return failed('AGENT_IMAGE_OUTDATED', running, 'The agent has not followed the newest release');
};

export const judgeUpdate: Judge = ({ inventory: { update, collected_ms: nowMs } }) => {
  if (update === null || update.kind === null) return unknown('no updates');
  const { state, reason, message } = update;
  const measured = [state, ...(reason === null ? [] : [reason])].join(' ');
  const told = (code: string, words: string): Failure =>
    failed(code, measured, message === '' ? words : `${words}: ${message.slice(0, 1_000)}`);
  if (state === 'ROLLED_BACK') {
    return told('AGENT_UPDATE_ROLLED_BACK', 'The new version did not work on this host');
  }
  if (reason === 'MAINTENANCE_HOLD') return told('AGENT_UPDATE_HELD', 'The provider holds it');
  const isResting = state === 'IDLE' || state === 'COMMITTED';
  const sinceMs = (isResting ? update.last_check_ms : update.since_ms) ?? nowMs;
  if (nowMs - sinceMs > STUCK_MS) return told('AGENT_UPDATE_STUCK', 'It has not gone on for long');
  if (FINE.includes(reason)) return passed(measured);
  return told('AGENT_UPDATE_STUCK', 'It does not go on');
};
