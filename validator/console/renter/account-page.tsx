import type { User } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { Money } from '../parts/amounts.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatUsd } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { useClient, useSession } from '../session/session.tsx';
import { ChangeCredentials, ChangeProfile, ConfirmAddress } from './account-forms.tsx';
import { AccountSessions } from './account-sessions.tsx';

/** The account of a renter: profile, address, password, sessions, payout account and deletion. */
export function AccountPage() {
  const account = useApi('GET /users/me', {});
  return (
    <Page title="Sessions and account">
      <QueryPanel title="Account" query={account}>
        {(user) => <AccountFacts user={user} />}
      </QueryPanel>
      <AccountSessions />
      <QueryPanel title="Profile" query={account}>
        {(user) => <ChangeProfile user={user} />}
      </QueryPanel>
      <QueryPanel title="Address and password" query={account}>
        {(user) => <ChangeCredentials user={user} />}
      </QueryPanel>
      <PayoutAccountPanel />
      <QueryPanel title="Delete the account" query={account}>
        {(user) => <DeleteAccount user={user} />}
      </QueryPanel>
    </Page>
  );
}

function AccountFacts({ user }: { user: User }) {
  return (
    <>
      <Facts
        facts={[
          ['E-mail', `${user.email} (${user.email_verified ? 'confirmed' : 'not confirmed'})`],
          ['Name', user.name || '–'],
          ['Company', user.company_name ?? '–'],
          ['Created', <Time key="created" value={user.created_at} />],
          ['Referral code', <code key="code">{user.referral_code}</code>],
          ['Earned by referrals', <Money key="earned" usd={user.pending_referral_balance} />],
          ['Id', <code key="id">{user.id}</code>],
        ]}
      />
      {user.email_verified ? null : <ConfirmAddress email={user.email} />}
    </>
  );
}

function PayoutAccountPanel() {
  const payout = useApi('GET /users/me/stripe-connect', {});
  const begin = useAction('POST /users/me/stripe-connect');
  const page = begin.data?.onboarding_url ?? null;
  return (
    <QueryPanel title="Payout account" query={payout}>
      {({ stripe_connect_account_id: id, stripe_onboarding_completed: isReady }) => (
        <>
          <p>
            {isReady
              ? 'Shares of referrals can be paid to your account '
              : 'Receives shares of referrals. '}
            {id === null ? 'The set-up has not begun.' : <code>{id}</code>}
          </p>
          <div>
            {isReady ? null : (
              <ActionButton
                label={id === null ? 'Begin the set-up' : 'Continue the set-up'}
                run={() => begin.mutateAsync({})}
              />
            )}
          </div>
          {page === null || isReady ? null : (
            <p role="status">
              <a href={page} rel="noreferrer" target="_blank">
                Complete the set-up at the payment processor
              </a>
            </p>
          )}
        </>
      )}
    </QueryPanel>
  );
}

function DeleteAccount({ user }: { user: User }) {
  const { logOut } = useSession();
  const { api } = useClient();
  return (
    <>
      <p>An account with pods cannot be deleted. Delete its pods first.</p>
      <div>
        <ConfirmDialog
          trigger="Delete the account"
          title={`Delete account ${user.email}?`}
          action="Delete the account and all its data"
          isDangerous
          onConfirm={async () => {
            await api('DELETE /users/me');
            await logOut();
          }}
        >
          <p>
            Keys, templates, volumes and backups are lost, and all sessions end. You cannot spend
            the balance of {formatUsd(user.balance)} any more. The journal of payments is kept.
          </p>
        </ConfirmDialog>
      </div>
    </>
  );
}
