import { useState } from 'react';
import type { TransferHistoryDto } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';

const PAGE_SIZE = 10;

const COLUMNS: readonly Column<TransferHistoryDto>[] = [
  {
    key: 'party',
    title: 'Account',
    cell: ({ direction, counterparty_email: email }) =>
      `${direction === 'sent' ? 'to' : 'from'} ${email}`,
  },
  { key: 'at', title: 'Time', cell: ({ created_at: at }) => <Time value={at} /> },
  { key: 'note', title: 'Note', cell: ({ note }) => note ?? '–' },
  { key: 'amount', title: 'Amount', isNumber: true, cell: ({ amount }) => <Money usd={amount} /> },
];

/** Transfers of credit to other accounts, and from them. */
export function Transfers() {
  const [page, setPage] = useState(1);
  const query = { page, limit: PAGE_SIZE };
  const transfers = useApi('GET /users/me/transfer-history', { query });
  const editor = useEditor<never>();
  return (
    <>
      <EditorPanel editor={editor} title="Transfer credit">
        <TransferForm editor={editor} />
      </EditorPanel>
      <QueryPanel
        title="Transfers"
        query={transfers}
        isEmpty={({ length }) => length === 0 && page === 1}
        empty="You have neither sent nor received a transfer."
      >
        {(rows) => (
          <>
            <DataTable
              caption="Transfers"
              rows={rows}
              rowKey={({ id, direction }) => `${id} ${direction}`}
              columns={COLUMNS}
            />
            <Pager page={page} hasNext={rows.length === PAGE_SIZE} onPage={setPage} />
          </>
        )}
      </QueryPanel>
    </>
  );
}

type Values = { recipient_email: string; amount: number | null; note: string };

function TransferForm({ editor }: { editor: Editor<never> }) {
  const transfer = useAction('POST /users/me/transfer-credits');
  const initial: Values = { recipient_email: '', amount: null, note: '' };
  const form = useForm<Values>(initial, async ({ amount, note, ...to }) => {
    const body = { ...to, amount: amount ?? 0, note: note || null };
    const { balance } = await transfer.mutateAsync({ body });
    editor.finish(
      `${formatUsd(body.amount)} are transferred to ${to.recipient_email}. Your balance is ${formatUsd(balance)}.`,
    );
  });
  const { amount, recipient_email: email } = form.values;
  return (
    <Form
      form={form}
      action={amount === null ? 'Transfer' : `Transfer ${formatUsd(amount)} to ${email || '…'}`}
    >
      <p>A transfer cannot be taken back. Granted credit and reserved credit cannot be moved.</p>
      <TextField
        form={form}
        name="recipient_email"
        label="E-mail of the recipient"
        type="email"
        isRequired
      />
      <NumberField form={form} name="amount" label="Amount" unit="USD" min={0} isRequired />
      <TextField form={form} name="note" label="Note for the recipient" maxLength={200} />
    </Form>
  );
}
