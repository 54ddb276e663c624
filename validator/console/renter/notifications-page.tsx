import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { EffectiveNotificationSettingDto } from '../api/api.gen.ts';
import { CheckboxField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';

const MAILS = [
  ['low_balance', 'Low balance', 'Your money falls below a threshold.'],
  ['notice_period', 'Notices of providers', 'A node with your pod gets maintenance or is removed.'],
  ['pod_failed', 'Failed pods', 'A pod fails, or cannot be started.'],
  ['scheduled_removal', 'Scheduled removals', 'A pod is about to be removed on schedule.'],
  ['machine_request', 'Machine requests', 'A node that you requested is available.'],
] as const;

export function NotificationsPage() {
  const settings = useApi('GET /users/me/notification', {});
  return (
    <Page
      title="Notifications"
      lead={
        <>
          Mails that the marketplace sends to you. The thresholds of your balance are on the page{' '}
          <Link href={paths.money}>Money</Link>; programs receive events through{' '}
          <Link href={paths.webhooks}>webhooks</Link>.
        </>
      }
    >
      <QueryPanel title="Mails" query={settings}>
        {(data) => <MailForm settings={data} />}
      </QueryPanel>
    </Page>
  );
}

function MailForm({ settings }: { settings: EffectiveNotificationSettingDto }) {
  const change = useAction('PUT /users/me/notification');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const { is_default: isDefault, ...initial } = settings;
  const form = useForm(initial, async (body) => {
    setOutcome(null);
    await change.mutateAsync({ body });
    setOutcome('Your choice is saved.');
  });
  return (
    <>
      {isDefault ? <p className="faint">You have changed nothing, so all mails are sent.</p> : null}
      <Form form={form} action="Save">
        {MAILS.map(([name, label, hint]) => (
          <CheckboxField key={name} form={form} name={name} label={label} hint={hint} />
        ))}
      </Form>
      <Outcome>{outcome}</Outcome>
    </>
  );
}
