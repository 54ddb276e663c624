/** Checks that the agent runs a signed image and that its updates make progress. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, type Failure, fail, warn } from './check.ts';

/**
 * Time after which a waiting update is stuck. It exceeds the duration of any step of an update and the interval at
 * which the agent reads manifests.
 */
const STUCK_MS = 2 * 3_600_000;
/** Reasons for which an update waits and continues by itself. */
const WAITING = [null, 'NOT_YET', 'BACKING_OFF', 'BUSY'];

export const imageDigest = defineCheck({
  id: 'image_digest',
  detects: 'an agent whose image was not signed, or is not the newest',
  required: 'the image of the newest release that is rolled out to all agents',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { update }, measured: { releases }, receivedMs }) {
    // Other kinds of installation report no digest.
    const running = update?.kind === 'image-digest' ? update.current_digest : null;
    if (releases === null || running === null) return unknown('no digest');
    if (running === releases.target) return ok(running);
    if (!releases.is_known) {
      return fail('AGENT_IMAGE_FOREIGN', running, 'The image of the agent was never signed');
    }
    const isRollingOut = releases.rollout_permille < 1_000 || receivedMs < releases.grace_until_ms;
    if (isRollingOut) return warn(running, 'A newer version is being rolled out');
    return fail('AGENT_IMAGE_OUTDATED', running, 'The agent has not installed the newest release');
  },
  remedies: {
    AGENT_IMAGE_FOREIGN: 'Run the agent from AGENT_UPDATE_IMAGE, by its published tag.',
    AGENT_IMAGE_OUTDATED: 'Read GET /update-status on the host for why it does not update.',
  },
});

export const agentUpdate = defineCheck({
  id: 'agent_update',
  detects: 'an update of the agent that makes no progress',
  required: 'an update that makes progress, or no update',
  category: 'env',
  mode: 'shadow',
  whileRented: true,
  judge({ inventory: { update, collected_ms: nowMs } }) {
    if (update === null || update.kind === null) return unknown('no updates');
    const { state, reason, message } = update;
    const measured = [state, ...(reason === null ? [] : [reason])].join(' ');
    const failWith = (code: string, text: string): Failure =>
      fail(code, measured, message === '' ? text : `${text}: ${message.slice(0, 1_000)}`);
    if (state === 'ROLLED_BACK') {
      return failWith('AGENT_UPDATE_ROLLED_BACK', 'The new version did not work on this host');
    }
    if (reason === 'MAINTENANCE_HOLD') {
      return failWith('AGENT_UPDATE_HELD', 'The provider has paused updates');
    }
    const isResting = state === 'IDLE' || state === 'COMMITTED';
    const sinceMs = (isResting ? update.last_check_ms : update.since_ms) ?? nowMs;
    if (nowMs - sinceMs > STUCK_MS) {
      return failWith('AGENT_UPDATE_STUCK', 'The update has made no progress for two hours');
    }
    if (WAITING.includes(reason)) return ok(measured);
    return failWith('AGENT_UPDATE_STUCK', 'The update cannot proceed');
  },
  remedies: {
    AGENT_UPDATE_ROLLED_BACK: 'Read the message; the update is retried within a day.',
    AGENT_UPDATE_HELD: 'Remove the file update-hold from the agent’s home.',
    AGENT_UPDATE_STUCK: 'Correct the reason that GET /update-status on the host reports.',
  },
});
