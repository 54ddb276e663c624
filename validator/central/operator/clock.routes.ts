/** Routes below /operator that read and confirm the clock of the process that responds. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { CLOCK_SUSPICIONS } from '#shared/runtime/clock-guard.ts';
import type { ClockStatus, GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { MAX_REASON_CHARS, recordAudit, requireReason } from '../platform/audit/audit.service.ts';
import type { Database } from '../platform/database/tables.ts';
import { userOf } from '../platform/identity.ts';
import { NaiveTime } from '../platform/wire.ts';

const tags = ['Operator'];
const config = { auth: 'operator' } as const;
const forbidden = "the account does not have the operator's role";

const ClockResponse = z
  .object(
    described(
      {
        state: z.enum(['trusted', 'suspect']),
        reason: z.enum(CLOCK_SUSPICIONS).nullable(),
        time: NaiveTime,
        host_time: NaiveTime,
        peer_time: NaiveTime.nullable(),
      },
      {
        state:
          '`suspect` while the clock of the host is implausible. Deletions, expiries, schedules and verdicts are then suspended.',
        reason:
          '`jumped`: the clock jumped while the host ran; `before_record`: after a reboot it is before the last stored time; `far_after_record`: after a reboot it is more than 3 days after that time; `peer_differs`: the validator has another time; null while the clock is trusted.',
        time: 'Time that the process uses (UTC).',
        host_time: 'Time of the clock of the host (UTC).',
        peer_time: 'Time of the validator (UTC); null unless `reason` is `peer_differs`.',
      },
    ),
  )
  .meta({ id: 'OperatorClock' });

const ConfirmClock = z
  .object(
    described(
      { reason: z.string().min(1).max(MAX_REASON_CHARS) },
      { reason: 'Reason for the confirmation, 1 to 500 characters; the audit entry contains it.' },
    ),
  )
  .meta({ example: { reason: 'the host was off for three weeks' } });

type ClockDeps = { db: Database; clock: Clock; guard: GuardedClock };

export function registerClock(api: HttpServer, { db, clock, guard }: ClockDeps): void {
  api.get(
    '/operator/clock',
    {
      config,
      schema: {
        tags,
        summary: 'Read the state of the clock',
        description:
          'Returns whether the process that responds trusts the clock of its host, and the times that it compares.',
        errors: { forbidden },
        response: { 200: ClockResponse },
      },
    },
    async () => responseOf(guard.status()),
  );
  api.post(
    '/operator/clock/confirm',
    {
      config,
      schema: {
        tags,
        summary: 'Confirm the clock',
        description:
          'Makes the process that responds trust the clock of its host. Suspended work continues. Running pods are not charged for the time by which the clock is corrected. An audit entry records the reason.',
        errors: { forbidden },
        retry:
          'Safe: a repeated request changes nothing, except that it writes another audit entry.',
        body: ConfirmClock,
        response: { 200: ClockResponse },
      },
    },
    async (request) => {
      const reason = requireReason(request.body.reason);
      const status = await guard.confirm();
      await recordAudit(db, {
        operator: userOf(request).accountId,
        action: 'clock.confirm',
        subject_type: 'clock',
        subject_id: 'central',
        reason,
        at_ms: clock.now(),
      });
      return responseOf(status);
    },
  );
}

function responseOf({ suspicion, timeMs, wallMs, peerMs }: ClockStatus) {
  return {
    state: suspicion === null ? ('trusted' as const) : ('suspect' as const),
    reason: suspicion,
    time: naiveUtc(timeMs),
    host_time: naiveUtc(wallMs),
    peer_time: peerMs === null ? null : naiveUtc(peerMs),
  };
}
