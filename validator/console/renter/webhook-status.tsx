import type { Webhook } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useAction } from '../session/queries.tsx';
import { causeOf, WEBHOOK_TONES, webhookStateOf } from './webhook.ts';

/** State of a webhook with its cause and the next attempt. */
export function WebhookStatus({ webhook }: { webhook: Webhook }) {
  const state = webhookStateOf(webhook);
  const { failing_since: since, next_attempt_at: next } = webhook;
  return (
    <>
      <Status name={state} tone={WEBHOOK_TONES[state]} />
      {causeOf(webhook) === null ? null : <div className="small">{causeOf(webhook)}</div>}
      {since === null ? null : (
        <div className="small">
          failing since <Time value={since} />
        </div>
      )}
      {next === null ? null : (
        <div className="small">
          next attempt <Time value={next} relative />
        </div>
      )}
    </>
  );
}

/** Stops the deliveries, or resumes them with the event at which they stopped. */
export function PauseButton({ webhook }: { webhook: Webhook }) {
  const { id, enabled } = webhook;
  const change = useAction('PATCH /webhooks/{id}');
  return (
    <ActionButton
      label={enabled ? 'Pause' : 'Resume'}
      run={() => change.mutateAsync({ params: { id }, body: { enabled: !enabled } })}
    />
  );
}
