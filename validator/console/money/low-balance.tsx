import { type ReactNode, useState } from 'react';
import type { EffectiveLowBalanceConfigDto } from '../api/api.gen.ts';
import { NumberField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { Outcome } from '../parts/outcome.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { useAction, useApi } from '../session/queries.tsx';

export function LowBalancePanel() {
  const thresholds = useApi('GET /users/me/low-balance-threshold', {});
  return (
    <QueryPanel title="Notify me about a low balance" query={thresholds}>
      {(data) => <ThresholdForm thresholds={data} />}
    </QueryPanel>
  );
}

type Values = { threshold_usd: number | null; runway_minutes: number | null };

function ThresholdForm({ thresholds }: { thresholds: EffectiveLowBalanceConfigDto }) {
  const change = useAction('PUT /users/me/low-balance-threshold');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const { threshold_usd: usd, runway_minutes: minutes, defaults } = thresholds;
  const initial: Values = { threshold_usd: usd, runway_minutes: minutes };
  const form = useForm<Values>(initial, async (body) => {
    setOutcome(null);
    await change.mutateAsync({ body });
    setOutcome('The thresholds are saved.');
  });
  return (
    <>
      <Form form={form} action="Save the thresholds">
        <NumberField
          form={form}
          name="threshold_usd"
          label="Available money below"
          unit="USD"
          min={0}
          hint={`Empty: the default, ${formatUsd(defaults.threshold_usd)}.`}
        />
        <NumberField
          form={form}
          name="runway_minutes"
          label="The money lasts for less than"
          unit="minutes"
          min={0}
          step={1}
          hint={`Empty: the default, ${defaults.runway_minutes} minutes.`}
        />
      </Form>
      <Outcome>{outcome}</Outcome>
    </>
  );
}
