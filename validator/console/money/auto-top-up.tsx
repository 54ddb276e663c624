import { type ReactNode, useState } from 'react';
import type { AutoTopUp } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { CheckboxField, NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { Outcome } from '../parts/outcome.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import type { Tone } from '../parts/tone.ts';
import { useAction, useApi } from '../session/queries.tsx';

const REFETCH_MS = 15_000;
const TONES: Record<AutoTopUp['status'], Tone> = {
  idle: 'idle',
  charging: 'busy',
  failed: 'warn',
  suspended: 'bad',
};

/** Settings and state of automatic charges. There is no checkout for single payments. */
export function AutoTopUpPanel() {
  const settings = useApi('GET /users/me/auto-top-up', {}, { refetchMs: REFETCH_MS });
  return (
    <QueryPanel title="Top-ups" query={settings}>
      {(data) => (
        <>
          <p>
            The auto top-up charges your payment method when the balance is low while pods run or
            wait for money. The operator of the marketplace can also record a payment.
          </p>
          {data === null ? null : <TopUpState settings={data} />}
          <TopUpForm settings={data} />
        </>
      )}
    </QueryPanel>
  );
}

function TopUpState({ settings }: { settings: AutoTopUp }) {
  const { enabled, status, month_charged_usd: charged, last_attempt_at: at } = settings;
  return (
    <>
      <Facts
        facts={[
          ['Auto top-up', enabled ? 'on' : 'off'],
          ['Last charge', <Status key="status" name={status} tone={TONES[status]} />],
          ['Last attempt', <Time key="at" value={at} />],
          ['Charged this month', <Money key="month" usd={charged} />],
        ]}
      />
      {settings.last_error === null ? null : <p className="notice bad">{settings.last_error}</p>}
    </>
  );
}

type Values = {
  enabled: boolean;
  payment_method_id: string;
  threshold_usd: number | null;
  amount_usd: number | null;
  monthly_limit_usd: number | null;
};

function TopUpForm({ settings }: { settings: AutoTopUp | null }) {
  const change = useAction('PUT /users/me/auto-top-up');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const initial: Values = {
    enabled: settings?.enabled ?? true,
    payment_method_id: settings?.payment_method_id ?? '',
    threshold_usd: settings?.threshold_usd ?? 10,
    amount_usd: settings?.amount_usd ?? 50,
    monthly_limit_usd: settings?.monthly_limit_usd ?? null,
  };
  const form = useForm<Values>(initial, async ({ payment_method_id: method, ...values }) => {
    setOutcome(null);
    await change.mutateAsync({ body: { ...values, payment_method_id: method || null } });
    setOutcome('The auto top-up is saved.');
  });
  return (
    <>
      <Form form={form} action="Save the auto top-up">
        <CheckboxField form={form} name="enabled" label="Charge automatically" />
        <TextField
          form={form}
          name="payment_method_id"
          label="Payment method"
          hint="Its id at the payment processor. In a local marketplace, sim_ok pays and sim_declined does not."
        />
        <NumberField
          form={form}
          name="threshold_usd"
          label="Charge below a balance of"
          unit="USD"
          min={1}
          isRequired
        />
        <NumberField
          form={form}
          name="amount_usd"
          label="Amount of a charge"
          unit="USD"
          min={5}
          max={10_000}
          isRequired
        />
        <NumberField
          form={form}
          name="monthly_limit_usd"
          label="Limit per month"
          unit="USD"
          min={5}
          hint="Empty: $1,000, or one charge if that is more."
        />
        <CostOf values={form.values} />
      </Form>
      <Outcome>{outcome}</Outcome>
    </>
  );
}

/** Shows the possible charge before the form is sent. */
function CostOf({ values }: { values: Values }) {
  const { enabled, amount_usd: amount, threshold_usd: threshold } = values;
  if (!enabled || amount === null || threshold === null) return null;
  return (
    <p>
      If the balance is at or below {formatUsd(threshold)} while pods run, {formatUsd(amount)} are
      charged within a minute after you save.
    </p>
  );
}
