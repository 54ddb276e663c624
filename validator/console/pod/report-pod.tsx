import type { PodReport } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { CheckboxField, SelectField, TextArea } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { wordsOf } from '../parts/format.ts';
import { Outcome, useOutcome } from '../parts/outcome.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { Timeline } from '../parts/timeline.tsx';
import type { Tone } from '../parts/tone.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';

const REASONS = [
  { value: 'wrong_gpu', label: 'Another GPU than offered' },
  { value: 'fewer_gpus', label: 'Fewer GPUs' },
  { value: 'less_memory', label: 'Less memory' },
  { value: 'fewer_cores', label: 'Fewer processors' },
  { value: 'less_disk', label: 'Less disk' },
  { value: 'ssh_unusable', label: 'SSH does not work' },
  { value: 'other', label: 'Something else' },
] as const satisfies readonly { value: PodReport['reason']; label: string }[];

const MAX_DESCRIPTION = 2_000;

const TONES: Record<PodReport['status'], Tone> = {
  open: 'busy',
  examining: 'busy',
  confirmed: 'good',
  not_confirmed: 'warn',
  expired: 'idle',
};
const SHOWN = 10;
const REFETCH_MS = 15_000;

/** Reports a pod that is not what was offered, and shows what became of each report. */
export function ReportPod({ pod }: PodTabProps) {
  return (
    <Panel title="Report the pod">
      <p>
        You can report a pod until 3 days after its end. A validator then examines the node. If it
        confirms the report, the charges of up to 24 hours before the report are refunded, and the
        node cannot be rented until it passes another examination.
      </p>
      <Reports pod={pod} />
      <ReportForm pod={pod} />
    </Panel>
  );
}

function Reports({ pod }: PodTabProps) {
  const reports = useApi(
    'GET /pod-reports',
    { query: { pod_id: pod.id, limit: SHOWN } },
    { refetchMs: REFETCH_MS },
  );
  return (
    <QueryContent
      query={reports}
      isEmpty={({ length }) => length === 0}
      empty="You have not reported this pod."
    >
      {(rows) => (
        <Timeline
          entries={rows.map((report) => ({
            key: report.id,
            at: report.created_at,
            tone: TONES[report.status],
            title: `${labelOf(report.reason)}: ${wordsOf(report.status).toLowerCase()}`,
            detail: (
              <>
                {report.finding}
                {report.refund > 0 ? (
                  <div>
                    Refund <Money usd={report.refund} />
                  </div>
                ) : null}
              </>
            ),
          }))}
        />
      )}
    </QueryContent>
  );
}

function labelOf(reason: PodReport['reason']): string {
  return REASONS.find(({ value }) => value === reason)?.label ?? reason;
}

function ReportForm({ pod }: PodTabProps) {
  const report = useAction('POST /pods/{id}/report');
  const outcome = useOutcome();
  const form = useForm(
    { reason: 'wrong_gpu', description: '', consent: false },
    async ({ reason, description, consent }) => {
      outcome.clear();
      const value = REASONS.find((each) => each.value === reason)?.value ?? 'other';
      const body = { reason: value, description, consent };
      await report.mutateAsync({ params: { id: pod.id }, body });
      outcome.show('The report was sent. Its state is above.');
    },
  );
  return (
    <>
      <Form form={form} action="Report">
        <SelectField form={form} name="reason" label="What is wrong" isRequired options={REASONS} />
        <TextArea
          form={form}
          name="description"
          label="Description"
          maxLength={MAX_DESCRIPTION}
          hint="For the operator. The provider does not receive it."
        />
        <CheckboxField
          form={form}
          name="consent"
          label="The validator may enter the pod"
          hint="It enters at once and runs commands that read the resources. Otherwise it rents the node as soon as the node is free."
        />
      </Form>
      <Outcome>{outcome.text}</Outcome>
    </>
  );
}
