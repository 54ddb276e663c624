/** Details of the event for a verdict that the validator reports. */
import { z } from 'zod';
import { CheckResult, VERDICTS } from '#shared/api/central/validator-routes.ts';

/** Events of verdicts, by the last part of the path of their request. */
export const CHECK_EVENT = 'validator-executor-health-check';

const Verdict = z.object({
  executor_id: z.uuid(),
  report: z.object({
    verdict: z.enum(VERDICTS),
    checks: z.array(CheckResult.pick({ passed: true, mode: true, reason_code: true })),
  }),
});

/** Returns the node, the verdict and the reasons for it; nothing for another request. Pure. */
export function checkEventOf(kind: string, body: string | null) {
  if (kind !== CHECK_EVENT || body === null) return {};
  const parsed = Verdict.safeParse(JSON.parse(body));
  if (!parsed.success) return {};
  const { executor_id: executor, report } = parsed.data;
  const reasons = report.checks
    .filter(({ passed, mode }) => !passed && mode === 'enforce')
    .map(({ reason_code: reason }) => reason ?? '');
  const reason = reasons.length === 0 ? undefined : reasons.join(' ');
  return { executor, verdict: report.verdict, reason };
}
