import { dateOf, parseLocalTime } from '../browser/clock.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { NumberField, SelectField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Panel } from '../parts/panel.tsx';
import { usePortalAction } from '../session/queries.tsx';
import type { NodeTabProps } from './node-page.tsx';
import { NoticeText } from './notice-text.tsx';

const MAX_MINUTES = 60;
const MAX_REASON = 500;

/** Announces maintenance or the removal of a node, or withdraws the announcement. */
export function NoticePanel({ node }: NodeTabProps) {
  const { id, huid, notice_period: notice } = node;
  const withdraw = usePortalAction('DELETE /executors/{id}/notice-period');
  return (
    <Panel title="Notice to renters">
      {notice === null ? (
        <NoticeForm node={node} />
      ) : (
        <>
          <p>
            <NoticeText notice={notice} />
          </p>
          <div className="row">
            <ConfirmDialog
              trigger="Withdraw the notice"
              title={`Withdraw the notice of node ${huid}?`}
              action="Withdraw"
              onConfirm={() => withdraw.mutateAsync({ params: { id } })}
            >
              <p>
                Renters with pods on the node are notified. A period that has started cannot be
                withdrawn.
              </p>
            </ConfirmDialog>
          </div>
        </>
      )}
    </Panel>
  );
}

function NoticeForm({ node: { id } }: NodeTabProps) {
  const announce = usePortalAction('POST /executors/{id}/notice-period');
  const form = useForm(
    { kind: 'maintenance', starting_at: '', period_in_minute: 30 as number | null, reason: '' },
    ({ kind, starting_at: start, period_in_minute: minutes, reason }) => {
      const startMs = parseLocalTime(start);
      const when = {
        starting_at: startMs === null ? start : dateOf(startMs).toISOString(),
        ...(reason === '' ? {} : { reason }),
      };
      const body =
        kind === 'removal'
          ? { ...when, permanent_removal: true }
          : { ...when, period_in_minute: minutes };
      return announce.mutateAsync({ params: { id }, body });
    },
  );
  const isRemoval = form.values.kind === 'removal';
  return (
    <Form form={form} action={isRemoval ? 'Announce the removal' : 'Announce the maintenance'}>
      <SelectField
        form={form}
        name="kind"
        label="What is planned"
        isRequired
        options={[
          { value: 'maintenance', label: 'Maintenance' },
          { value: 'removal', label: 'Removal of the node' },
        ]}
        hint={
          isRemoval
            ? 'All pods on the node end at the announced time. Renters are notified now.'
            : 'Renters with pods on the node are notified now.'
        }
      />
      <TextField
        form={form}
        name="starting_at"
        label="Start, in your time zone"
        type="datetime-local"
        hint={`At least ${isRemoval ? 48 : 24} hours and at most 365 days ahead.`}
        isRequired
      />
      {isRemoval ? null : (
        <NumberField
          form={form}
          name="period_in_minute"
          label="Length"
          unit="minutes"
          min={1}
          max={MAX_MINUTES}
          step={1}
          isRequired
        />
      )}
      <TextField
        form={form}
        name="reason"
        label="Reason"
        hint="Renters read this text."
        maxLength={MAX_REASON}
      />
    </Form>
  );
}
